"""Nodes of the engine over whole columns: everything here is a step, `step(state, batch) -> (state, output)`, and knows no language."""
