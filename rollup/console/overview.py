"""What the overview shows: how each aggregation is doing, what is wrong and its cure, and how streams flow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rollup.ask import Asker
from rollup.console.questions import Question
from rollup.core.calendar import Duration, bucket_start
from rollup.core.errors import RollupError
from rollup.hosts.reporting.late_events import CURE
from rollup.lifecycle.replay.compare import readable
from rollup.lifecycle.status import Status, newest, status
from rollup.plan.aggregation import TIMESTAMP
from rollup.plan.dividing import Keys

_MINUTES = 60
_SLEEPING = 120
"""Seconds without a heartbeat after which a job that holds its lease is worth a look."""


@dataclass(frozen=True)
class Alert:
    """What is wrong with something, the cure, and the page of the documentation that says more."""

    what: str
    message: str
    cure: str
    page: str


@dataclass(frozen=True)
class Row:
    """An aggregation in the overview; `events` are those of its newest minutes. `status` None: it cannot be read."""

    name: str
    status: Status | None
    events: Sequence[int]
    alerts: Sequence[Alert]

    @property
    def watermark(self) -> int | None:
        """The clock of the finest level, ms."""
        return self.status.levels[0].clock if self.status is not None and self.status.levels else None

    @property
    def points(self) -> str:
        """The events of the newest minutes as points of an SVG line, 120 wide and 24 high."""
        most = max(self.events, default=0) or 1
        step = 120 / max(len(self.events) - 1, 1)
        return " ".join(f"{at * step:.1f},{23 - 22 * count / most:.1f}" for at, count in enumerate(self.events))


def rows(asker: Asker) -> list[Row]:
    """All aggregations, those with problems first."""
    return sorted((row(asker, name) for name in asker.program.aggregations), key=lambda found: not found.alerts)


def row(asker: Asker, name: str) -> Row:
    """One aggregation."""
    try:
        found = status(asker.conf, asker.program.aggregations[name], newest(asker.store(name)))
        return Row(name, found, _minutes(asker, name, found), tuple(_alerts(found)))
    except RollupError as problem:
        cure = "`rollup recover CONF` looks at what is left and says what can be done"
        return Row(name, None, (), (Alert(name, problem.message, problem.hint or cure, "recovery"),))


def _minutes(asker: Asker, name: str, found: Status) -> list[int]:
    """Events of the newest minutes, or of the finest level's buckets where there are no minutes."""
    clocks = [level.clock for level in found.levels if level.clock is not None]
    if not clocks:
        return []
    aggregation = asker.program.aggregations[name]
    level = max(aggregation.root, Duration.MINUTES)
    width = level.width_ms or 86_400_000
    last = bucket_start(max(clocks), level, aggregation.zone)
    first = last - (_MINUTES - 1) * width
    columns = (TIMESTAMP, "sum(AGG_EVENTS) as events")
    asked = Question(name, first, last + 1, level.plural, columns, group_by=(TIMESTAMP,))
    counts = {row[TIMESTAMP]: row["events"] for row in asker.query(asked.text).to_pylist()}
    return [counts.get(first + each * width, 0) for each in range(_MINUTES)]


def _alerts(found: Status) -> Iterator[Alert]:
    """What is wrong with an aggregation whose tables can be read."""
    if part := found.misplaced:
        yield Alert(found.aggregation, f"{part} of the events are not in their own buckets", CURE, "late")
    if found.dead_letters:
        what = f"{found.dead_letters:,} records could not be used"
        yield Alert(found.aggregation, what, "the page Dead letters has their texts and reasons", "dead letters")
    if found.holder is not None and (found.heartbeat_age or 0) > _SLEEPING:
        yield Alert(found.aggregation, f"{found.holder} was last heard of {found.heartbeat_age:,.0f} s ago",
                    "if it has ended, start the job again: it goes on where it was", "recovery")  # fmt: skip
    for column, since in found.valid_from.items():
        yield Alert(
            found.aggregation,
            f"{column} is complete from {readable(since)} on",
            "`rollup replay` makes it whole",
            "change",
        )


