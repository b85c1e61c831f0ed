"""Streaming SQL: the text of one or more statements, read by sqlglot; what is foreign to Calcite is refused by name."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from rollup.core.errors import SyntaxProblem
from rollup.core.nesting import NESTING, TOO_DEEP
from rollup.lang.calcite.dialect import STREAM, Calcite
from rollup.lang.calcite.semantics import refused

_FOREIGN = (
    exp.Qualify, exp.Lateral, exp.Pivot, exp.MatchRecognize, exp.TableSample, exp.Cluster, exp.Distribute, exp.Sort,
    exp.ILike, exp.Into, exp.Lock, exp.Connect, exp.Hint,
)  # fmt: skip
FORM = "SELECT STREAM .. FROM .. WHERE .. GROUP BY .. HAVING .. WINDOW .. ORDER BY .. LIMIT"
_KNOWN = (
    exp.Select,
    exp.Union,
    exp.Except,
    exp.Intersect,
    exp.Create,
    exp.Insert,
    exp.Update,
    exp.Delete,
    exp.Subquery,
)


def parse(text: str) -> list[exp.Expr]:
    """The statements of a text.

    Raises SyntaxProblem with line and column.

    >>> [statement.key for statement in parse("SELECT STREAM * FROM Orders; SELECT 1")]
    ['select', 'select']
    """
    try:
        found = [statement for statement in Calcite().parse(text) if statement is not None]
    except ParseError as problem:
        first = problem.errors[0] if problem.errors else {}
        said = first.get("description", "the statement cannot be read").split(" but got <Token")[0]
        said = "a function lacks an argument" if said.startswith("Required keyword") else said
        raise SyntaxProblem(said, line=first.get("line"), column=first.get("col"), hint=FORM) from None
    except TokenError as problem:
        raise SyntaxProblem(str(problem).split("\n")[0], line=1, column=1, hint=FORM) from None
    if not found:
        raise SyntaxProblem("there is no statement", hint="SELECT STREAM … FROM …")
    for statement in found:
        _check(statement)
        for count in statement.find_all(exp.Count):
            count.set("this", count.this or exp.Star())  # COUNT() counts rows
    return found


def _check(statement: exp.Expr) -> None:
    if _deeper_than(statement, _LEVELS):
        raise SyntaxProblem(TOO_DEEP, hint=NESTING)
    if not isinstance(statement, _KNOWN):
        raise _foreign(statement, "SELECT, CREATE VIEW, INSERT, UPSERT, UPDATE, DELETE")
    for node in statement.walk():
        if isinstance(node, _FOREIGN) and not (isinstance(node, exp.Hint) and is_stream_mark(node)):
            raise _foreign(node, FORM)
        _check_arguments(node)


_LEVELS = 1000
"""What walks from a node up to the root, as the parser's own library does, takes the square of it."""


def _deeper_than(root: exp.Expr, levels: int) -> bool:
    """Whether nodes stand in one another so many times."""
    nodes = [root]
    for _ in range(levels):
        nodes = [child for node in nodes for child in node.iter_expressions()]
    return bool(nodes)


def _check_arguments(node: exp.Expr) -> None:
    """Refuse a function that lacks an argument: what reads on takes for granted that it is there."""
    if not isinstance(node, exp.Func):
        return
    lacking = [key for key, needed in node.arg_types.items() if needed and node.args.get(key) in (None, [])]
    if lacking or (isinstance(node.this, exp.Distinct) and not node.this.expressions):
        place, name = refused(node.parent or node, ""), node.sql_name().upper()
        message = f"{name} lacks an argument"
        raise SyntaxProblem(message, line=place.line or 1, column=place.column or 1, hint=f"{name}(x)")


def _foreign(node: exp.Expr, known: str) -> SyntaxProblem:
    place = refused(node, "")
    message = f"{node.key.upper()} is not part of streaming SQL"
    return SyntaxProblem(message, line=place.line, column=place.column, hint=known)


def is_stream_mark(hint: exp.Hint) -> bool:
    """Whether it is the mark that SELECT STREAM leaves."""
    return [part.name for part in hint.expressions] == [STREAM]


def streaming(query: exp.Expr) -> bool:
    """Whether STREAM stands in the outermost select. Raises SyntaxProblem for a set operation of both kinds."""
    query = query.unnest() if isinstance(query, exp.Subquery) else query
    if isinstance(query, exp.SetOperation):
        left, right = streaming(query.left), streaming(query.right)
        if left != right:
            raise SyntaxProblem(
                "Set operator cannot combine streaming and non-streaming inputs",
                hint="STREAM in every select of it, or in none",
            )
        return left
    hint = query.args.get("hint")
    return hint is not None and is_stream_mark(hint)
