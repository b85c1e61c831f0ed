"""EPL expressions lowered: names, operators, functions, methods, aggregates."""
