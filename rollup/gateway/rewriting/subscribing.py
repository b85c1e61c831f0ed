"""`SUBSCRIBE` at the endpoint: a `COPY … TO STDOUT` that does not end, as drivers of PostgreSQL can read one.

    COPY (SUBSCRIBE TradeAgg PER 'minutes') TO STDOUT
    SUBSCRIBE TradeAgg PER 'minutes' SINCE 'last 2 hours' FROM COMMIT 17 WHERE symbol = 'A'

Its lines are those of `rollup.subscribe.Change.table`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from math import inf, isnan
from typing import Any, TypeVar

import pyarrow as pa

from rollup.ask import Asker
from rollup.core.errors import QueryError, SyntaxProblem
from rollup.lang.sql.source import Names, position
from rollup.plan.aggregation import Aggregation
from rollup.subscribe import EVERY, Subscription

T = TypeVar("T")
HINT = (
    "[COPY (] SUBSCRIBE name PER 'level or period' [SINCE 'time'] [FROM COMMIT number] [WHERE condition] "
    "[) TO STDOUT [WITH (FORMAT text | csv, HEADER)]]"
)
_LONGEST = 10_000
_AT_ONCE = 1_000
_BLANK = r"(?:\s|--[^\n]*(?:\n|\Z)|/\*.*?\*/)*+"
_BEGIN = re.compile(rf"{_BLANK}(copy{_BLANK}\({_BLANK})?subscribe\b(?:\s+to\b)?", re.IGNORECASE | re.DOTALL)
_NAME = re.compile(rf'{_BLANK}(?:\w+\.|"[^"]+"\.)?(?:"((?:[^"]|"")+)"|([^\W\d]\w*))', re.DOTALL)
_QUOTED = r"'((?:[^']|'')*)'"
_CLAUSES = {
    "per": (
        re.compile(r"\s*\bper\b", re.IGNORECASE),
        re.compile(rf"{_BLANK}{_QUOTED}"),
        "a level or a period in quotes",
    ),
    "since": (re.compile(r"\s*\bsince\b", re.IGNORECASE), re.compile(rf"{_BLANK}{_QUOTED}"), "a time in quotes"),
    "commit": (re.compile(r"\s*\bfrom\s+commit\b", re.IGNORECASE), re.compile(r"\s*(\d{1,18})\b"), "a number"),
}
_WHERE = re.compile(r"\s*\bwhere\b(.*)", re.IGNORECASE | re.DOTALL)
_END = re.compile(r"\)\s*to\s+stdout\b\s*(?:with\b)?\s*(?:\(([^()]*)\)|([\w\s]*))\s*\Z", re.IGNORECASE)
_OPTION = re.compile(
    r"\s*(format)?\s*['\"]?(text|csv)['\"]?\s*|\s*(header)\s*(true|on|1|false|off|0)?\s*", re.IGNORECASE
)
_UNSAFE = re.compile(r"[\\\t\n\r]")
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}


@dataclass(frozen=True)
class Wanted:
    """What a text subscribes to, and how its lines are written."""

    name: str
    quoted: bool
    per: str
    since: str | None
    commit: int | None
    where: str | None
    csv: bool = False
    header: bool = False
    place: int = 0


def wanted(sql: str) -> Wanted | None:
    """What a text subscribes to; None for any other text. Raises SyntaxProblem with the place of what is wrong.

    >>> found = wanted("COPY (SUBSCRIBE TradeAgg PER 'days' FROM COMMIT 7 WHERE k = 'a') TO STDOUT WITH (FORMAT csv)")
    >>> found.name, found.per, found.commit, found.where, found.csv
    ('TradeAgg', 'days', 7, "k = 'a'", True)
    """
    begin = _BEGIN.match(sql[:_LONGEST])
    if begin is None:
        return None
    if len(sql) > _LONGEST:
        raise SyntaxProblem(f"a SUBSCRIBE of more than {_LONGEST} characters is not taken", hint=HINT)
    text, options = sql.rstrip().removesuffix(";").rstrip(), ""
    if begin[1]:
        end = _END.search(text)
        if end is None:
            raise SyntaxProblem("this COPY of a SUBSCRIBE does not end with TO STDOUT", hint=HINT).at(1, 1)
        text, options = text[: end.start()].rstrip(), end[1] or end[2] or ""
    name = _NAME.match(text, begin.end())
    if name is None:
        raise _wrong(sql, begin.end(), "SUBSCRIBE needs the name of an aggregation")
    at, said = name.end(), dict[str, str]()
    for clause, (word, value, what) in _CLAUSES.items():
        if (found := word.match(text, at)) is None:
            continue
        given = value.match(text, found.end())
        if given is None:
            raise _wrong(sql, found.end(), f"{found[0].strip().upper()} takes {what}")
        said[clause], at = given[1].replace("''", "'"), given.end()
    where = _WHERE.match(text, at)
    if where is None and text[at:].strip():
        raise _wrong(sql, at, "this cannot stand here")
    if "per" not in said:
        raise _wrong(sql, at, "SUBSCRIBE needs a level or a period: PER 'minutes', PER '15 minutes'")
    return Wanted(
        name[1].replace('""', '"') if name[1] else name[2],
        bool(name[1]),
        said["per"],
        said.get("since"),
        int(said["commit"]) if "commit" in said else None,
        where[1].strip() if where else None,
        **_written(options),
        place=name.start(1 if name[1] else 2),
    )


def _wrong(sql: str, at: int, message: str) -> Exception:
    at += len(sql[at:]) - len(sql[at:].lstrip())
    return SyntaxProblem(message, hint=HINT).at(*position(sql, at))


def _written(options: str) -> Mapping[str, bool]:
    found = {"csv": False, "header": False}
    for option in filter(str.strip, re.split(r",|\s+(?=header)", options, flags=re.IGNORECASE)):
        match = _OPTION.fullmatch(option)
        if match is None:
            raise SyntaxProblem(f"COPY of a SUBSCRIBE has no option {option.strip()!r}", hint=HINT).at(1, 1)
        if match[2]:
            found["csv"] = match[2].lower() == "csv"
        else:
            found["header"] = (match[4] or "on").lower() in ("true", "on", "1")
    return found


class Subscriptions:
    """What users of one grant subscribe to; they share a few threads, which no reader holds."""

    def __init__(self, asker: Callable[[], Asker]) -> None:
        self._open = asker
        self._pool = ThreadPoolExecutor(4, "subscribe")

    @cached_property
    def asker(self) -> Asker:
        """What reads for them."""
        return self._open()

    def copied(self, sql: str) -> Copied | None:
        """The stream that answers a text; None for a text that is no subscription. Raises SyntaxProblem."""
        found = wanted(sql)
        return None if found is None else Copied(self, found, sql)

    async def run(self, work: Callable[[], T]) -> T:
        """Do some work in one of the threads."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)


