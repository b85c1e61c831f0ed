"""Output rates over columns, of statements without a program: what a core gives waits for an output."""
