"""What statements give on its way to a sink: the sink is brought what it lacks, whatever has happened to either side.

A stream's rows are numbered over the whole line of commits (`rollup.sinks.base`). A sink that is ahead, because commits
went back, is passed over until rows come that it has not. One that is behind, because it was restored or removed, gets the
rows from the commits that are kept. What cannot be put right is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pyarrow as pa
import structlog

from rollup.core.columns import ColumnEngine
from rollup.core.errors import StoreError
from rollup.core.json_line import json_line
from rollup.sinks.base import Choosing, Held, Sink, Unfit, say_filled
from rollup.sources.base import DEAD
from rollup.statements.committed.commits import Commits, Saved
from rollup.statements.flow import RECEIVED
from rollup.stores.faults import point

SetAside = Callable[[pa.Table, str, int], None]
"""Takes dead letters of a line of output, and how many rows it has then: the same ones may come again."""
_ELSEWHERE = "give the sink another place, which then begins with the rows that come from now on"


class Delivery:
    """The way of one stream to its sink."""

    def __init__(self, stream: str, sink: Sink, commits: Commits | None, aside: SetAside | None = None) -> None:
        self._stream, self._sink, self._commits = stream, sink, commits
        if aside is not None and isinstance(sink, Choosing):
            sink.aside = partial(self._aside, aside)
        self._held: Held | None = None  # what the sink has, as long as this process has last seen to it

    def entered(self, last: Saved) -> tuple[str, int]:
        """What a commit notes of the sink: its place, and the row that it begins with, of those that follow the last commit."""
        place, since = last.sinks.get(self._stream, ("", 0))
        return (place, since) if place == self._sink.place else (self._sink.place, self._first(last))

    def bring(self, saved: Saved, engine: ColumnEngine) -> None:
        """Bring what the sink lacks of the rows up to a commit. Raises StoreError when that cannot be told, or is gone."""
        rows, end = _given(saved, self._stream), saved.outputs.get(self._stream, Held(0))
        if not self._sink.tells:
            if rows is not None:
                self._write(rows, saved, end)
            return
        known, self._held = self._held, None
        held = known or self._sink.held(saved.id)
        if held is None:
            say_filled(self._sink, self._stream)
            held = Held(self._begin(saved), None)
        begin = end.rows - (0 if rows is None else rows.num_rows)
        if held.rows < begin:
            rows = pa.concat_tables([*self._kept(saved, held.rows, begin), *(() if rows is None else (rows,))])
        elif held.rows > begin or rows is None:
            if held.rows > end.rows and known is None:
                self._say_ahead(held.rows - end.rows)
            rows = None if rows is None or held.rows > end.rows else self._rest(rows, held, end, engine)
        if rows is not None and rows.num_rows:
            self._write(rows, saved, end)
        self._held = end if held.rows < end.rows else held

    def _aside(self, aside: SetAside, line: str, rows: int, unfit: Sequence[Unfit]) -> None:
        """Make dead letters of rows that the sink refuses, once each, however often they are brought."""
        structlog.get_logger("rollup").warning(
            "a sink refuses rows, which are dead letters",
            stream=self._stream,
            sink=self._sink.place,
            rows=len(unfit),
            reason=unfit[0].reason,
        )
        letters = [
            {
                "stream": self._stream,
                "position": f"row {each.number}",
                "reason": each.reason,
                "raw": json_line(each.row),
            }
            for each in unfit
        ]
        aside(pa.Table.from_pylist(letters, schema=DEAD), f"{line}-{self._stream}", rows)

    def _first(self, last: Saved) -> int:
        return last.outputs.get(self._stream, Held(0)).rows

    def _begin(self, saved: Saved) -> int:
        """The row that a sink which has nothing is to begin with: that of the last commit where it is a new one."""
        place, since = saved.sinks.get(self._stream, ("", 0))
        rows = _given(saved, self._stream)
        return since if place == self._sink.place else self._first(saved) - (0 if rows is None else rows.num_rows)

    def _write(self, rows: pa.Table, saved: Saved, end: Held) -> None:
        self._sink.write(rows, saved.id, end)
        point("statements.sink")

    def _say_ahead(self, rows: int) -> None:
        structlog.get_logger("rollup").info(
            "a sink is ahead of the statements: it is passed over until rows come that it has not",
            stream=self._stream,
            sink=self._sink.place,
            rows=rows,
        )

    def _rest(self, rows: pa.Table, held: Held, end: Held, engine: ColumnEngine) -> pa.Table:
        """The rows of a commit that a sink has not. Raises StoreError when it has others in place of those before them."""
        left = rows.slice(rows.num_rows - (end.rows - held.rows))
        if held.after(left, engine).other_than(end):
            raise StoreError(
                f"{self._sink.place} has {held.rows} rows of {self._stream}, and the events that came again give others in "
                "their place: what it lacks of them, and what it has too many, cannot be told",
                hint=_ELSEWHERE,
            )
        return left

    def _kept(self, saved: Saved, has: int, begin: int) -> list[pa.Table]:
        """Rows that commits before the last one gave. Raises StoreError when they are no longer kept."""
        found, number, first = list[pa.Table](), saved.number - 1, begin
        while first > has and self._commits is not None and number > 0:
            try:
                before = self._commits.read(number)
            except FileNotFoundError:
                break
            rows = _given(before, self._stream)
            if rows is not None and before.id == saved.id and self._first(before) == first:
                found.append(rows)
                first -= rows.num_rows
            number -= 1
        if first > has:
            raise StoreError(
                f"{self._sink.place} has {has} of the {begin} rows that {self._stream} has given: it was restored or "
                f"removed, and rows {has + 1} to {first} are no longer kept",
                hint=f"bring a newer copy of it back, or {_ELSEWHERE}",
            )
        structlog.get_logger("rollup").warning(
            "a sink lacked rows, and gets them again from the commits that are kept",
            stream=self._stream,
            sink=self._sink.place,
            rows=begin - has,
        )
        whole = pa.concat_tables(found[::-1])
        return [whole.slice(has - first)]


def _given(saved: Saved, stream: str) -> pa.Table | None:
    """The rows of a commit for a sink; None when there are none."""
    rows = saved.given.get(stream)
    return None if rows is None or not rows.num_rows else rows.drop_columns([RECEIVED])
