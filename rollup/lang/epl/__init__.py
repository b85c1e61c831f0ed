"""Esper EPL: text → tree (reader), tree → engine nodes (lowering)."""
