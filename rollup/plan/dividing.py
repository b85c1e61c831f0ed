"""By which attributes statements fall apart: events with different values of them have nothing to do with each other.

A statement says for each stream that it reads which attributes its groups are made of, or that any event stands for
itself; what all statements of a text can agree on is the key of its shards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rollup.engine.dividing import Need


@dataclass(frozen=True)
class Keys:
    """The key of each stream that is read; without any, the `reason` why the statements run in one place.

    A stream whose key is empty may be divided in any way. `instants`: it must be told every instant at which an event
    arrives anywhere, not only the last one; `own`: only events of these streams say how far time is.
    """

    by: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    reason: str = ""
    instants: bool = False
    own: bool = False

    def __bool__(self) -> bool:
        return bool(self.by)

    def __str__(self) -> str:
        """In words, for `rollup plan`."""
        said = [f"{', '.join(names)} of {stream}" for stream, names in sorted(self.by.items()) if names]
        return " and ".join(said) or "events as they come"


def common(needs: Iterable[Need | str], instants: bool = False, own: bool = False) -> Keys:
    """The key that suits all statements; a text instead of a need is the reason why there is none.

    >>> str(common([{"S": ("a", "b")}, {"S": ("a",)}, {"S": None}]))
    'a of S'
    >>> common([{"S": ("a",)}, {"S": ("b",)}]).reason
    'S is grouped by a and by b'
    """
    known = list[Need]()
    for need in needs:
        if isinstance(need, str):
            return Keys(reason=need)
        known.append(need)
    chosen = _smallest(known)
    for need in known:
        reason = _against(chosen, need)
        if reason is not None:
            return Keys(reason=reason)
    streams = {stream for need in known for stream in need}
    return Keys({stream: chosen.get(stream, ()) for stream in sorted(streams)}, instants=instants, own=own)


def _smallest(needs: Sequence[Need]) -> dict[str, tuple[str, ...]]:
    """Of each stream the shortest key: groups by more attributes fall apart by fewer of them too."""
    chosen = dict[str, tuple[str, ...]]()
    for need in needs:
        for stream, names in need.items():
            if names is not None and (stream not in chosen or len(names) < len(chosen[stream])):
                chosen[stream] = names
    return chosen


def _against(chosen: Mapping[str, tuple[str, ...]], need: Need) -> str | None:
    """Why a key does not suit a statement: one of its groups would be in several shards."""
    places = set[tuple[int, ...]]()
    for stream, names in need.items():
        if names is None:
            continue
        if not set(chosen[stream]) <= set(names):
            return f"{stream} is grouped by {', '.join(chosen[stream])} and by {', '.join(names)}"
        places.add(tuple(names.index(name) for name in chosen[stream]))
    return f"the keys of {', '.join(need)} do not agree" if len(places) > 1 else None
