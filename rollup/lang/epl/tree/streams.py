"""What a statement reads: streams with their windows, contained events, patterns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rollup.lang.epl.tree.expressions import Crontab, Expression, Star, StreamStar
from rollup.lang.epl.tree.node import Node


@dataclass(frozen=True)
class Annotation(Node):
    """`@name('A')`, `@hint(…)`, `@tag(name='x', value='y')`; a lone value is that of the name `value`."""

    name: str
    values: tuple[tuple[str, AnnotationValue], ...] = ()

    @property
    def word(self) -> str:
        """The name in lower case, without the package of Esper's own annotations."""
        return self.name.removeprefix(_PACKAGE).lower()

    @property
    def value(self) -> AnnotationValue | None:
        """The lone value, None when there is none."""
        return dict(self.values).get("value")


_PACKAGE = "com.espertech.esper.common.client.annotation."
AnnotationValue = int | float | str | bool | None | Annotation | tuple["AnnotationValue", ...]


@dataclass(frozen=True)
class Item(Node):
    """One column of a select; `name` as the text gives it, None when it is the expression's own text."""

    value: Expression | Star | StreamStar
    name: str | None = None


@dataclass(frozen=True)
class Contained(Node):
    """`[select … from property as alias where …]`: the events inside an event."""

    property: Expression
    items: tuple[Item, ...] = ()
    alias: str | None = None
    where: Expression | None = None
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True)
class FilterSource(Node):
    """`Type(filter, …)[contained]…`; the type may also be a named window or a table."""

    type: str
    filters: tuple[Expression, ...] = ()
    contained: tuple[Contained, ...] = ()


@dataclass(frozen=True)
class PatternSource(Node):
    """`pattern @annotation [ … ]`."""

    pattern: Pattern
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True)
class View(Node):
    """`#length(5)`."""

    name: str
    arguments: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class Stream(Node):
    """One entry of a from clause."""

    source: FilterSource | PatternSource
    views: tuple[View, ...] = ()
    alias: str | None = None
    unidirectional: bool = False
    retain: Literal["union", "intersection"] | None = None


@dataclass(frozen=True)
class Join(Node):
    """`left outer join stream on …`, beside what stands before it."""

    kind: Literal["left", "right", "full", "inner"]
    stream: Stream
    on: Expression | None


@dataclass(frozen=True)
class Trigger(Node):
    """What stands behind `on`."""

    source: FilterSource | PatternSource
    alias: str | None = None


# The pattern algebra.


@dataclass(frozen=True)
class Pattern(Node):
    """Base of the pattern's nodes."""


@dataclass(frozen=True)
class FollowedBy(Pattern):
    """`left -> right`; `-[limit]>` bounds how many rights wait at once."""

    left: Pattern
    right: Pattern
    limit: Expression | None = None


@dataclass(frozen=True)
class PatternOr(Pattern):
    """`left or right`."""

    left: Pattern
    right: Pattern


@dataclass(frozen=True)
class PatternAnd(Pattern):
    """`a and b and c`, in any order; one in parentheses is a part of its own."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True)
class PatternNot(Pattern):
    """`not child`."""

    child: Pattern


@dataclass(frozen=True)
class Every(Pattern):
    """`every child`."""

    child: Pattern


@dataclass(frozen=True)
class EveryDistinct(Pattern):
    """`every-distinct(values [, life]) child`: a value counts once, or once within its life (a Period or a number)."""

    values: tuple[Expression, ...]
    child: Pattern


@dataclass(frozen=True)
class Repeat(Pattern):
    """`[low:high] child [until stop]`; `[n] child` is low = high = n; a bound that is missing is None."""

    child: Pattern
    low: Expression | None = None
    high: Expression | None = None
    stop: Pattern | None = None


@dataclass(frozen=True)
class Guard(Pattern):
    """`child where timer:within(…)`, `timer:withinmax(…)`, or a guard of another name."""

    child: Pattern
    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class While(Pattern):
    """`child while (condition)`."""

    child: Pattern
    condition: Expression


@dataclass(frozen=True)
class EventAtom(Pattern):
    """`tag=Type(filter)@consume(level)`."""

    source: FilterSource
    tag: str | None = None
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True)
class TimerAt(Pattern):
    """`timer:at(crontab)`."""

    crontab: Crontab


@dataclass(frozen=True)
class Observer(Pattern):
    """`timer:interval(…)`, or an observer of another name."""

    name: str
    arguments: tuple[Expression, ...]
