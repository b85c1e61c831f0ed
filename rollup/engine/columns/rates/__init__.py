"""Output rates over columns: what a core gives waits for an output, or only what comes first in an interval passes."""