@dataclass
class Copied:
    """One subscription as the rows of a COPY."""

    parent: Subscriptions
    wanted: Wanted
    sql: str

    async def begin(self) -> int:
        """Check what is asked; the number of columns. Raises a RollupError."""
        self.listening = await self.parent.run(self._subscribed)
        return len(self.listening.columns)

    def _subscribed(self) -> Subscription:
        said, asker = self.wanted, self.parent.asker
        known: Mapping[str, Aggregation] = asker.program.aggregations
        name = Names(known).find(said.name, said.quoted)
        if name is None:
            problem = QueryError(f"aggregation {said.name!r} is not defined", hint=f"known are {', '.join(known)}")
            raise problem.at(*position(self.sql, said.place))
        return asker.subscribe(name, said.per, said.since, said.where, said.commit)

    async def rows(self) -> AsyncIterator[list[str]]:
        """The lines of each change, some at once; none where there was no new commit in a while."""
        said, listening = self.wanted, self.listening
        head = [_line(listening.columns, said.csv)] if said.header else []
        while True:
            change = await self.parent.run(listening.step)
            yield head
            head = []
            if change is None:
                await asyncio.sleep(EVERY)
                continue
            for batch in change.table.to_batches(max_chunksize=_AT_ONCE):
                yield await self.parent.run(lambda batch=batch: lines(batch, said.csv))


def lines(rows: pa.RecordBatch, csv: bool) -> list[str]:
    r"""Rows as the lines of a COPY.

    >>> lines(pa.record_batch({"a": [1, None], "b": ["x\ty", ""], "c": [True, False]}), False)
    ['1\tx\\ty\tt\n', '\\N\t\tf\n']
    """
    return [_line(values, csv) for values in zip(*(column.to_pylist() for column in rows.columns), strict=True)]


def _line(values: Any, csv: bool) -> str:
    if csv:
        return ",".join(map(_in_csv, values)) + "\n"
    return (
        "\t".join(
            "\\N" if value is None else _UNSAFE.sub(lambda found: _ESCAPES[found[0]], _text(value)) for value in values
        )
        + "\n"
    )


def _in_csv(value: Any) -> str:
    if value is None:
        return ""
    text = _text(value)
    plain = text and not any(sign in text for sign in ',"\n\r') and text != "\\."
    return text if plain else '"' + text.replace('"', '""') + '"'


def _text(value: Any) -> str:
    """A value as PostgreSQL writes it."""
    match value:
        case bool():
            return "t" if value else "f"
        case float():
            return "NaN" if isnan(value) else {inf: "Infinity", -inf: "-Infinity"}.get(value, repr(value))
        case bytes():
            return "\\x" + value.hex()
        case datetime() | date():
            return value.isoformat(" ") if isinstance(value, datetime) else value.isoformat()
        case _:
            return str(value)
