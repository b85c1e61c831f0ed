"""Programs at work: batches, the clock, outputs and state, in either mode."""
