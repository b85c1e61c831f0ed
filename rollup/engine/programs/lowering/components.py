"""The statements of a component become one program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from rollup.core.descriptions import descendants
from rollup.engine.compiler.source import Source
from rollup.engine.compiler.types import INT, ColumnsOf, ListOf, QueueOf, Reference, Struct, TableOf, Tuple, Type
from rollup.engine.expressions import Ask, Call, Const, Expr, Field, Variable, walk
from rollup.engine.operators import EQUAL
from rollup.engine.programs.lowering import stores
from rollup.engine.programs.lowering.expressions import expressions, fields_of, test, type_of_value
from rollup.engine.programs.lowering.grouping import Emit
from rollup.engine.programs.lowering.linking import Linker
from rollup.engine.programs.lowering.lookups import JOINED, WAYS, Join, Side, asked, join_streams
from rollup.engine.programs.lowering.rates import Rated, rated
from rollup.engine.programs.lowering.stores import Store
from rollup.engine.programs.lowering.unsupported import NotLowered, Unsupported
from rollup.engine.programs.lowering.windows import window
from rollup.engine.programs.operators.base import FOREVER
from rollup.engine.rows.actions import Merge, OnSelect, SetVariables, Split
from rollup.engine.rows.component import Component, Deployed
from rollup.engine.rows.plans import Filter, Input, Select, StoreInput, StreamInput, Subquery, Target
from rollup.engine.rows.stores.named import WindowStore
from rollup.engine.rows.windows.counted import KeepAll
from rollup.engine.types import BOOL, DataType, RowType

_KEPT = 128
"""Programs that are kept for the next statement of the same plan, or for the same one after a restart."""
TRUE = Const(True, BOOL)
TypeOf = Callable[[str], RowType | None]
"""The type of a stream's events, or None."""


@dataclass(frozen=True)
class Program:
    """A component as a program: its text, the types of its streams' events, its outputs, and the values of its plans."""

    source: Source
    streams: Mapping[str, tuple[str, tuple[Type, ...]]]
    """By stream: the name it has in the program, and the types of an event's fields."""
    outputs: Mapping[str, str]
    """By statement the field of its output: instant, number of the delivery, sign, and the values. Behind them tables that
    operators fill, by their own names."""
    constants: Mapping[str, object]
    variables: Mapping[str, str]
    """By variable the field with its value."""

    @property
    def text(self) -> str:
        """The program as somebody would have written it."""
        return self.source.text


def lowered(component: Component, type_of: TypeOf) -> Program | Unsupported:
    """The program of all statements of a component, or the first reason why there is none."""
    lowering = _Lowering(component, type_of)
    return lowering.lowered(lowering.program)


def lowered_select(plan: Select, types: Mapping[str, RowType], ordered: bool = False) -> Program | Unsupported:
    """The program of a statement that reads streams alone, or the first reason why there is none. `ordered`: somebody puts
    the rows of an output in order. Statements of one plan share theirs."""
    return _lowered_select(_Lowered(plan, types, ordered))


@dataclass(frozen=True, eq=False)
class _Lowered:
    """What a program is made of, as a key: plans hold tables, which have no hash, but a text, which tells 1 from 1.0."""

    plan: Select
    types: Mapping[str, RowType]
    ordered: bool

    @cached_property
    def _text(self) -> str:
        return repr((self.plan, self.types, self.ordered))

    def __hash__(self) -> int:
        return hash(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Lowered) and self._text == other._text and self.plan == other.plan


@lru_cache(_KEPT)
def _lowered_select(given: _Lowered) -> Program | Unsupported:
    lowering = _Lowering(Component(), given.types.get, given.ordered)
    return lowering.lowered(lambda: lowering.of_select(given.plan))


@dataclass
class _Stream:
    """A stream: its name in the program, the type of its events, what is done with one, and the fields that are kept."""

    name: str
    type: RowType
    first: list[str] = field(default_factory=list[str])
    """What is asked before anything is done: an event may set variables that filters read."""
    steps: list[str] = field(default_factory=list[str])
    kept: set[int] = field(default_factory=set[int])
    target: bool = False
    """Whether statements insert into it: then its events are rows from the beginning."""

    @property
    def row(self) -> Reference:
        """Its kept events."""
        return Reference(f"Row_{self.name}")

    @property
    def kinds(self) -> list[DataType]:
        """The types of its fields."""
        return list(self.type.fields.values())

    def all(self) -> None:
        """All fields are kept."""
        self.kept |= set(range(len(self.kinds)))


