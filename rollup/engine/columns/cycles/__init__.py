"""Running queries whose cycle is an instant, over columns: a core a kind of query, held equal to `rows/cycles` by tests."""
