"""`(partition by … store … with … where …)`, read from its words."""

from __future__ import annotations

from typing import Any, Literal

from rollup.lang.streamcruncher import tree
from rollup.lang.streamcruncher.cursor import Cursor
from rollup.lang.streamcruncher.semantics import AGGREGATES

UNITS = {"millisecond": 1, "second": 1000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000}
"""Milliseconds of a unit; the plural is one as well."""
_COMPARE = ("<=", ">=", "<>", "!=", "<", ">", "=")
_STATUS = "$row_status"


def read_partition(cursor: Cursor, chained: bool) -> tree.Partition:
    """A partition; `chained`: it stands behind another, so its filter begins with a status."""
    place = cursor.place
    cursor.expect("(", "partition")
    by = _columns_until_store(cursor) if cursor.take("by") else ()
    cursor.expect("store")
    window = _window(cursor)
    pinned, aggregates = False, tuple[tree.Aggregate, ...]()
    if cursor.take("with"):
        pinned = cursor.take("pinned")
        aggregates = _aggregates(cursor)
    feed, where, filtered = None, None, cursor.take("where")
    if filtered:
        feed = _feed(cursor, chained)
        if feed is None or cursor.take("and"):
            where = ReadCondition(cursor).condition()
    if chained and not filtered:
        raise cursor.refuse("chained partitions always have a where", "where $row_status is new")
    cursor.expect(")")
    return tree.Partition(by, window, pinned, aggregates, feed, where, filtered, place)


def _columns_until_store(cursor: Cursor) -> tuple[str, ...]:
    found = list[str]()
    while cursor.peek() != "store":
        found.append(cursor.name("a column"))
        if not cursor.take(","):
            break
    return tuple(found)


def _names(cursor: Cursor) -> tuple[str, ...]:
    found = [cursor.name("a column")]
    while cursor.take(","):
        found.append(cursor.name("a column"))
    return tuple(found)


def _window(cursor: Cursor) -> tree.Window:
    place, word = cursor.place, cursor.peek()
    if word not in ("last", "latest", "random", "highest", "lowest"):
        raise cursor.problem("last, latest, random, highest or lowest")
    cursor.next()
    size = _size(cursor, "a number of rows or a length of time")
    kind: Any = word
    if word == "last" and cursor.peek().removesuffix("s") in UNITS:
        span = size * UNITS[cursor.word().removesuffix("s")]
        most = _size(cursor, "the greatest number of rows") if cursor.take("max") else None
        return tree.Window("time", span, most, None, (), place)
    if word not in ("highest", "lowest"):
        return tree.Window(kind, size, None, None, (), place)
    cursor.expect("using")
    using = cursor.name("a column")
    group = _names(cursor) if cursor.take("with", "update", "group") else ()
    return tree.Window(kind, size, None, using, group, place)


def _size(cursor: Cursor, what: str) -> int:
    size = cursor.number(what)
    if size < 1:
        cursor.at -= 1
        raise cursor.refuse("a window holds at least one row", "a number above 0")
    return size


def _aggregates(cursor: Cursor) -> tuple[tree.Aggregate, ...]:
    found = [_aggregate(cursor)]
    while cursor.take(","):
        found.append(_aggregate(cursor))
    return tuple(found)


def _aggregate(cursor: Cursor) -> tree.Aggregate:
    place, function = cursor.place, cursor.name("an aggregate")
    cursor.expect("(")
    column, arguments = cursor.name("a column"), list[Any]()
    if function.lower() == "custom":
        function = column
        cursor.expect(",")
        column = cursor.name("a column")
        while cursor.take(","):
            arguments.append(_plain(cursor))
    difference = cursor.take("$diff")
    cursor.expect(")")
    entrance = cursor.take("entrance", "only")
    cursor.take("as")
    name = cursor.name("the aggregate's name")
    function = function.lower() if function.lower() in AGGREGATES else function
    return tree.Aggregate(function, column, tuple(arguments), difference, entrance, name, place)


def _plain(cursor: Cursor) -> Any:
    kind, text = cursor.kind(), str(cursor.next())
    if kind == "STRING":
        return text[1:-1].replace("''", "'")
    return float(text) if "." in text else int(text) if kind == "NUMBER" else text


