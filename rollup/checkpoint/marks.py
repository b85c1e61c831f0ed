"""Where an aggregation is in a stream: the mark of it in every commit, and what becomes of it when a log goes back.

A mark has the streaming query (`query`), the last of its batches (`batch`), the arrival that follows (`arrivals`) and
the `input` it holds. Numbers of batches only say how far the log of the query must go back; when batches are planned
anew with other contents, an aggregation that is ahead takes what its input lacks of them and nothing else.

A log that goes back is noted in it, and in the marks from then on, as one of `plans`: [a name, the last batch that
stayed as it was planned]. So a mark of before, from a backup, is not taken for one of batches that are other ones now.

The input is the offsets that follow, or the names of files by batch: `files` of [batch, names] for the newest; it says
nothing of the batches up to `since`. `ahead` is what it holds of batches that will be planned anew.

`newest` is the time that events of the last batch were measured against, where that was ahead of the clock; `zones` the
version of the database of zones by which its buckets were cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rollup.checkpoint.inputs import FILES, OFFSETS, Input, joined, names, together
from rollup.core import zones

Mark = Mapping[str, Any]
Plans = Sequence[Sequence[Any]]
_BATCHES, _NAMES, _LEAST = 64, 1024, 4
"""So many batches' names are kept, unless that is more names than this; but those of the last few always."""


class Unknown(Exception):
    """A mark no longer says which input is of the batches after one."""


def ahead(mark: Mark | None, query: str) -> Input:
    """What of the batches of a query to come an aggregation has already; nothing in the ordinary course."""
    found = mark.get("input", {}).get("ahead") if mark is not None and mark["query"] == query else None
    if not found:
        return {}
    return {FILES: found} if isinstance(found, str) else {OFFSETS: found}


def done(mark: Mark | None, query: str, batch: int) -> bool:
    """Whether an aggregation has committed a batch of a query already, before a crash."""
    return mark is not None and mark["query"] == query and mark["batch"] >= batch


def lost(mark: Mark | None, query: str | None) -> bool:
    """Whether what a mark holds came of another query than that of its stream: the checkpoint is gone.

    >>> lost(after(None, "q", 0, 10, {}), "p"), lost(none("q", -1), "p")
    (True, False)
    """
    return mark is not None and mark["query"] != query and int(mark["batch"]) >= 0


def arrivals(mark: Mark | None) -> int:
    """The arrival that follows."""
    return 0 if mark is None else int(mark["arrivals"])


def after(mark: Mark | None, query: str, batch: int, following: int, held: Input, plans: Plans = ()) -> Mark:
    """The mark after a batch that holds an input, all of which the aggregation has now.

    >>> after(None, "q", 0, 10, {"offsets": {"0": 10}})
    {'query': 'q', 'batch': 0, 'arrivals': 10, 'input': {'since': -1, 'offsets': {'0': 10}}}
    """
    same = mark is not None and mark["query"] == query
    since = int(mark["batch"]) if mark is not None and same else batch - 1
    known: Mapping[str, Any] = mark.get("input", {"since": since}) if mark is not None and same else {"since": since}
    if OFFSETS in held:
        known = _offsets(known, held)
    elif FILES in held:
        known = _files(known, batch, held)
    planned = {"plans": [list(plan) for plan in plans]} if plans else {}
    return {"query": query, "batch": batch, "arrivals": following, "input": known, **planned}


def measured(mark: Mark, newest: int) -> Mark:
    """A mark with what its last batch was measured by: a time for its events, and the database of zones."""
    return {
        **{name: value for name, value in mark.items() if name != "newest"},
        **({"newest": newest} if newest else {}),
        "zones": zones.VERSION,
    }


def other_zones(mark: Mark | None) -> str | None:
    """The version of the database of zones that a mark is of, where that is another one than this program's."""
    version = None if mark is None else mark.get("zones")
    return None if version == zones.VERSION else version


def none(query: str, batch: int) -> Mark:
    """The mark of an aggregation that has had nothing yet of a query, whose last batch before it is given (-1: none).

    >>> lowered(none("q", -1), 3)
    {'query': 'q', 'batch': -1, 'arrivals': 0, 'input': {'since': -1}}
    """
    return {"query": query, "batch": batch, "arrivals": 0, "input": {"since": batch}}


def _offsets(before: Mapping[str, Any], held: Input) -> Mapping[str, Any]:
    most = together([{OFFSETS: before.get(OFFSETS, {})}, held])
    left = {name: upto for name, upto in before.get("ahead", {}).items() if held[OFFSETS].get(name, 0) < upto}
    return {"since": before["since"], **most, **({"ahead": left} if left else {})}


def _files(before: Mapping[str, Any], batch: int, held: Input) -> Mapping[str, Any]:
    listed: list[tuple[int, str]] = [*((int(n), text) for n, text in before.get(FILES, [])), (batch, held[FILES])]
    since = int(before["since"])
    while len(listed) > _LEAST and (len(listed) > _BATCHES or sum(len(names(text)) for _, text in listed) > _NAMES):
        since = listed.pop(0)[0]
    left = names(before.get("ahead", "")) - names(held[FILES])
    return {"since": since, FILES: listed, **({"ahead": joined(left)} if left else {})}


def meant(mark: Mark, plans: Plans) -> Mark:
    """The mark as batches are planned now, where it is of before a log went back. Raises Unknown.

    >>> meant(after(None, "q", 5, 0, {"offsets": {"0": 9}}), [["a", 3]])["batch"]
    Traceback (most recent call last):
    rollup.checkpoint.marks.Unknown
    """
    ours, theirs = unknown(mark, plans), unknown({"plans": plans}, mark.get("plans", ()))
    return lowered(mark, min((batch for _, batch in ours | theirs), default=int(mark["batch"])))


def unknown(mark: Mark, plans: Plans) -> set[tuple[str, int]]:
    """Those of a mark's plans that are not among some."""
    of, known = ({(str(name), int(batch)) for name, batch in some} for some in (mark.get("plans", ()), plans))
    return of - known


def lowered(mark: Mark, batch: int) -> Mark:
    """The mark when batches after one are planned anew: what it holds of them is ahead. Raises Unknown."""
    if int(mark["batch"]) <= batch:
        return mark
    known = mark.get("input")
    if known is None or int(known["since"]) > batch:
        raise Unknown
    if OFFSETS in known:
        known = {**known, "ahead": known[OFFSETS]}
    elif FILES in known:
        kept = [[number, text] for number, text in known[FILES] if number <= batch]
        beyond = [{FILES: text} for number, text in known[FILES] if number > batch]
        more = together([{FILES: known.get("ahead", "")}, *beyond])
        known = {"since": known["since"], FILES: kept, "ahead": more[FILES]}
    return {**mark, "batch": batch, "input": known}
