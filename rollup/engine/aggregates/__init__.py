"""Aggregate functions, one declaration each: how values enter, leave and merge in windows, what a table keeps of them."""
