"""Statements over columns: `step(state, batch) -> (state, output)`, each with one compiled loop where rows depend on rows.

A core has three parts: *pre* computes filters, arguments and key codes of the whole batch; the *loop* (`loops.py`) is
generated from one template and the lines that aggregates declare, and compiled; *post* makes the columns. Literals are
arguments of the loop, so one compiled loop serves every statement of its kind. `planning.core_of` says of a statement
which core runs it, or the first reason why none does. What a core delivers is what the row executor delivers, value for
value and bit for bit: additions are made in the same order.
"""
