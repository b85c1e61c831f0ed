"""Statements as programs: operators that are written once, the lowering of plans to them, and programs at work."""
