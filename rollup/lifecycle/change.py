"""A declaration that has changed since the tables were last written: what that means, and what is done about it.

An aggregate that is added gets its column in every table, filled from now on; `Page.valid` says from when on its
buckets are complete, and every answer that reaches further back says so. One that is dropped keeps its column, no
longer filled. What makes old and new rows unmergeable (keys, levels, types, zone) is refused; what changes the meaning
of rows to come (filter, time, stream) needs a clear yes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from sqlglot import exp

from rollup.aggregation.state import State
from rollup.core.dialects import to_sql
from rollup.core.errors import StoreError
from rollup.lifecycle.book import Book, Page
from rollup.lifecycle.replay.compare import readable
from rollup.lifecycle.replay.rebuild import closed_until
from rollup.plan.aggregation import Aggregation, Clock
from rollup.retrieval.questions import Ask
from rollup.stores.base import Store

_FIXED = {
    "keys": "the group keys",
    "levels": "the durations",
    "clock": "the kind of time",
    "zone": "the zone of times without one",
    "cut": "whose zone cuts the buckets",
}
_TIMES = ("clock", "zone", "cut")
"""What rows depend on, and tables do not."""
_MEANING = {"stream": "the stream", "filter": "the filter", "time": "the time of events"}
_OWN = "each row's own"
FORM = 2
"""Which way expressions are written in a declaration. Those of another form say the same in other words."""
_BESIDE = "declare it under another name beside the old one and fill it with `rollup replay`, or drop the old tables"


@dataclass(frozen=True)
class Change:
    """What is different: columns added and dropped, what cannot be, what needs a yes, and what is only worth saying."""

    added: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    meaning: tuple[str, ...] = ()
    said: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """For people to read, one difference a line."""
        lines = [f"added: {name}, filled from now on" for name in self.added]
        lines += [f"dropped: {name}; what it holds stays in the tables, no longer filled" for name in self.dropped]
        return [
            *lines,
            *self.said,
            *(f"needs --accept: {line}" for line in self.meaning),
            *(f"refused: {line}" for line in self.refused),
        ]

    def __bool__(self) -> bool:
        return bool(self.lines)


def declaration(aggregation: Aggregation) -> dict[str, Any]:
    """What tables depend on, as plain data: two equal ones mean the same tables."""
    return {
        "form": FORM,
        "stream": aggregation.stream,
        "filter": _text(aggregation.filter),
        "clock": str(aggregation.clock),
        "time": _text(aggregation.time),
        "zone": aggregation.zone,
        "cut": _OWN if aggregation.own_zones else aggregation.zone,
        "levels": [level.name for level in aggregation.levels],
        "keys": {key.name: [str(key.type), _text(key.expression)] for key in aggregation.keys},
        "values": {value.name: [str(value.kind.table), _text(value.prepare)] for value in aggregation.values},
        "buffer": aggregation.buffer,
        "policy": str(aggregation.policy),
    }


def compare(old: Mapping[str, Any], new: Mapping[str, Any], filled: bool = True) -> Change:
    """What is different between two declarations of tables, which may not be `filled` yet: then no row means anything."""
    if old.get("form") != new.get("form"):
        return _compare_forms(old, new)
    if "cut" not in old:  # written before a declared zone cut texts, too
        old = {**old, "cut": _OWN if old["clock"] == Clock.STRING else old["zone"]}
    before, after = old["values"], new["values"]
    refused = [
        f"{what} ({_short(old[key])} → {_short(new[key])}): rows of both do not merge"
        for key, what in _FIXED.items()
        if old[key] != new[key]
        and (filled or key not in _TIMES)
        and not (key == "zone" and old["cut"] != new["cut"])  # which says it
    ]
    for name in sorted(set(before) & set(after)):
        if before[name] != after[name]:
            which = "type" if before[name][0] != after[name][0] else "expression"
            at = 0 if which == "type" else 1
            refused.append(f"column {name} has another {which} ({before[name][at]} → {after[name][at]})")
    added, dropped = tuple(n for n in after if n not in before), tuple(n for n in before if n not in after)
    meaning = [
        f"{what} ({_short(old[key])} → {_short(new[key])})"
        for key, what in _MEANING.items()
        if filled and old[key] != new[key]
    ]
    said = [f"{key}: {old[key]} → {new[key]}, from now on" for key in ("buffer", "policy") if old[key] != new[key]]
    said += [
        f"{b} looks like {a} under a new name; its values from before stay in {a}"
        for a in dropped
        for b in added
        if before[a][1] == after[b][1]
    ]
    return Change(added, dropped, tuple(refused), tuple(meaning), tuple(said))


def _compare_forms(old: Mapping[str, Any], new: Mapping[str, Any]) -> Change:
    """What is different when the old declaration is of an earlier form: all but the words of expressions.

    Then two expressions could share a column for the count of their values; they now have names of their own, and what
    is stored under the old ones may be wrong.
    """
    shared = [name for name in old["values"] if name not in new["values"] and _renamed(name, new["values"])]
    if shared:
        what = f"columns {', '.join(shared)} were shared by expressions that now have columns of their own"
        return Change(refused=(f"{what}; their numbers may be mixed",))
    plain = _without_words(new)
    return compare({**_without_words(old), "form": None}, {**plain, "form": None})


def _renamed(name: str, names: Collection[str]) -> bool:
    stem = name.rstrip("_")
    return any(other.startswith(f"{stem}_") and len(other) == len(stem) + 9 for other in names)


def _without_words(declared: Mapping[str, Any]) -> dict[str, Any]:
    """A declaration whose expressions say no more than that they are there."""
    plain = {name: None if declared[name] is None else "" for name in ("filter", "time")}
    columns = {part: {name: [kind, name] for name, (kind, _) in declared[part].items()} for part in ("keys", "values")}
    return {**declared, **plain, **columns}


def taken(aggregation: Aggregation, state: State | None) -> bool:
    """Whether tables hold an event; `state` is that of the newest commit."""
    return state is not None and closed_until(state, aggregation) is not None


def settle(book: Book, store: Store, aggregation: Aggregation, state: State | None, accept: bool = False) -> Change:
    """Bring the tables in line with the declaration before the job starts; what was different.

    `state` is that of the newest commit. Raises StoreError, with what to do, for what is refused or needs a yes; then
    nothing has been touched.
    """
    page, new = book.page(), declaration(aggregation)
    if page.declaration is None:
        book.write(replace(page, declaration=new))
        return Change()
    change = compare(page.declaration, new, taken(aggregation, state))
    if change.refused:
        raise StoreError(
            f"{aggregation.name} has tables of another declaration: {'; '.join(change.refused)}", hint=_BESIDE
        )
    if change.meaning and not accept:
        raise StoreError(
            f"{aggregation.name} means something else now: {'; '.join(change.meaning)}",
            hint="`rollup change CONF --accept` goes on from now",
        )
    if not change:
        if page.declaration != new:
            book.write(replace(page, declaration=new))
        return change
    since = None if state is None else closed_until(state, aggregation)
    _evolve(store, aggregation, change, page)
    book.write(_written(page, new, change, since))
    book.note("change", lines=change.lines, since=since)
    return change


def _evolve(store: Store, aggregation: Aggregation, change: Change, page: Page) -> None:
    again = [name for name in change.added if name in page.ended]
    added = pa.schema([(name, aggregation.kinds[name].table) for name in change.added])
    if change.added or change.dropped:
        store.evolve(added, [*(name for name in page.ended if name not in again), *change.dropped])


def _written(page: Page, new: Mapping[str, Any], change: Change, since: int | None) -> Page:
    valid = {name: instant for name, instant in page.valid.items() if name not in change.dropped}
    ended = {name: instant for name, instant in page.ended.items() if name not in change.added}
    if since is not None:
        valid |= dict.fromkeys(change.added, since)
    ended |= dict.fromkeys(change.dropped, -(2**63) if since is None else since)
    return replace(page, declaration=new, valid=valid, ended=ended)


def filled(page: Page, span: tuple[int, int], everything_from: int | None) -> Page:
    """The page after a replay of a range: columns added later are complete from its start on, where it reaches them."""
    valid: dict[str, int] = {}
    for name, since in page.valid.items():
        start = span[0] if span[1] >= since > span[0] else since
        if everything_from is None or start > everything_from:
            valid[name] = start
    return replace(page, valid=valid)


def notes(page: Page, ask: Ask) -> list[str]:
    """What a reader of an answer should know: which of its columns are not complete, and until when."""
    names = _asked(ask)
    found: list[str] = []
    for output in ask.aggregation.outputs:
        columns = {node.name for node in output.final.find_all(exp.Column)} & set(page.valid)
        since = max((page.valid[name] for name in columns), default=None)
        if since is not None and ask.start < since and (names is None or output.name in names):
            found.append(
                f"{output.name} was added later: "
                f"buckets that start before {readable(since)} are without the events before that"
            )
    return found


def _asked(ask: Ask) -> set[str] | None:
    if ask.selection.items is None:
        return None
    return {node.name for item in ask.selection.items for node in item.expression.find_all(exp.Column)}


def _text(node: exp.Expr | None) -> str | None:
    return None if node is None else to_sql(node)


def _short(value: Any) -> str:
    return ", ".join(value) if isinstance(value, (dict, list)) else str(value)
