"""Calcite's streaming SQL."""
