"""Queries that run in cycles: what came and what left since the last cycle is taken in, then the query sees it all."""