class _Lowering:
    """A component while it becomes a program. `place`: the statement at hand."""

    def __init__(self, component: Component, type_of: TypeOf, ordered: bool = False) -> None:
        self.place, self._ordered = "", ordered
        self._by = "place"
        """What rows say of the delivery that they belong to."""
        self._component, self._type_of = component, type_of
        self._linker = Linker(values=component.runner.environment.variables)
        self._streams: dict[str, _Stream] = {}
        self._stores: dict[str, Store] = {}
        self._outputs: dict[str, str] = {}
        self._timers: list[tuple[int, int, str, str | None]] = []
        """Phase, statement, the operator with the clock, and who is told that the change is over (outputs: nobody)."""
        self._flows: dict[str, list[str]] = {}
        """By stream or store, into which others its rows go on."""
        self._emits: dict[str, str] = {}
        """By store the function that tells its listeners."""
        plans = [each.plan for each in component.statements.values()]
        self._acted = {
            each.store for each in plans if isinstance(each, Merge) or (isinstance(each, OnSelect) and each.delete)
        }
        """The stores that events change beside what goes into them."""

    def lowered(self, program: Callable[[], Program]) -> Program | Unsupported:
        """What is made, or the first reason why it is not."""
        try:
            return program()
        except NotLowered as reason:
            return Unsupported(reason.code, reason.detail, self.place)

    def of_select(self, plan: Select) -> Program:
        """One statement, whose rows say which event of the batch brought them, or -1. Raises NotLowered."""
        self._by, self._linker.timely = "event", len(plan.inputs) == 1 and not plan.own_inputs
        self._linker.state |= {"event": INT, "due": INT, "output_due": INT}
        self._select("", plan, 1)
        dues = (
            line
            for field, clock in (("due", False), ("output_due", True))
            for line in (*self._next_due(clock), f"s.{field} = due")
        )
        self._linker.function("note_due", "", [*dues])
        self._linker.function(
            "jump", "t, phase", ["if t > s.now:", "    s.now = t", *self._firing(jumps=True), *self._linker.over]
        )
        return self._finished({"note_due": [], "jump": ["int", "int"], "show": []})

    def program(self) -> Program:
        """All statements, stores first, since statements before them may insert into them. Raises NotLowered."""
        deployed = [
            (name, each) for name, each in self._component.statements.items() if not self._component.is_store(name)
        ]
        for creates in (True, False):
            for name, each in deployed:
                if (each.store is not None) is creates:
                    self.place = name
                    self._statement(name, each)
        self._refuse_circles()
        for title, store in self._stores.items():
            stores.finish(self._linker, store, self._emits[title], [*self._stores].index(title))
        return self._finished()

    def _statement(self, name: str, deployed: Deployed) -> None:
        if deployed.context is not None:
            raise NotLowered("context", deployed.context)
        self._linker.asks = ()
        match deployed.plan:
            case Select() as plan:
                self._select(name, plan, deployed.order)
            case Merge() as plan if plan.store in self._stores:
                self._merge(name, plan, deployed.order)
            case OnSelect() as plan if plan.store in self._stores:
                self._on_select(name, plan, deployed.order)
            case Split() as plan:
                self._split(name, plan, deployed.order)
            case SetVariables() as plan:
                self._set(name, plan, deployed.order)
            case None if deployed.store is not None:
                self._create(name, deployed.store, deployed.order)
            case other:
                raise NotLowered("statement", type(other).__name__)

    # streams and rows

    def _stream(self, name: str) -> _Stream:
        if name not in self._streams:
            kinds = self._type_of(name)
            if kinds is None:
                raise NotLowered("input", name)
            self._streams[name] = _Stream(f"stream{len(self._streams)}", kinds)
        return self._streams[name]

    def _read(self, filter: Filter, steps: Sequence[str], name: str) -> None:
        """What a statement does with the events that pass a filter."""
        stream = self._stream(filter.stream)
        kinds = stream.kinds
        tests: list[Expr] = [
            Call(EQUAL, (Field(0, place, kinds[place]), value), BOOL) for place, value in filter.equals
        ]
        tests += [filter.test] if filter.test is not None else []
        if tests:
            passes = test(self._linker, f"{name}_filter", tests, {0: "row"}, "row")
            asked = f"{passes}(row)"
            if any(isinstance(part, Variable | Ask) for each in tests for part in walk(each)):
                stream.first.append(f"{name}_filtered = {asked}")
                asked = f"{name}_filtered"
            steps = [f"if {asked}:", *(f"    {step}" for step in steps)]
        stream.steps += steps

    # outputs

    def _output(self, name: str, order: int | str, kinds: Sequence[DataType]) -> str:
        """The table of what a statement delivers."""
        found = self._outputs[name] = f"output{order}"
        types = [type_of_value(each).optional for each in kinds]
        self._linker.state[found] = TableOf(Tuple((INT, INT, INT, *types)))
        return found

    def _emitting(self, name: str, order: int, kinds: Sequence[DataType], made: str) -> str:
        """The function that delivers a row of a store as it is."""
        output = self._output(name, order, kinds)
        values = ", ".join(f"row[{i}]" for i in range(len(kinds)))
        return self._linker.function(
            f"{made}_emit", "row, sign", [f"s.{output}.append((s.now, s.place, sign, {values}))"]
        )

    def _inserted(self, target: Target) -> Callable[[Sequence[str]], str]:
        """The line that inserts a row, of the texts of its values."""
        if target.takes != "new":
            raise NotLowered("removed", "into a stream")
        if target.name in self._stores:
            into, place, order = self._stores[target.name], [*self._stores].index(target.name), "stores_order"
        else:
            stream = self._stream(target.name)
            stream.target = True
            stream.all()
            into, place, order = stream, [*self._streams].index(target.name), "streams_order"
            self._linker.state[f"{stream.name}_inserts"] = QueueOf(stream.row)
        lines = [f"s.{into.name}_inserts.append(row)", f"s.{order}.append({place})"]
        put = self._linker.function(f"put_{into.name}", "row", lines)
        columns, struct = target.columns, into.row.struct
        return lambda values: f"{put}({struct}({', '.join('None' if c is None else values[c] for c in columns)}))"

    # statements

    def _select(self, name: str, plan: Select, order: int) -> None:
        self._refuse(plan)
        inputs, width = (*plan.inputs, *plan.own_inputs), len(plan.inputs)
        own = {
            number: self._held(f"own{order}_{number}", each, self._asked_fields(plan, number), acted=False)
            for number, each in enumerate(inputs)
            if number >= width and isinstance(each, StreamInput)
        }
        self._linker.asks = [
            asked(self._linker, self._stores, own, f"ask{order}_{number}", each, inputs, width)
            for number, each in enumerate(plan.lookups)
        ]
        for number, store in own.items():
            self._fill(store, inputs[number], order)
        emit = self._emit_rows(name, plan, order)
        if plan.target is not None:
            for source in plan.inputs:
                origin = source.filter.stream if isinstance(source, StreamInput) else getattr(source, "store", "")
                self._flows.setdefault(origin, []).append(plan.target.name)
        if plan.join is not None:
            self._join(plan, order, emit)
            return
        (source,) = plan.inputs
        if isinstance(source, StoreInput):
            if not source.follow:
                raise NotLowered("input", "a table")
            store = self._store(source)
            store.follow(rated(self._linker, plan, f"select{order}", store.row, emit).entry)
            return
        assert isinstance(source, StreamInput)
        stream = self._stream(source.filter.stream)
        stream.kept |= self._fields(plan, 0)
        made = rated(self._linker, plan, f"select{order}", stream.row, emit, ordered=self._ordered)
        self._clock(made, 1, order)
        entry, shown = made.entry, made.selection
        ports = {f"emit_{each}": [f"{entry}_{each}"] for each in ("insert", "remove")}
        ports["emit_present"] = [f"{shown}_present"]
        made = window(self._linker, source.window, f"window{order}", stream.row, ports)
        change = f"change{order}"
        self._linker.function(f"{change}_flush", "", [f"{entry}_flush()", f"{made}_settle()"])
        self._timers.append((0, order, made, change))
        row = f"keep_{stream.name}(row)"
        self._read(source.filter, [f"{made}_insert({row})", f"{change}_flush()"], f"select{order}")
        if self._by == "event":
            self._linker.function("show", "", [f"{made}_present()", f"{shown}_presented()"])

    def _join(self, plan: Select, order: int, emit: Emit) -> None:
        """A join of two inputs: what comes into one finds its partners in the other."""
        spec, sides, name = plan.join, list[Side](), f"join{order}"
        assert spec is not None
        if len(plan.inputs) != 2 or spec.alone:
            raise NotLowered("join", "of three")
        streams = [each for each in plan.inputs if isinstance(each, StreamInput)]
        if len(streams) == 2:
            self._join_streams(plan, streams, order, emit)
            return
        if spec.sides[0].kind != "inner":
            raise NotLowered("join", "an outer one with a store")
        for place, source in enumerate(plan.inputs):
            moves = spec.only in (None, place)
            if isinstance(source, StoreInput):
                sides.append(Side(self._store(source), source.condition, moves and source.follow))
                continue
            assert isinstance(source, StreamInput)
            sides.append(Side(self._held(f"window{order}", source, self._fields(plan, place), acted=True), None, moves))
        bare = [isinstance(each, StreamInput) and each.window is None for each in plan.inputs]
        seeks = not all(each.moves for each in sides)
        if sides[0].store is sides[1].store or any(bare) is not seeks:
            raise NotLowered("join", "of inputs that change at once, or of which one brings rows about")
        join = Join(self._linker, plan, name, sides, emit)
        moved = [join.moved(place) if each.moves else None for place, each in enumerate(sides)]
        for place, (source, heard) in enumerate(zip(plan.inputs, moved, strict=True)):
            if heard is None:
                continue
            if isinstance(source, StoreInput):
                sides[place].store.follow(heard)
                continue
            assert isinstance(source, StreamInput)
            stream, indexes = self._stream(source.filter.stream), sides[place].store.shown.values()
            ports = self._telling(heard, [*indexes, heard])
            made = window(self._linker, source.window, f"window{order}", stream.row, ports)
            self._timers.append((0, order, made, heard))
            self._read(source.filter, [f"{made}_insert(keep_{stream.name}(row))", f"{heard}_flush()"], f"select{order}")

    def _join_streams(self, plan: Select, inputs: Sequence[StreamInput], order: int, emit: Emit) -> None:
        """A join of two streams or windows of them, which one event, or one instant, may change both."""
        for each in inputs:
            if any(type(part) not in JOINED for part in (each.window, getattr(each.window, "inner", None))):
                raise NotLowered("window", f"{type(each.window).__name__} in a join")
        name, windows = f"join{order}", list[str]()
        stores = [
            self._held(f"window{order}_{place}", each, self._fields(plan, place), acted=True)
            for place, each in enumerate(inputs)
        ]
        self._clock(join_streams(self._linker, plan, name, stores, emit, self._ordered), -1, order)
        for way, store, source in zip(WAYS, stores, inputs, strict=True):
            ports = {f"emit_{each}": [f"{name}_{way}_{each}"] for each in ("insert", "remove")}
            windows.append(window(self._linker, source.window, store.window, store.row, ports))
            row = f"keep_{self._stream(source.filter.stream).name}(row)"
            self._read(source.filter, [f"{windows[-1]}_insert({row})"], store.name)
        for stream in dict.fromkeys(each.filter.stream for each in inputs):
            self._stream(stream).steps.append(f"{name}_flush()")
        one, other = windows
        lines = [f"one = {one}_due()", f"other = {other}_due()", "return one if one < other else other"]
        self._linker.function(f"{name}_windows_due", "", lines)
        lines = [line for each in windows for line in (f"if {each}_due() <= s.now:", f"    {each}_on_timer()")]
        self._linker.function(f"{name}_windows_on_timer", "", lines)
        self._timers.append((0, order, f"{name}_windows", name))

    def _clock(self, made: Rated, phase: int, order: int) -> None:
        """The clock of the outputs: of a join they come before the windows let rows out."""
        if made.clock is not None:
            self._timers.append((phase, order, made.clock, None))

    def _held(self, name: str, source: StreamInput, fields: set[int], acted: bool) -> Store:
        """The window of an input as a store, whose rows have some fields."""
        stream = self._stream(source.filter.stream)
        stream.kept |= fields
        return Store(name, WindowStore(stream.type, source.window or KeepAll()), stream.row, acted)

    def _fill(self, store: Store, source: Input, order: int) -> None:
        """The window of a sub-query, whose rows its indexes and aggregates hear of, takes the events of its stream."""
        assert isinstance(source, StreamInput)
        ports = self._telling(store.name, [*store.indexes.values(), *store.observers])
        made = window(self._linker, source.window, store.window, store.row, ports)
        self._timers.append((0, order, made, None))
        row = f"keep_{self._stream(source.filter.stream).name}(row)"
        self._read(source.filter, [f"{made}_insert({row})"], store.name)

    def _telling(self, name: str, operators: Sequence[str]) -> dict[str, list[str]]:
        """The ports of a window of which several operators hear."""
        ports = dict[str, list[str]]()
        for way in ("insert", "remove"):
            lines = [f"{each}_{way}(row)" for each in operators]
            ports[f"emit_{way}"] = [self._linker.function(f"{name}_{way}_all", "row", lines)]
        return ports

    def _store(self, source: StoreInput) -> Store:
        """The store of an input. Raises NotLowered."""
        store = self._stores.get(source.store)
        if store is None or source.prior:
            raise NotLowered("input", "a table")
        return store

    def _emit_rows(self, name: str, plan: Select, order: int) -> Emit:
        """The lines that deliver a row of a select and insert it."""
        output = self._output(name, order, list(plan.type.fields.values()))
        insert = None if plan.target is None else self._inserted(plan.target)
        last = plan.emitted == "both" and self._by == "event"

        def emit(sign: str, values: Sequence[str]) -> list[str]:
            old = plan.emitted == "old" and self._by == "place"
            row = f"(s.now, s.{self._by}, {'1' if old else sign}, {', '.join(values)})"
            lines = [f"s.{output}.append({row})"]
            if old:
                return [f"if {sign} < 0:", f"    {lines[0]}"]
            if last:
                return self._linker.left_last(output, sign, row)
            return lines if insert is None else [*lines, f"if {sign} > 0:", f"    {insert(values)}"]

        return emit

    def _refuse_outputs(self, plan: Select) -> None:
        """Raises NotLowered for what no operator does yet with outputs."""
        finish = plan.finish
        if finish.descending or finish.limit is not None or finish.distinct or plan.into is not None:
            raise NotLowered("output")
        if self._by == "place" and (plan.rate.limited or plan.rate.after_span or plan.rate.after_events):
            raise NotLowered("rate", plan.rate.mode)
        if plan.emitted == "old" and plan.target is not None:
            raise NotLowered("removed")

    def _refuse(self, plan: Select) -> None:
        """Raises NotLowered for what no operator does yet."""
        self._refuse_outputs(plan)
        for source in (*plan.inputs, *plan.own_inputs):
            if not isinstance(source, StoreInput | StreamInput) or source.prior or getattr(source, "unnest", ()):
                raise NotLowered("input", type(source).__name__)

    def _refuse_circles(self) -> None:
        """Raises NotLowered where a row may cause another of its own stream: that may have no end, which only rows refuse."""
        for origin in self._flows:
            reached, todo = set[str](), [origin]
            while todo:
                new = set(self._flows.get(todo.pop(), ())) - reached
                reached |= new
                todo += new
            if origin in reached:
                raise NotLowered("circle", origin)

    @staticmethod
    def _fields(plan: Select, place: int) -> set[int]:
        """The fields of a stream that a statement reads after the window."""
        source = plan.inputs[place]
        calls = [call for level in plan.levels for call in level.calls] + list(
            plan.grouping.calls if plan.grouping else ()
        )
        keys = [key for level in plan.levels for key in level.keys] + list(
            plan.grouping.dimensions if plan.grouping else ()
        )
        of_window = _of_window(source)
        arguments = [each for call in calls for each in (*call.args, call.where)]
        exprs = [*plan.projection.columns, plan.projection.having, plan.where, *keys, *arguments]
        joined = [] if plan.join is None else [each.condition for each in plan.join.sides]
        asked = [each for lookup in plan.lookups if isinstance(lookup, Subquery) for each in lookup.exprs]
        return of_window | fields_of([*exprs, *joined, *asked], place)

    @staticmethod
    def _asked_fields(plan: Select, place: int) -> set[int]:
        """The fields of a sub-query's stream that are read after the window."""
        asked = [each for each in plan.lookups if isinstance(each, Subquery) and each.input == place]
        exprs = [expr for each in asked for expr in each.exprs]
        return _of_window(plan.own_inputs[place - len(plan.inputs)]) | fields_of(exprs, len(plan.inputs))

    def _create(self, name: str, title: str, order: int) -> None:
        """A named window."""
        spec = getattr(self._component.store(title, self._component.root), "spec", None)
        if not isinstance(spec, WindowStore) or self._component.context_of(title) is not None:
            raise NotLowered("store", title)
        if spec.filled_from is not None:
            raise NotLowered("store", "filled from another")
        kinds = list(spec.type.fields.values())
        acted = title in self._acted
        store = self._stores[title] = Store(f"store{order}", spec, Reference(f"Row_store{order}"), acted)
        self._linker.structs[store.row.struct] = _record(store.row.struct, dict(enumerate(kinds)))
        self._emits[title] = self._emitting(name, order, kinds, store.name)
        stores.create(self._linker, store)
        self._timers.append((0, order, store.window, None))

    def _merge(self, name: str, plan: Merge, order: int) -> None:
        made = f"merge{order}"
        emit = self._emitting(name, order, list(plan.type.fields.values()), made)
        lines = stores.merge(self._linker, plan, self._stores[plan.store], made, emit)
        assert isinstance(plan.trigger, StreamInput)
        self._flows.setdefault(plan.trigger.filter.stream, []).append(plan.store)
        self._read(plan.trigger.filter, lines, made)

    def _on_select(self, name: str, plan: OnSelect, order: int) -> None:
        """A row for each row of a store that an event finds, which may leave the store then."""
        select, store, made = plan.select, self._stores[plan.store], f"onselect{order}"
        source = _plain(plan.trigger, select)
        self._refuse_outputs(select)
        if select.levels or select.grouping is not None or select.emitted != "new":
            raise NotLowered("groups", "of a select on an event")
        if any(isinstance(each, StoreInput) and each.condition is not None for each in select.inputs):
            raise NotLowered("input", "a part of a store")
        emit = self._emit_rows(name, select, order)
        if select.target is not None:
            self._flows.setdefault(source.filter.stream, []).append(select.target.name)
        if plan.delete:
            self._flows.setdefault(source.filter.stream, []).append(plan.store)
        tests = [] if select.projection.having is None else [select.projection.having]

        def end(values: list[str]) -> list[str]:
            lines = [*emit("1", values[len(tests) :])]
            return [f"if {values[0]} is True:", *(f"    {each}" for each in lines)] if tests else lines

        shown = expressions(
            self._linker, f"{made}_shown", "row, found", [*tests, *select.projection.columns], stores.BOTH, end
        )
        leave = [f"s.{made}_removing.append(found)"] if plan.delete else []
        self._linker.function(f"{made}_matched", "row, found", [f"{shown}(row, found)", *leave])
        self._linker.function(f"{made}_unmatched", "row", [])
        lines = stores.acting(self._linker, store, made, select.where, False, [])
        self._read(source.filter, lines, made)

    def _split(self, name: str, plan: Split, order: int) -> None:
        """An event into the first branch that takes it, or into all that do; to the listeners where none does."""
        made, source, takes = f"split{order}", _plain(plan.trigger, plan), list[str]()
        if plan.same or any(each.unnest is not None for each in plan.branches):
            raise NotLowered("action", "a split of events inside others")
        for number, branch in enumerate(plan.branches):
            self._flows.setdefault(source.filter.stream, []).append(branch.target)
            columns = tuple(range(len(branch.columns)))
            insert = self._inserted(Target(branch.target, columns))
            end = lambda values, insert=insert: [insert(values)]  # noqa: E731
            put = expressions(self._linker, f"{made}_put{number}", "row", branch.columns, {0: "row"}, end)
            passes = test(self._linker, f"{made}_passes{number}", [branch.where or TRUE], {0: "row"}, "row")
            lines = [f"if {passes}(row):", f"    {put}(row)", "    return True", "return False"]
            takes.append(f"{self._linker.function(f'{made}_takes{number}', 'row', lines)}(row)")
        emit = self._emitting(name, order, list(plan.type.fields.values()), made)
        if plan.every:
            lines = ["taken = False", *(f"if {each}:\n        taken = True" for each in takes), "if not taken:"]
        else:
            lines = [f"if not ({' or '.join(takes)}):"]
        self._linker.function(made, "row", [*lines, f"    {emit}(row, 1)"])
        self._read(source.filter, [f"{made}(row)"], f"{made}_trigger")

    def _set(self, name: str, plan: SetVariables, order: int) -> None:
        """Variables get values, one after the other, and each says so; then the statement says all of them."""
        made, source = f"set{order}", _plain(plan.trigger, plan)
        lines = list[str]()
        for number, (variable, value) in enumerate(plan.settings):
            kind = plan.type.fields[variable]
            field, said = self._linker.variable(variable, type_of_value(kind)), self._component.said_by(variable)
            output = self._outputs.get(said) or self._output(said, f"{order}_{number}", [kind])
            end = lambda values: [f"return {values[0]}"]  # noqa: E731
            worth = expressions(self._linker, f"{made}_value{number}", "row", [value], {0: "row"}, end)
            lines += ["s.place += 1", f"before{number} = s.{field}", f"s.{field} = {worth}(row)"]
            lines += [f"s.{output}.append((s.now, s.place, 1, s.{field}))"]
            lines += [f"s.{output}.append((s.now, s.place, -1, before{number}))"]
        output = self._output(name, order, list(plan.type.fields.values()))
        shown = ", ".join(f"s.{self._linker.variables[each]}" for each in plan.type.fields)
        lines += ["s.place += 1", f"s.{output}.append((s.now, s.place, 1, {shown}))"]
        self._linker.function(made, "row", lines)
        self._read(source.filter, [f"{made}(row)"], f"{made}_trigger")

    # the whole

    def _finished(self, more: Mapping[str, Sequence[str]] | None = None) -> Program:
        linker = self._linker
        for stream in self._streams.values():
            self._stream_functions(stream)
        linker.function("settle", "", self._settling())
        linker.function("advance", "t", self._advancing())
        entries = {f"run_{stream.name}": ["int", "int"] for stream in self._streams.values()}
        entries |= {"advance": ["int"], **(more or {})}
        streams = {
            name: (stream.name, tuple(type_of_value(kind).optional for kind in stream.kinds))
            for name, stream in self._streams.items()
            if name not in self._stores
        }
        own = self._outputs.values()
        tables = (name for name, kind in linker.state.items() if isinstance(kind, TableOf) and name not in own)
        outputs = self._outputs | {each: each for each in tables}
        return Program(linker.source(entries), streams, outputs, linker.constants, linker.variables)

    def _stream_functions(self, stream: _Stream) -> None:
        """What is done with an event of a stream, with a batch of events, and how an event is kept: once, whoever keeps it."""
        linker, name, struct = self._linker, stream.name, stream.row.struct
        linker.structs[struct] = _record(struct, {place: stream.kinds[place] for place in sorted(stream.kept)})
        made = f"{struct}({', '.join(f'row[{place}]' for place in sorted(stream.kept))})"
        if stream.target:
            linker.function(f"keep_{name}", "row", ["return row"])
        else:
            linker.state[f"kept_{name}"] = stream.row
            lines = [f"if s.kept_{name} is None:", f"    s.kept_{name} = {made}", f"return s.kept_{name}"]
            linker.function(f"keep_{name}", "row", lines)
        linker.function(f"on_{name}", "row", [*stream.first, *stream.steps])
        kinds = [type_of_value(kind).optional for kind in stream.kinds]
        linker.state[f"input_{name}"] = ColumnsOf((*kinds, INT))
        lines = [
            f"row = s.input_{name}[i]",
            f"t = row[{len(kinds)}]",
            "if t > s.now:",
            "    advance(t)",
            self._counted("i"),
        ]
        lines += [f"on_{name}({made if stream.target else 'row'})", "settle()"]
        lines += [] if stream.target else [f"s.kept_{name} = None"]
        lines += [*linker.over, "collect()", "i += 1"]
        linker.function(f"run_{name}", "i, end", ["while i < end:", *(f"    {line}" for line in lines)])

    def _settling(self) -> list[str]:
        """What an event has caused, until nothing more is: rows into named windows first, one after the other, then those into
        streams. What windows have to tell they tell after each, and at once where no row goes into one."""
        stores = [(i, each.name, f"{each.window}_insert") for i, each in enumerate(self._stores.values())]
        streams = [(i, each.name, f"on_{each.name}") for i, each in enumerate(self._streams.values()) if each.target]
        if not stores and not streams:
            return []
        tells = ["for number in s.stores_told:"] if stores else []
        for number, store, _ in stores:
            tells += [f"    if number == {number}:", f"        {store}_tell()"]
        tells += ["s.stores_told.clear()"] if stores else []
        lines, ways = ["a = 0", "b = 0"], list[tuple[str, list[str]]]()
        for order, at, into in (("stores_order", "a", stores), ("streams_order", "b", streams)):
            self._linker.state[order] = ListOf(INT)
            found = [f"number = s.{order}[{at}]", f"{at} += 1"]
            for number, name, function in into:
                found += [f"if number == {number}:", f"    {function}(s.{name}_inserts.popleft())"]
            ways.append((f"{at} < len(s.{order})", found))
        (in_stores, to_stores), (in_streams, to_streams) = ways
        if stores:
            lines += [f"if not ({in_stores}):", *(f"    {each}" for each in tells)]
        lines += [f"while {in_stores} or {in_streams}:", "    s.place += 1"]
        lines += [f"    if {in_stores}:", *(f"        {each}" for each in to_stores)]
        lines += ["    else:", *(f"        {each}" for each in to_streams)]
        return [*lines, *(f"    {each}" for each in tells), "s.stores_order.clear()", "s.streams_order.clear()"]

    def _counted(self, event: str) -> str:
        """The line before what an event brings, or the clock."""
        return "s.place += 1" if self._by == "place" else f"s.event = {event}"

    def _clocked(self) -> list[tuple[int, int, str, str | None]]:
        """The operators with a clock, as they are due at one instant."""
        return sorted(self._timers, key=lambda each: each[:2])

    def _next_due(self, outputs: bool | None = None) -> list[str]:
        """The next instant at which the clock changes something; `outputs`: only by outputs, or by windows."""
        operators = [each for phase, _, each, _ in self._clocked() if outputs is None or outputs is (phase != 0)]
        lines = [f"due = {operators[0]}_due()"] if operators else [f"due = {FOREVER}"]
        for each in operators[1:]:
            lines += [f"other = {each}_due()", "if other < due:", "    due = other"]
        return lines

    def _firing(self, jumps: bool = False) -> list[str]:
        """What is due fires; where the clock `jumps` what is of a phase, and before it what is of every phase."""
        lines = list[str]()
        for phase, _, operator, told in self._clocked():
            own = f" and phase == {phase}" if jumps and phase >= 0 else ""
            lines += [f"if {operator}_due() <= s.now{own}:", f"    {self._counted('-1')}", f"    {operator}_on_timer()"]
            lines += [f"    {told}_flush()"] if told is not None else []
            lines += ["    settle()"]
        return lines

    def _advancing(self) -> list[str]:
        """The clock walks through every instant that is due."""
        lines = list[str]()
        if self._timers:
            inner = [*self._next_due(), "if due > t:", "    break"]
            inner += ["if due > s.now:", *(f"    {line}" for line in (*self._linker.over, "s.now = due"))]
            lines = [
                "while True:",
                *(f"    {line}" for line in (*inner, *self._firing(), "collect()")),
                *self._linker.over,
            ]
        return [*lines, "if t > s.now:", "    s.now = t"]


def _plain(trigger: Input, plan: Split | SetVariables | Select) -> StreamInput:
    """The trigger of an action that looks nothing up. Raises NotLowered."""
    if plan.lookups or plan.own_inputs:
        raise NotLowered("lookup", "in an action")
    if not isinstance(trigger, StreamInput) or trigger.window is not None or trigger.unnest:
        raise NotLowered("input", "of an action")
    return trigger


def _of_window(source: Input) -> set[int]:
    """The fields by which a window keeps rows."""
    read = (each for each in descendants(getattr(source, "window", None)) if isinstance(each, Field))
    return {each.index for each in read}


def _record(name: str, kinds: Mapping[int, DataType]) -> Struct:
    """Rows with values at some places."""
    return Struct(name, {f"f{place}": type_of_value(kind).optional for place, kind in kinds.items()}, record=True)
