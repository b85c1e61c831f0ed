"""Statements that feed others: which hang together by the streams they insert into, and how events go on through them.

What hangs together runs over columns as a whole or not at all: rows and columns told side by side would have no common
order for what one event has caused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Link:
    """The streams that a statement hears, those that it inserts into or changes the events of, and the first reason why it must be on rows."""

    hears: frozenset[str]
    feeds: frozenset[str]
    reason: str | None


class Chains:
    """Some statements, in order of deployment, with what their inserts bind together.

    >>> middle, last = Link(frozenset("T"), frozenset("U"), None), Link(frozenset("U"), frozenset(), None)
    >>> chains = Chains({"a": Link(frozenset("S"), frozenset("T"), None), "b": middle, "c": last})
    >>> chains.after("S"), chains.against("U")
    (('S', 'T', 'U'), None)
    """

    def __init__(self, links: Mapping[str, Link]) -> None:
        self._links = links
        self.fed = frozenset(stream for link in links.values() for stream in link.feeds)
        """The streams whose events statements insert or change."""

    def against(self, stream: str) -> str | None:
        """Why the events that statements insert into a stream must come one by one; None when they may come as batches."""
        found = self._reasons.get(stream)
        return None if found is None else f"`{stream}`, whose events statements insert or change{found}"

    def after(self, stream: str) -> tuple[str, ...]:
        """A stream and those that its events reach, each behind all that feed it."""
        seen, found = {stream}, list[str]()

        def visit(each: str) -> None:
            for later in self._next.get(each, ()):
                if later not in seen:
                    seen.add(later)
                    visit(later)
            found.append(each)

        visit(stream)
        return tuple(reversed(found))

    @cached_property
    def _next(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for link in self._links.values():
            for stream in link.hears if link.feeds else ():
                found.setdefault(stream, []).extend(sorted(link.feeds))
        return found

    @cached_property
    def _inserted(self) -> frozenset[str]:
        """The streams into which statements insert what they have heard."""
        return frozenset(stream for link in self._links.values() if link.hears for stream in link.feeds)

    @cached_property
    def _reasons(self) -> dict[str, str]:
        """The streams whose statements must be on rows, and the first reason."""
        bound = {name: set(link.feeds | self._bound(link)) for name, link in self._links.items()}
        leaders = joined(bound)
        reasons: dict[str, str] = {}
        for name in self._links:
            if bound[name] and (reason := self._alone(name)) is not None:
                reasons.setdefault(leaders[name], f", with `{name}` on rows: {reason}")
        on_rows = [name for name in bound if leaders[name] in reasons]
        return {stream: reasons[leaders[name]] for name in on_rows for stream in bound[name] & self.fed}

    def _bound(self, link: Link) -> frozenset[str]:
        return link.hears if link.feeds else link.hears & self.fed

    def _alone(self, name: str) -> str | None:
        """The first reason against one statement."""
        link = self._links[name]
        if link.reason is not None:
            return link.reason
        if len(link.hears) > 1 and (link.feeds or link.hears & self._inserted):
            return "several streams, some of them by inserts"
        circle = any(stream in self.after(fed) for fed in link.feeds for stream in link.hears)
        return "a circle of inserts" if circle else None


def joined(names: Mapping[str, set[str]]) -> dict[str, str]:
    """For each statement the first one of its group: those that have a name in common, directly or over others."""
    leader: dict[str, str] = {name: name for name in names}

    def first(name: str) -> str:
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    owners: dict[str, str] = {}
    for statement, used in names.items():
        for each in used:
            leader[first(statement)] = first(owners.setdefault(each, statement))
    return {name: first(name) for name in names}
