"""Standing queries over ordered streams: every row leaves as soon as the input proves it final, never before, and once.

Each node is a step over columns; what is relational in it (conditions, expressions, aggregates, frames, joins) is asked
of DuckDB over the rows that are final. No word of a language stands here: expressions come as trees of DuckDB's SQL.
"""
