"""Statements that an engine runs over columns, by what they are over, with a name each."""