def _feed(cursor: Cursor, chained: bool) -> Literal["new", "dead"] | None:
    if cursor.peek() != _STATUS:
        if chained:
            raise cursor.refuse(
                "the filter of a chained partition begins with a status", "where $row_status is new and …"
            )
        return None
    if not chained:
        raise cursor.refuse(
            "`$row_status` stands only in chained partitions and in the query's where", "where s.$row_status is new"
        )
    cursor.expect(_STATUS, "is")
    for status in ("new", "dead"):
        if cursor.take(status):
            return status
    raise cursor.refuse("a chained partition is fed by `new` or `dead` rows", "$row_status is new, $row_status is dead")


class ReadCondition:
    """The filter of a partition: comparisons, arithmetic, `in`, `is null`, and, or, not."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor

    def condition(self) -> tree.Condition:
        """`or` binds least."""
        return self._joined("or", self._and)

    def _and(self) -> tree.Condition:
        return self._joined("and", self._not)

    def _joined(self, word: str, part: Any) -> tree.Condition:
        place, parts = self._cursor.place, [part()]
        while self._cursor.take(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else tree.Operation(word, tuple(parts), place)

    def _not(self) -> tree.Condition:
        place = self._cursor.place
        if self._cursor.take("not"):
            return tree.Operation("not", (self._not(),), place)
        return self._comparison()

    def _comparison(self) -> tree.Condition:
        cursor, place = self._cursor, self._cursor.place
        left = self._sum()
        for word in ("like", "between"):
            if cursor.peek() == word or (cursor.peek() == "not" and cursor.peek(1) == word):
                raise cursor.refuse(f"`{word}` is not supported in a partition", "comparisons, in, is null")
        if cursor.take("is", "null"):
            return tree.Operation("is null", (left,), place)
        if cursor.take("is", "not", "null"):
            return tree.Operation("not", (tree.Operation("is null", (left,), place),), place)
        negated = cursor.take("not", "in")
        if negated or cursor.take("in"):
            return self._membership(left, negated, place)
        for sign in _COMPARE:
            if cursor.take(sign):
                return tree.Operation("!=" if sign == "<>" else sign, (left, self._sum()), place)
        return left

    def _membership(self, left: tree.Condition, negated: bool, place: tree.Place) -> tree.Condition:
        cursor = self._cursor
        cursor.expect("(")
        if cursor.peek() == "select":
            return tree.Membership(left, (), self._query(), negated, place)
        choices = [self._sum()]
        while cursor.take(","):
            choices.append(self._sum())
        cursor.expect(")")
        return tree.Membership(left, tuple(choices), None, negated, place)

    def _query(self) -> str:
        depth, words = 1, list[str]()
        while True:
            token = self._cursor.next()
            depth += {"(": 1, ")": -1}.get(str(token), 0)
            if depth == 0:
                return " ".join(words)
            words.append(str(token))

    def _sum(self) -> tree.Condition:
        return self._signs(("+", "-"), lambda: self._signs(("*", "/"), self._operand))

    def _signs(self, signs: tuple[str, ...], part: Any) -> tree.Condition:
        left = part()
        while self._cursor.peek() in signs:
            place, sign = self._cursor.place, str(self._cursor.next())
            left = tree.Operation(sign, (left, part()), place)
        return left

    def _operand(self) -> tree.Condition:
        cursor, place = self._cursor, self._cursor.place
        if cursor.take("("):
            inside = self.condition()
            cursor.expect(")")
            return inside
        if cursor.take("-"):
            return tree.Operation("-", (self._operand(),), place)
        if cursor.kind() in ("NUMBER", "STRING"):
            return tree.Literal_(_plain(cursor), place)
        if cursor.peek() == _STATUS:
            raise cursor.refuse(
                "`$row_status` may only be the first condition of a chained partition's filter",
                "where $row_status is new and …",
            )
        return self._word(place)

    def _word(self, place: tree.Place) -> tree.Condition:
        cursor = self._cursor
        if cursor.peek() == "exists":
            raise cursor.refuse("`exists` is not supported in a partition", "comparisons, in, is null")
        if cursor.kind(1) == "SIGN" and cursor.peek(1) == "(":
            raise cursor.refuse(f"functions ({cursor.said()}) are not supported in a partition", "comparisons, in")
        if cursor.take("null"):
            return tree.Literal_(None, place)
        name = cursor.name("a column, a number or a text")
        return tree.Column(cursor.name("a column") if cursor.take(".") else name, place)
