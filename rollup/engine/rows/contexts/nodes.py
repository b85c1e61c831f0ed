"""A context's levels at work: nodes that begin and end partitions, by keys, by events and patterns, by the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rollup.engine.compiling import compiled, compiled_key, predicate
from rollup.engine.index import Entry, both_tests, equal
from rollup.engine.row import Row, comparable
from rollup.engine.rows.contexts.conditions import (
    Condition,
    EventCondition,
    NowCondition,
    PatternCondition,
    ScheduleCondition,
    Watch,
)
from rollup.engine.rows.contexts.levels import Categories, Hashed, Keyed, Lived
from rollup.engine.rows.contexts.partitions import Partition, key_narrowing
from rollup.engine.rows.inputs import Listening, entry_of
from rollup.engine.rows.instance import Instance
from rollup.engine.rows.lookups import ask
from rollup.engine.rows.patterns.algebra import FilterNode, nodes
from rollup.engine.rows.plans import ALL, Filter, Narrow, Narrowing
from rollup.engine.timers import Order, Phase

if TYPE_CHECKING:
    from rollup.engine.rows.contexts.runtime import ContextRuntime


class Child:
    """What a node has begun: a partition, or a node of the next level; and what waits for its end."""

    def __init__(self, node: Node, number: int, properties: dict[str, Any], key: Any) -> None:
        self.node, self.number, self.properties, self.key = node, number, properties, key
        self.partition: Partition | None = None
        self.inner: Node | None = None
        self.environment = node.environment(properties)
        self.watch: Watch | None = None

    def listen(self) -> None:
        """Wait for the end."""
        end = self.node.level.end
        if end is not None:
            self.watch = self._watch(end)
            due = self.watch.starts(self.node.least_life())
            if due is not None:
                self.properties |= {"endTime": due, f"{self.node.name}.endTime": due}

    def listen_again(self, state: Any) -> None:
        """Wait for the end as before."""
        end = self.node.level.end
        if end is not None:
            self.watch = self._watch(end)
            self.watch.restore(state)

    def _watch(self, end: Condition) -> Watch:
        node = self.node
        order = (node.runtime.order, -1, self.number)
        narrow = node.within(self.key)
        return Watch(end, node.runtime.component.runner, order, self.environment, narrow, self._ended, Phase.CONTEXT)

    def _ended(self, match: dict[str, Any]) -> None:
        self.node.close(self, True)


class Node:
    """A level of a context within one partition of the level above."""

    def __init__(
        self, runtime: ContextRuntime, depth: int, properties: dict[str, Any], narrowings: Sequence[Narrow]
    ) -> None:
        self.runtime, self.depth, self._above, self._narrowings = runtime, depth, properties, narrowings
        self.name, self.level = runtime.context.levels[depth]
        self.order: Order = (runtime.order, depth)
        self.children: dict[Any, Child] = {}
        self._runner = runtime.component.runner
        self._environment = self.environment(properties)
        self._listening = Listening(self._runner)
        self._starts: list[Watch] = []
        distinct = self.level.distinct if isinstance(self.level, Lived) else ()
        self._distinct = compiled_key(distinct) if distinct else None
        self._asked = self.environment({}) if distinct else self._environment
        """Where what tells partitions apart is asked for; its properties are those of the one that may begin."""
        self._ended_by: Row | None = None
        self._began_by: tuple[str, Row] | None = None
        self._count = 0
        self._heard: dict[str, int] = {}
        """By stream the last entry in the index that the events which begin a partition are not to be told to."""
        self._over = False

    def least_life(self) -> int:
        """How many ms a partition that begins now lasts at least, where no event ends it.

        Without an event that begins it, one of no time would be followed by the next at the same instant, for ever.
        """
        last, self._began_by = self._began_by, self._runner.current
        alone = isinstance(self.level, Lived) and not self.level.overlap
        return int(alone and (self._began_by is None or self._began_by is last))

    # life

    def begin(self) -> None:
        """Wait for the first partitions, or begin them."""
        level = self.level
        if isinstance(level, Categories):
            for place, (label, _) in enumerate(level.categories):
                self._open(place, {"label": label})
        elif isinstance(level, Hashed) and level.preallocate:
            for shard in range(level.granularity):
                self._open(shard, {})
        self._listen()
        if isinstance(level, Lived):
            self._wait(level)
            if self._under_way(level):
                self._started({})

    def _under_way(self, level: Lived) -> bool:
        """Whether a life by the calendar would have begun before: its next end comes before its next beginning."""
        end = level.end
        if level.overlap or len(level.start) != 1 or not isinstance(end, ScheduleCondition):
            return False
        start, now = level.start[0], self._runner.now
        if not isinstance(start, ScheduleCondition):
            return False
        begins, ends = start.after(now), end.after(now)
        return begins is not None and ends is not None and ends <= begins

    def quit(self) -> None:
        """Everything ends, unsaid."""
        self._over = True
        self._listening.stop()
        for watch in self._starts:
            watch.stop()
        for child in list(self.children.values()):
            self._drop(child, False)

    def close(self, child: Child, ending: bool) -> None:
        """A partition ends; where only one may live, the next is waited for."""
        if self.children.get(child.key) is not child:
            return
        self._ended_by = self._runner.current[1] if self._runner.current is not None else None
        self._drop(child, ending)
        if isinstance(self.level, Lived) and not self.level.overlap and not self.children:
            self._wait(self.level)
            self._begin_again(self.level)

    def _begin_again(self, level: Lived) -> None:
        """The event that ended a partition may begin the next."""
        stream, row = self._runner.current or ("", None)
        for each in level.start:
            if row is None or self.children or not isinstance(each, EventCondition) or each.filter.stream != stream:
                continue
            entry = entry_of(each.filter, self, 0, self._environment, self._outer)
            if equal(row.values, entry.equals) and (entry.test is None or entry.test(row)):
                self._started({each.tag: row} if each.tag else {})

    def _drop(self, child: Child, ending: bool) -> None:
        if child.watch is not None:
            child.watch.stop()
        if child.inner is not None:
            for inner in list(child.inner.children.values()):
                child.inner._drop(inner, ending)
            child.inner.quit()
        if child.partition is not None:
            self.runtime.close(child.partition, ending)
        self.children.pop(child.key, None)

    # beginnings

    def _listen(self) -> None:
        for number, filter in enumerate(self._filters()):
            self._listening.add(filter.stream, entry_of(filter, self, number, self._environment, self._outer))

    def _filters(self) -> list[Filter]:
        level = self.level
        if isinstance(level, Keyed):
            return [filter for filter, _ in level.initiated] or [stream.filter for stream in level.streams]
        if isinstance(level, Hashed):
            return [filter for filter, _ in level.streams]
        return []

    def _wait(self, level: Lived) -> None:
        for watch in self._starts:
            watch.stop()
        self._starts = [
            Watch(condition, self._runner, self.order, self._environment, self._outer, self._beginning(condition))
            for condition in level.start
            if not isinstance(condition, NowCondition)
        ]
        if len(self._starts) < len(level.start):
            self._started({}, None if self.depth == 0 else ())
        for watch in self._starts:
            watch.starts()

    def _beginning(self, condition: Condition) -> Callable[[dict[str, Any]], None]:
        """What a condition does that holds: a partition begins.

        One that a pattern begins sees the events that the pattern has tagged, where several may live or the condition
        says so, and the match as a whole has no name; else none.
        """
        if not isinstance(condition, PatternCondition):
            return self._started
        streams = {node.tag: node.stream for node in nodes(condition.pattern.root) if isinstance(node, FilterNode)}
        overlap = condition.inclusive or (isinstance(self.level, Lived) and self.level.overlap)
        told = overlap and condition.name is None

        def begun(match: dict[str, Any]) -> None:
            rows = [(streams[place], row) for place, row in enumerate(match.values()) if isinstance(row, Row)]
            self._started(match, rows if told else ())

        return begun

    def _started(self, match: dict[str, Any], seen: Sequence[tuple[str, Row]] | None = None) -> None:
        """A partition begins, and is told of the events `seen`; None: of the one at hand."""
        level = self.level
        assert isinstance(level, Lived)
        if not level.overlap:
            if self.children:
                return
            for watch in self._starts:
                watch.stop()
        properties = {"startTime": self._runner.now, **match}
        key: Any = self._count
        if self._distinct is not None:
            self._asked.context = properties
            key = self._distinct((), (), self._asked)
            if key in self.children:
                return
        self._count += 1
        self._show(lambda: self._open(key, properties), seen)

    def receive(self, inputs: Sequence[int], row: Row) -> None:
        """An event that may begin a partition of its key or shard."""
        if self._over or row is self._ended_by:
            return
        level = self.level
        if isinstance(level, Keyed):
            self._keyed(level, inputs, row)
        elif isinstance(level, Hashed):
            for number in inputs:
                shard = self._shard(level, number, row)
                if shard not in self.children:
                    self._show(lambda shard=shard: self._open(shard, {}))

    def _key(self, level: Keyed, stream: str, row: Row) -> Any:
        """The key of an event; None of one of a stream without keys, which begins no partition."""
        places = next((each.places for each in level.streams if each.filter.stream == stream), None)
        return None if places is None else comparable([row.values[place] for place in places])

    def _shard(self, level: Hashed, number: int, row: Row) -> int:
        return compiled(level.streams[number][1])((row,), (), self._environment) % level.granularity

    def _keyed(self, level: Keyed, inputs: Sequence[int], row: Row) -> None:
        stream = self._runner.current[0] if self._runner.current is not None else ""
        key = self._key(level, stream, row)
        if key is None or key in self.children:
            return
        properties = self._keys(key)
        if level.initiated:
            tag = level.initiated[inputs[0]][1]
            properties |= {tag: row} if tag else {}
        self._show(lambda: self._open(key, properties))

    def _keys(self, key: Any) -> dict[str, Any]:
        """The properties of a partition that its key says."""
        return {f"key{place}": value for place, value in enumerate(key, 1)} if isinstance(self.level, Keyed) else {}

    def begun(self, path: Sequence[Any]) -> None:
        """A partition that has begun before, and goes on: the keys of the levels from this one on."""
        key, *further = path
        if key not in self.children:
            self._open(key, self._keys(key))
        inner = self.children[key].inner
        if inner is not None:
            inner.begun(further)

    def _show(self, open: Callable[[], None], seen: Sequence[tuple[str, Row]] | None = None) -> None:
        """Begin a partition, and give it the events that began it: what listens to them now did not before."""
        runner, current = self._runner, self._runner.current
        if seen is None:
            seen = [current] if current is not None else ()
        if not seen or self.runtime.opening:
            open()
            return
        self._heard = {stream: runner.indexes[stream].number for stream, _ in seen}
        self.runtime.opening = True
        open()
        self.runtime.opening = False
        told = len(runner.deliveries)
        for stream, row in seen:
            runner.current = (stream, row)
            self._tell(stream, row)
        runner.current = current
        number = (self.runtime.next - 1,) if isinstance(self.level, Lived) else ()
        runner.note_early(told, (self.runtime.order, *number))

    def _tell(self, stream: str, row: Row) -> None:
        found = self._runner.indexes[stream].matches(row)
        fresh = [entry for entry in found if entry.number > self._heard[stream] and self._sees(entry)]
        own = [each for each in fresh if not (isinstance(each.receiver, Instance) and each.receiver.asks(each.input))]
        self._runner.tell(own, row)
        self._runner.tell([each for each in fresh if each not in own], row)  # sub-queries see it afterwards

    def _sees(self, entry: Entry) -> bool:
        """Whether the event at hand is told to what has begun with it: nothing within categories that have does see it."""
        statement, depth, *ending = entry.receiver.order
        if ending:  # the event with which a partition begins does not end it, at whatever level
            return False
        within = self.runtime.context.levels[self.depth + 1 : depth if statement == self.runtime.order else None]
        return not any(isinstance(level, Categories) for _, level in within)

    def _open(self, key: Any, properties: dict[str, Any]) -> None:
        last = self.depth + 1 == len(self.runtime.context.levels)
        number = self.runtime.number() if last else self._count
        child = Child(self, number, self._all(properties, number), key)
        self.children[key] = child
        child.listen()
        for stream in self._heard:  # the event that begins a partition does not end it
            self._heard[stream] = self._runner.indexes[stream].number
        self._inside(child, True)

    def _inside(self, child: Child, start: bool) -> None:
        narrowings = [*self._narrowings, self.narrowing(child.key)]
        if self.depth + 1 < len(self.runtime.context.levels):
            child.inner = self.runtime.node(self.depth + 1, child.properties, narrowings)
            if start:
                child.inner.begin()
        else:
            child.partition = self.runtime.open(child.number, child.properties, narrowings, start)

    def _all(self, properties: dict[str, Any], number: int) -> dict[str, Any]:
        """The properties of this level, also under its name, with those of the levels above."""
        own: dict[str, Any] = {"name": self.name, "id": number, **properties}
        nested = {f"{self.name}.{name}": value for name, value in own.items()}
        return {**self._above, **own, "name": self.runtime.context.name, **nested}

    def paths(self) -> dict[int, tuple[Any, ...]]:
        """The keys of each partition from this level on, by its number."""
        found: dict[int, tuple[Any, ...]] = {}
        for child in self.children.values():
            if child.inner is None:
                found[child.number] = (child.key,)
            else:
                found.update({number: (child.key, *path) for number, path in child.inner.paths().items()})
        return found

    # what a partition sees of the streams

    def narrowing(self, key: Any) -> Narrow:
        """What a partition of this level adds to filters."""
        level, e = self.level, self._environment
        if isinstance(level, Keyed):
            places = {each.filter.stream: each for each in level.streams}

            def keyed(stream: str) -> Narrowing:
                if stream not in places:
                    return ALL
                equals, test = key_narrowing(places[stream].places, key)
                own = entry_of(places[stream].filter, self, 0, e, lambda _: ALL)
                return {**equals, **own.equals}, both_tests(test, own.test)

            return keyed
        if isinstance(level, Hashed):
            hashes = {filter.stream: (filter, compiled(value)) for filter, value in level.streams}
            n = level.granularity

            def hashed(stream: str) -> Narrowing:
                if stream not in hashes:
                    return ALL
                filter, value = hashes[stream]
                own = entry_of(filter, self, 0, e, lambda _: ALL)
                return own.equals, both_tests(own.test, lambda row: value((row,), (), e) % n == key)

            return hashed
        if isinstance(level, Categories):
            test, own = predicate(level.categories[key][1]), entry_of(level.filter, self, 0, e, lambda _: ALL)

            def category(stream: str) -> Narrowing:
                if stream != level.filter.stream:
                    return ALL
                return own.equals, both_tests(own.test, lambda row: test((row,), (), e))

            return category
        return lambda stream: ALL

    def within(self, key: Any) -> Narrow:
        """What a partition of this level and those that it lies in add to filters."""
        return Partition(self.runtime.component, narrowings=[*self._narrowings, self.narrowing(key)]).narrow

    def _outer(self, stream: str) -> Narrowing:
        return Partition(self.runtime.component, narrowings=self._narrowings).narrow(stream)

    def environment(self, properties: dict[str, Any]) -> Any:
        """An environment with the look-ups of this level."""
        e = self.runtime.component.runner.environment.child(properties)
        e.ask = [ask(lookup, _Nowhere()) for lookup in self.level.lookups]  # pyright: ignore[reportArgumentType]
        return e

    # state

    def snapshot(self) -> Any:
        """What lives, what is waited for, and what lives within."""
        children = [
            [
                child.key,
                child.number,
                child.properties,
                child.watch.snapshot() if child.watch is not None else None,
                child.inner.snapshot() if child.inner is not None else None,
            ]
            for child in self.children.values()
        ]
        return [self._count, [watch.snapshot() for watch in self._starts], children]

    def restore(self, state: Any) -> None:
        """Go on."""
        self._count, starts, children = state
        self._listen()
        if isinstance(self.level, Lived):
            conditions = [each for each in self.level.start if not isinstance(each, NowCondition)]
            for condition, kept in zip(conditions, starts, strict=False):
                begins = self._beginning(condition)
                watch = Watch(condition, self._runner, self.order, self._environment, self._outer, begins)
                watch.restore(kept)
                self._starts.append(watch)
        for key, number, properties, watch, inner in children:
            child = Child(self, number, dict(properties), key)
            self.children[key] = child
            child.listen_again(watch)
            self._inside(child, False)
            if child.inner is not None:
                child.inner.restore(inner)


class _Nowhere:
    """Look-ups of a context see nothing but its own properties."""

    def row(self, values: Iterable[Any]) -> Row:
        """Not asked for."""
        raise NotImplementedError
