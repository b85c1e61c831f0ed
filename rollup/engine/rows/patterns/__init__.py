"""Patterns over rows: the algebra of `every`, followed-by, and, or, not, repeat, guards and observers."""
