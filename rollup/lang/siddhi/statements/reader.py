"""SiddhiQL text, read into `rollup.lang.siddhi.tree`."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from lark import Lark, Token, UnexpectedInput, v_args
from lark.tree import Meta

from rollup.core.errors import SyntaxProblem
from rollup.lang.reading import grammar_of, read
from rollup.lang.siddhi import tree
from rollup.lang.siddhi.mistakes import cure_of_statement, told
from rollup.lang.siddhi.reading import ReadExpressions, place_of


def read_app(text: str) -> tree.App:
    """The statements of an app. Raises SyntaxProblem with the place and what was expected there.

    >>> app = read_app("define stream S (k string); from S#window.length(2) select k insert into Out;")
    >>> app.statements[1].output.target
    'Out'
    """
    return _read(text, "app")


def read_request(text: str) -> tree.Request | tree.ChangeRequest:
    """An on-demand query of a table or window, or one that changes a table. Raises SyntaxProblem."""
    return _read(text, "request")


def read_expression(text: str) -> tree.Expression:
    """An expression that stands in quotes. Raises SyntaxProblem."""
    return _read(text, "condition")


@cache
def _grammar() -> Lark:
    path = Path(__file__).parent / "grammar.lark"
    return grammar_of(path, path.parents[1] / "expressions.lark", start=["app", "request", "condition"])


@lru_cache(256)
def _read(text: str, start: str) -> Any:
    """A tree, which nothing changes: the same text is read again wherever a state of its statements is, as in each shard."""
    return read(text, _grammar(), _Reader(), _explained, start)


_REFUSED = {
    r"function\s+\w+\s*\[": (
        "scripts (define function) are",
        "an expression in its place, or a statement of another language",
    ),
    r"!\s*[a-z_]": (
        "streams of faults (!S) are",
        "what does not fit is refused by its source, or a dead letter of the job",
    ),
    r"return\b": ("queries that return are", "insert into a stream"),
}
"""What SiddhiQL has and is not read, by how it begins: refused by its name."""


def _explained(text: str, problem: UnexpectedInput) -> SyntaxProblem:
    place = problem.pos_in_stream or 0
    for word, (what, cure) in _REFUSED.items():
        if re.match(word, text[max(place, 0) :], re.IGNORECASE):
            return SyntaxProblem(f"{what} not supported", line=problem.line, column=problem.column, hint=cure)
    return told(text, problem, _grammar(), cure_of_statement)


class Clause(tuple[str, Any]):
    """A clause on its way into its statement: its name and its value."""


def _clauses(parts: list[Any]) -> dict[str, Any]:
    return {part[0]: part[1] for part in parts if isinstance(part, Clause)}


def _selection(parts: list[Any]) -> tree.Selection:
    known = ("items", "group_by", "having", "order_by", "limit", "offset")
    return tree.Selection(**{name: value for name, value in _clauses(parts).items() if name in known})


def _unfolded(step: tree.Step) -> tuple[tree.Step, ...]:
    """The steps of a sequence: parentheses around some, or around one, say nothing there."""
    match step:
        case tree.Group(strict=True):
            return tuple(inner for each in step.steps for inner in _unfolded(each))
        case tree.Group(steps=(only,)):
            return _unfolded(only)
        case tree.Every(step=tree.Group(steps=(first, *rest), strict=strict)) if strict or not rest:
            return tuple(inner for each in (tree.Every(first), *rest) for inner in _unfolded(each))
        case _:
            return (step,)


@v_args(meta=True)
class _ReadInputs(ReadExpressions):  # pyright: ignore[reportGeneralTypeIssues, reportUntypedBaseClass]
    """Streams, joins, patterns and sequences."""

    def source_name(self, meta: Meta, parts: list[Any]) -> tuple[str, bool]:
        return str(parts[-1]), len(parts) > 1 and parts[0] is not None

    def filter(self, meta: Meta, parts: list[Any]) -> tree.Handler:
        return tree.Handler("filter", parts[-1])

    def window(self, meta: Meta, parts: list[Any]) -> tree.Handler:
        return tree.Handler("window", parts[-1])

    def function_handler(self, meta: Meta, parts: list[Any]) -> tree.Handler:
        return self._unknown(meta, f"#{parts[1]}:{parts[2].name}")

    def plain_handler(self, meta: Meta, parts: list[Any]) -> tree.Handler:
        if parts[1].name.lower() == "log":
            return tree.Handler("log", parts[1])
        if parts[1].name.lower() == "pol2cart":
            return tree.Handler("function", parts[1])
        return self._unknown(meta, f"#{parts[1].name}")

    def _unknown(self, meta: Meta, what: str) -> tree.Handler:
        line, column = place_of(meta)
        raise SyntaxProblem(f"{what}(…) is not supported", line=line, column=column, hint="a filter [ … ] or #window.…")

    def stream(self, meta: Meta, parts: list[Any]) -> tree.Stream:
        (name, inner), handlers = parts[0], tuple(parts[1:])
        return tree.Stream(name, inner, handlers, place_of(meta))

    def side(self, meta: Meta, parts: list[Any]) -> tree.Side:
        alias = next((part for part in parts[1:] if isinstance(part, str) and not isinstance(part, Token)), None)
        return tree.Side(parts[0], alias, any(isinstance(part, Token) for part in parts))

    def join(self, meta: Meta, parts: list[Any]) -> tree.Join:
        return tree.Join(parts[0], parts[2], parts[1], parts[3], place_of(meta))

    def bound(self, meta: Meta, parts: list[Any]) -> tree.Basic:
        return tree.Basic(parts[2], parts[0], parts[3] if len(parts) > 3 else None)

    def counted(self, meta: Meta, parts: list[Any]) -> tree.Basic:
        return tree.Basic(parts[0], None, parts[1])

    def absent(self, meta: Meta, parts: list[Any]) -> tree.Basic:
        return tree.Basic(parts[0], absent=True, span=None if parts[1] is None else parts[1].value)

    def lone(self, meta: Meta, parts: list[Any]) -> tree.Basic:
        return tree.Basic(parts[0])

    def count_range(self, meta: Meta, parts: list[Token]) -> tree.Count:
        low, high = (int(part) for part in parts if part.type == "INTEGER")
        return tree.Count(low, high)

    def count_least(self, meta: Meta, parts: list[Token]) -> tree.Count:
        return tree.Count(next(int(part) for part in parts if part.type == "INTEGER"), None)

    def count_most(self, meta: Meta, parts: list[Token]) -> tree.Count:
        return tree.Count(0, next(int(part) for part in parts if part.type == "INTEGER"))

    def count_exact(self, meta: Meta, parts: list[Token]) -> tree.Count:
        count = next(int(part) for part in parts if part.type == "INTEGER")
        return tree.Count(count, count)

    def count_plus(self, meta: Meta, parts: list[Token]) -> tree.Count:
        return tree.Count(1, None, "+")

    def count_star(self, meta: Meta, parts: list[Token]) -> tree.Count:
        return tree.Count(0, None, "*")

    def count_optional(self, meta: Meta, parts: list[Token]) -> tree.Count:
        return tree.Count(0, 1, "?")

    def logical(self, meta: Meta, parts: list[Any]) -> tree.Logical:
        return tree.Logical(parts[0], parts[2], "and" if parts[1].type == "AND" else "or")

    def every(self, meta: Meta, parts: list[Any]) -> tree.Every:
        return tree.Every(parts[0])

    def group(self, meta: Meta, parts: list[Any]) -> tree.Group:
        return tree.Group(tuple(parts))

    def strict_group(self, meta: Meta, parts: list[Any]) -> tree.Group:
        return tree.Group(tuple(parts), strict=True)

    def within(self, meta: Meta, parts: list[Any]) -> Clause:
        return Clause(("span", parts[0].value))

    def pattern(self, meta: Meta, parts: list[Any]) -> tree.Pattern:
        return self._steps(meta, parts, strict=False)

    def sequence(self, meta: Meta, parts: list[Any]) -> tree.Pattern:
        return self._steps(meta, parts, strict=True)

    def _steps(self, meta: Meta, parts: list[Any], strict: bool) -> tree.Pattern:
        steps = tuple(part for part in parts if not isinstance(part, Clause))
        if strict:
            steps = tuple(inner for step in steps for inner in _unfolded(step))
        return tree.Pattern(steps, _clauses(parts).get("span"), strict, place_of(meta))


@v_args(meta=True)
class _Reader(_ReadInputs):  # pyright: ignore[reportGeneralTypeIssues, reportUntypedBaseClass]
    """Clauses and statements: one method a rule, with its place and its children already read."""

    def item(self, meta: Meta, parts: list[Any]) -> tree.Item:
        return tree.Item(parts[0], parts[1])

    def select(self, meta: Meta, parts: list[Any]) -> Clause:
        return Clause(("items", tuple(part for part in parts if isinstance(part, tree.Item))))

    def group_by(self, meta: Meta, parts: list[Any]) -> Clause:
        return Clause(("group_by", tuple(parts)))

    def having(self, meta: Meta, parts: list[Any]) -> Clause:
        return Clause(("having", parts[0]))

    def ordering(self, meta: Meta, parts: list[Any]) -> tree.Ordering:
        return tree.Ordering(parts[0], len(parts) > 1 and parts[1] is not None and parts[1].type == "DESC")

    def order_by(self, meta: Meta, parts: list[Any]) -> Clause:
        return Clause(("order_by", tuple(parts)))

    def limit(self, meta: Meta, parts: list[Any]) -> Clause:
        return Clause(("limit", parts[0]))

    def offset(self, meta: Meta, parts: list[Any]) -> Clause:
        return Clause(("offset", parts[0]))

    def rate_events(self, meta: Meta, parts: list[Any]) -> tuple[int | None, int | None]:
        return int(parts[0]), None

    def rate_time(self, meta: Meta, parts: list[Any]) -> tuple[int | None, int | None]:
        return None, parts[0].value

    def output_rate(self, meta: Meta, parts: list[Any]) -> Clause:
        mode: Any = "all" if parts[0] is None else str(parts[0]).lower()
        return Clause(("rate", tree.Rate(mode, *parts[-1])))

    def all_events(self, meta: Meta, parts: list[Any]) -> Clause:
        return Clause(("kind", "all"))

    def current_events(self, meta: Meta, parts: list[Any]) -> Clause:
        return Clause(("kind", "current"))

    def expired_events(self, meta: Meta, parts: list[Any]) -> Clause:
        return Clause(("kind", "expired"))

    def assignment(self, meta: Meta, parts: list[Any]) -> tree.Assignment:
        return tree.Assignment(parts[0], parts[-1])

    def set(self, meta: Meta, parts: list[Any]) -> Clause:
        return Clause(("set", tuple(parts)))

    def insert(self, meta: Meta, parts: list[Any]) -> tree.Output:
        (name, inner), kind = parts[-1], _clauses(parts).get("kind", "current")
        return tree.Output("insert", name, inner, kind, None, None, place_of(meta))

    def delete(self, meta: Meta, parts: list[Any]) -> tree.Output:
        return self._change(meta, parts, "delete")

    def update(self, meta: Meta, parts: list[Any]) -> tree.Output:
        return self._change(meta, parts, "update")

    def upsert(self, meta: Meta, parts: list[Any]) -> tree.Output:
        return self._change(meta, [part for part in parts if not isinstance(part, Token)], "upsert")

    def _change(self, meta: Meta, parts: list[Any], action: Any) -> tree.Output:
        clauses = _clauses(parts)
        return tree.Output(
            action, parts[0], False, clauses.get("kind", "current"), parts[-1], clauses.get("set"), place_of(meta)
        )

    def query(self, meta: Meta, parts: list[Any]) -> tree.Query:
        annotations = tuple(part for part in parts if isinstance(part, tree.Annotation))
        source = next(part for part in parts if isinstance(part, (tree.Stream, tree.Join, tree.Pattern)))
        return tree.Query(
            source, _selection(parts), _clauses(parts).get("rate"), parts[-1], annotations, place_of(meta)
        )

    def value_key(self, meta: Meta, parts: list[Any]) -> tree.PartitionKey:
        return tree.PartitionKey(parts[1], parts[0])

    def range(self, meta: Meta, parts: list[Any]) -> tuple[Any, str]:
        return parts[0], str(parts[1])[1:-1]

    def range_key(self, meta: Meta, parts: list[Any]) -> tree.PartitionKey:
        return tree.PartitionKey(parts[-1], None, tuple(part for part in parts if isinstance(part, tuple)))

    def partition(self, meta: Meta, parts: list[Any]) -> tree.Partition:
        keys = tuple(part for part in parts if isinstance(part, tree.PartitionKey))
        annotations = tuple(part for part in parts if isinstance(part, tree.Annotation))
        queries = tuple(part for part in parts if isinstance(part, tree.Query))
        return tree.Partition(keys, queries, annotations, place_of(meta))

    def stream_definition(self, meta: Meta, parts: list[Any]) -> tree.Definition:
        return self._defined(meta, parts, "stream")

    def table_definition(self, meta: Meta, parts: list[Any]) -> tree.Definition:
        return self._defined(meta, parts, "table")

    def window_definition(self, meta: Meta, parts: list[Any]) -> tree.Definition:
        return self._defined(meta, parts, "window")

    def trigger_every(self, meta: Meta, parts: list[Any]) -> tree.Definition:
        return tree.Definition("trigger", parts[0], (), (), place_of(meta), every=parts[-1].value)

    def trigger_at(self, meta: Meta, parts: list[Any]) -> tree.Definition:
        text = str(parts[-1])[1:-1]
        return tree.Definition(
            "trigger", parts[0], (), (), place_of(meta), at=None if text.lower() == "start" else text
        )

    def _defined(self, meta: Meta, parts: list[Any], kind: Any) -> tree.Definition:
        attributes = tuple(part for part in parts[1:] if isinstance(part, tuple) and not isinstance(part, Clause))
        window = next((part for part in parts if isinstance(part, tree.Function)), None)
        output = _clauses(parts).get("kind", "all")
        return tree.Definition(kind, parts[0], attributes, (), place_of(meta), window, output)

    def definition(self, meta: Meta, parts: list[Any]) -> tree.Definition:
        made: tree.Definition = parts[-1]
        return replace(made, annotations=tuple(parts[:-1]))

    def dotted(self, meta: Meta, parts: list[Any]) -> str:
        return ".".join(parts)

    def element(self, meta: Meta, parts: list[Any]) -> Any:
        if len(parts) == 1 and isinstance(parts[0], tree.Annotation):
            return parts[0]
        key = parts[0] if isinstance(parts[0], str) and not isinstance(parts[0], Token) else ""
        return key, str(parts[-1])[1:-1]

    def annotation(self, meta: Meta, parts: list[Any]) -> tree.Annotation:
        name = parts[0] if parts[1] is None else f"{parts[0]}:{parts[1]}".lower()
        values = tuple(part for part in parts[2:] if isinstance(part, tuple))
        nested = tuple(part for part in parts[2:] if isinstance(part, tree.Annotation))
        return tree.Annotation(name, values, nested, place_of(meta))

    def condition(self, meta: Meta, parts: list[Any]) -> tree.Expression:
        return parts[0]

    def asking(self, meta: Meta, parts: list[Any]) -> tree.Request:
        return tree.Request(parts[0], parts[1], parts[2], _selection(parts), place_of(meta))

    def changing(self, meta: Meta, parts: list[Any]) -> tree.ChangeRequest:
        return tree.ChangeRequest(_selection(parts), parts[-1])

    def request(self, meta: Meta, parts: list[Any]) -> tree.Request | tree.ChangeRequest:
        return parts[0]

    def app(self, meta: Meta, parts: list[Any]) -> tree.App:
        given = [annotation for part in parts for annotation in part.annotations]
        return tree.App(tuple(parts), tuple(a for a in given if a.name.startswith("app:")))
