"""Plans become programs: one function for each kind of plan, which binds operators to one another."""
