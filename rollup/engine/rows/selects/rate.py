"""When the rows of a statement leave, as it says: at once, or when an output is due."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from rollup.engine.expressions import Expr


class Schedule(Protocol):
    """Instants by a calendar."""

    def after(self, instant: int) -> int | None:
        """The first instant strictly after that one."""
        ...


@dataclass(frozen=True)
class Setting:
    """A variable that is set."""

    variable: str
    value: Expr


@dataclass(frozen=True)
class Rate:
    """`after`: nothing before; then an output every `span`, every `events` rows, by `schedule`, or `when`; and at the end.

    `at_end`: an output when the partition ends, if `end_when` holds; alone, it is the only one.
    """

    mode: Literal["default", "all", "first", "last", "snapshot"] = "default"
    span: int | None = None
    events: Expr | None = None
    schedule: Schedule | None = None
    when: Expr | None = None
    then: tuple[Setting, ...] = ()
    after_span: int | None = None
    after_events: Expr | None = None
    at_end: bool = False
    end_when: Expr | None = None
    end_then: tuple[Setting, ...] = ()
    starts_at_once: bool = False

    @property
    def limited(self) -> bool:
        """Whether rows wait for an output."""
        return self.at_end or any(part is not None for part in (self.span, self.events, self.schedule, self.when))

    @property
    def ticks(self) -> bool:
        """Whether the clock brings outputs before the end."""
        return self.span is not None or self.schedule is not None
