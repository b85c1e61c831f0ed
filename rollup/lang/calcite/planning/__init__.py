"""Streaming SQL planned: a select, its groups, panes and joins become nodes of flows."""