@dataclass(frozen=True)
class Box:
    """A node of the picture of how streams flow, at a place in SVG units; `kind` is stream, statements, … or sink."""

    name: str
    kind: str
    x: int
    y: int
    link: str | None = None


WIDTH, HEIGHT, _STEP = 200, 34, 260


@dataclass(frozen=True)
class Flow:
    """The picture of how streams flow: boxes in columns from left to right, and lines between them."""

    boxes: Sequence[Box]
    lines: Sequence[tuple[Box, Box]]

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in SVG units."""
        return (
            max((box.x for box in self.boxes), default=0) + WIDTH + 2,
            max((box.y for box in self.boxes), default=0) + HEIGHT + 2,
        )


def flow(asker: Asker) -> Flow:
    """How streams reach statements, aggregations and sinks."""
    program, edges, kinds = asker.program, list[tuple[str, str]](), dict[str, tuple[str, str | None]]()
    for name in program.streams:
        kinds[f"stream {name}"] = ("stream", None)
    for derivation in program.derivations:
        edges.append((f"stream {derivation.source}", f"stream {derivation.target}"))
    for part in () if program.statements is None else program.statements.parts:
        own = f"statements {part.name}"
        kinds[own] = ("statements", f"/s#{part.name}")
        edges += [(f"stream {name}", own) for name in sorted(part.names.reads)]
        edges += [(own, f"stream {name}") for name in part.component.writes]
    for name, aggregation in program.aggregations.items():
        kinds[f"aggregation {name}"] = ("aggregation", f"/a/{name}")
        edges.append((f"stream {aggregation.stream}", f"aggregation {name}"))
    for name in asker.conf.sinks:
        kinds[f"sink {name}"] = ("sink", None)
        edges.append((f"stream {name}", f"sink {name}"))
    return _placed(kinds, [edge for edge in edges if edge[0] in kinds and edge[1] in kinds])


def _placed(kinds: Mapping[str, tuple[str, str | None]], edges: Sequence[tuple[str, str]]) -> Flow:
    """Each node one column to the right of what it comes from; circles end where they began."""
    column = dict.fromkeys(kinds, 0)
    for _ in kinds:
        later = {b: column[a] + 1 for a, b in edges if column[a] + 1 > column[b] and column[a] < len(kinds) - 1}
        if not later:
            break
        column |= later
    used = {name for edge in edges for name in edge}
    filled, boxes = dict[int, int](), dict[str, Box]()
    for name, (kind, link) in kinds.items():
        if name in used:
            row = filled[column[name]] = filled.get(column[name], -1) + 1
            boxes[name] = Box(name.split(" ", 1)[1], kind, 1 + column[name] * _STEP, 1 + row * (HEIGHT + 14), link)
    return Flow(list(boxes.values()), [(boxes[a], boxes[b]) for a, b in edges])


@dataclass(frozen=True)
class Statement:
    """A component of statements: how it runs, what it reads and writes, and the tables that can be asked."""

    name: str
    language: str
    text: str
    executor: str
    reason: str
    state: str
    keys: Keys
    remarks: Sequence[str]
    reads: Sequence[str]
    writes: Sequence[str]
    kept: Sequence[str]


def statements(asker: Asker) -> list[Statement]:
    """All components in the order in which events reach them."""
    program = asker.program
    if program.statements is None:
        return []
    found = list[Statement]()
    for part in program.statements.parts:
        how = part.component.described
        found.append(
            Statement(
                part.name,
                part.section.language,
                part.section.text.strip(),
                how.executor,
                how.reason,
                how.state,
                how.keys,
                how.remarks,
                sorted(part.names.reads),
                list(part.component.writes),
                asker.kept.of(part.name),
            )
        )
    return found
