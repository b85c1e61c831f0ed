"""Names of stored columns: one for each argument and key, which says what it holds and depends on nothing else around it.

A plain attribute gives its own name. An expression gives its words, as `a_b` for `a * b`; where another expression or
an attribute of the same declaration gives the same ones, a digest of the whole expression tells them apart.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Sequence
from hashlib import sha256

from sqlglot import exp

from rollup.core.errors import PlanError
from rollup.plan.app import position

_ORDERING = ("event_timestamp", "arrival")
"""What AGG_FIRST_ and AGG_LAST_ already have after them, see `aggregation.SHARED`."""


def words(node: exp.Expr) -> str:
    """What a person would call an expression.

    >>> words(exp.column("a") * exp.column("b"))
    'a_b'
    """
    if (said := node.meta.get("words")) is not None:
        return str(said)
    if isinstance(node, exp.Tuple):
        return "_".join(map(words, node.expressions))
    return node.name if isinstance(node, exp.Column) else re.sub(r"\W+", "_", node.sql()).strip("_")


def canonical(node: exp.Expr) -> str:
    """A text that two expressions share only if they are the same, whatever their qualifiers and parentheses.

    >>> canonical(exp.column("a", table="S")) == canonical(exp.paren(exp.column("a")))
    True
    """
    node = node.unnest()
    if isinstance(node, exp.Column):
        return f"column {node.name!r}"
    if isinstance(node, (exp.Literal, exp.Boolean)):
        return f"{node.meta.get('type')} {node.this!r}"
    name = node.name.lower() if isinstance(node, exp.Anonymous) else node.key
    return f"{name}({', '.join(canonical(child) for child in node.iter_expressions())})"


def _told_apart(nodes: Iterable[exp.Expr], taken: Iterable[str], odd: Container[str] = ()) -> dict[str, str]:
    """The name of each expression by its canonical text; `odd` are texts that need a digest in any case."""
    groups = defaultdict[str, dict[str, exp.Expr]](dict)
    for node in nodes:
        groups[words(node).lower()][canonical(node)] = node.unnest()
    others, found = {name.lower() for name in taken}, dict[str, str]()
    for name, group in groups.items():
        for text, node in group.items():
            own = isinstance(node, exp.Column)
            clear = (own or (len(group) == 1 and name not in others)) and text not in odd and name
            found[text] = words(node) if clear else f"{words(node)}_{sha256(text.encode()).hexdigest()[:8]}"
    return found


def suffixes(
    expressions: Iterable[exp.Expr], arguments: Callable[[exp.Anonymous], Sequence[exp.Expr]]
) -> Callable[[exp.Expr], str]:
    """What follows the prefix in the columns of an argument, for all `arguments` of aggregates in a select list."""
    calls = [call for node in expressions for call in node.find_all(exp.Anonymous) if arguments(call)]
    odd = {
        canonical(call.expressions[0])
        for call in calls
        if call.name.lower() in ("first", "last") and words(call.expressions[0]).lower() in _ORDERING
    }
    found = _told_apart((argument for call in calls for argument in arguments(call)), (), odd)
    return lambda argument: found[canonical(argument)]


def key_names(nodes: Sequence[exp.Expr], attributes: Iterable[str]) -> list[str]:
    """The names of group keys; that of an expression is never that of an attribute, which may be asked for beside it."""
    found, named = _told_apart(nodes, attributes), list[str]()
    for node in nodes:
        name = found[canonical(node)]
        if name in named:
            raise PlanError(f"the group key {name!r} is there twice", hint="leave one out").at(*position(node))
        named.append(name)
    return named


def check_distinct(names: Iterable[str], what: str, line: int | None = None, column: int | None = None) -> None:
    """Raise PlanError when two names are the same or differ only in case: most engines take them for one."""
    known = dict[str, str]()
    for name in names:
        other = known.setdefault(name.lower(), name)
        if other != name:
            raise PlanError(
                f"{what}: {other!r} and {name!r} differ only in case",
                line=line,
                column=column,
                hint="tables and engines take them for one; rename one of them",
            )
