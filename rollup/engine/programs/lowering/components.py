"""The statements of a component become one program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from rollup.engine.compiler.source import Source
from rollup.engine.compiler.types import INT, ColumnsOf, ListOf, QueueOf, Reference, Struct, TableOf, Tuple, Type
from rollup.engine.expressions import Call, Expr, Field
from rollup.engine.operators import EQUAL
from rollup.engine.programs.lowering import stores
from rollup.engine.programs.lowering.expressions import fields_of, test, type_of_value
from rollup.engine.programs.lowering.grouping import selection
from rollup.engine.programs.lowering.linking import Linker
from rollup.engine.programs.lowering.stores import Store
from rollup.engine.programs.lowering.unsupported import NotLowered, Unsupported
from rollup.engine.programs.lowering.windows import window
from rollup.engine.rows.actions import Merge
from rollup.engine.rows.component import Component, Deployed
from rollup.engine.rows.plans import Filter, Select, StoreInput, StreamInput, Target
from rollup.engine.rows.stores.named import WindowStore
from rollup.engine.types import BOOL, DataType, RowType

TypeOf = Callable[[str], RowType | None]
"""The type of a stream's events, or None."""


@dataclass(frozen=True)
class Program:
    """A component as a program: its text, the types of its streams' events, its outputs, and the values of its plans."""

    source: Source
    streams: Mapping[str, tuple[str, tuple[Type, ...]]]
    """By stream: the name it has in the program, and the types of an event's fields."""
    outputs: Mapping[str, str]
    """By statement the field of its output: instant, number of the delivery, sign, and the values."""
    constants: Mapping[str, object]

    @property
    def text(self) -> str:
        """The program as somebody would have written it."""
        return self.source.text


def lowered(component: Component, type_of: TypeOf) -> Program | Unsupported:
    """The program of all statements of a component, or the first reason why there is none."""
    lowering = _Lowering(component, type_of)
    try:
        return lowering.program()
    except NotLowered as reason:
        return Unsupported(reason.code, reason.detail, lowering.place)


@dataclass
class _Stream:
    """A stream: its name in the program, the type of its events, what is done with one, and the fields that are kept."""

    name: str
    type: RowType
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

    def __init__(self, component: Component, type_of: TypeOf) -> None:
        self.place = ""
        self._component, self._type_of, self._linker = component, type_of, Linker()
        self._streams: dict[str, _Stream] = {}
        self._stores: dict[str, Store] = {}
        self._outputs: dict[str, str] = {}
        self._timers: list[tuple[int, int, str, str | None]] = []
        """Phase, statement, the operator with the clock, and who is told that the change is over."""
        self._flows: dict[str, list[str]] = {}
        """By stream or store, into which others its rows go on."""
        self._emits: dict[str, str] = {}
        """By store the function that tells its listeners."""

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
        match deployed.plan:
            case Select() as plan:
                self._select(name, plan, deployed.order)
            case Merge() as plan if plan.store in self._stores:
                self._merge(name, plan, deployed.order)
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
            steps = [f"if {passes}(row):", *(f"    {step}" for step in steps)]
        stream.steps += steps

    # outputs

    def _output(self, name: str, order: int, kinds: Sequence[DataType]) -> str:
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
        output = self._output(name, order, list(plan.type.fields.values()))
        insert = None if plan.target is None else self._inserted(plan.target)

        def emit(sign: str, values: Sequence[str]) -> list[str]:
            lines = [f"s.{output}.append((s.now, s.place, {sign}, {', '.join(values)}))"]
            return lines if insert is None else [*lines, f"if {sign} > 0:", f"    {insert(values)}"]

        (source,) = plan.inputs
        if plan.target is not None:
            origin = source.filter.stream if isinstance(source, StreamInput) else getattr(source, "store", "")
            self._flows.setdefault(origin, []).append(plan.target.name)
        if isinstance(source, StoreInput):
            store = self._stores.get(source.store)
            if store is None or not source.follow:
                raise NotLowered("input", "a table")
            store.follow(selection(self._linker, plan, f"select{order}", store.row, emit))
            return
        assert isinstance(source, StreamInput)
        stream = self._stream(source.filter.stream)
        stream.kept |= self._fields(plan, source)
        entry = selection(self._linker, plan, f"select{order}", stream.row, emit)
        ports = {f"emit_{each}": [f"{entry}_{each}"] for each in ("insert", "remove")}
        made = window(self._linker, source.window, f"window{order}", stream.row, ports)
        self._timers.append((0, order, made, entry))
        row = f"keep_{stream.name}(row)"
        self._read(source.filter, [f"{made}_insert({row})", f"{entry}_flush()"], f"select{order}")

    @staticmethod
    def _refuse(plan: Select) -> None:
        """Raises NotLowered for what no operator does yet."""
        finish = plan.finish
        if finish.descending or finish.limit is not None or finish.distinct or plan.into is not None:
            raise NotLowered("output")
        if plan.lookups or plan.own_inputs:
            raise NotLowered("lookup")
        if plan.rate.limited or plan.rate.mode != "default" or plan.rate.after_span or plan.rate.after_events:
            raise NotLowered("rate", plan.rate.mode)
        if plan.emitted == "old":
            raise NotLowered("removed")
        if plan.join is not None or len(plan.inputs) != 1:
            raise NotLowered("join")
        source = plan.inputs[0]
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
    def _fields(plan: Select, source: StreamInput) -> set[int]:
        """The fields of a stream that a statement reads after the window."""
        calls = [call for level in plan.levels for call in level.calls] + list(
            plan.grouping.calls if plan.grouping else ()
        )
        keys = [key for level in plan.levels for key in level.keys] + list(
            plan.grouping.dimensions if plan.grouping else ()
        )
        of_window = [*getattr(source.window, "key", ()), *getattr(source.window, "by", ())]
        arguments = [each for call in calls for each in call.args]
        exprs = [*plan.projection.columns, plan.projection.having, plan.where, *keys, *arguments, *of_window]
        return fields_of(exprs, 0)

    def _create(self, name: str, title: str, order: int) -> None:
        """A named window."""
        spec = getattr(self._component.store(title, self._component.root), "spec", None)
        if not isinstance(spec, WindowStore) or self._component.context_of(title) is not None:
            raise NotLowered("store", title)
        if spec.filled_from is not None:
            raise NotLowered("store", "filled from another")
        kinds = list(spec.type.fields.values())
        store = self._stores[title] = Store(f"store{order}", spec, Reference(f"Row_store{order}"))
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
        self._read(plan.trigger.filter, ["s.place += 1", *lines], made)

    # the whole

    def _finished(self) -> Program:
        linker = self._linker
        for stream in self._streams.values():
            self._stream_functions(stream)
        linker.function("settle", "", self._settling())
        linker.function("advance", "t", self._advancing())
        entries = {f"run_{stream.name}": ["int", "int"] for stream in self._streams.values()} | {"advance": ["int"]}
        streams = {
            name: (stream.name, tuple(type_of_value(kind).optional for kind in stream.kinds))
            for name, stream in self._streams.items()
            if name not in self._stores
        }
        return Program(linker.source(entries), streams, self._outputs, linker.constants)

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
        linker.function(f"on_{name}", "row", stream.steps)
        kinds = [type_of_value(kind).optional for kind in stream.kinds]
        linker.state[f"input_{name}"] = ColumnsOf((*kinds, INT))
        lines = [
            f"row = s.input_{name}[i]",
            f"t = row[{len(kinds)}]",
            "if t > s.now:",
            "    advance(t)",
            "s.place += 1",
        ]
        lines += [f"on_{name}({made if stream.target else 'row'})", "settle()"]
        lines += [] if stream.target else [f"s.kept_{name} = None"]
        lines += ["collect()", "i += 1"]
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

    def _advancing(self) -> list[str]:
        """The clock walks through every instant that is due."""
        lines, timers = list[str](), sorted(self._timers, key=lambda each: each[:2])
        if timers:
            lines = ["while True:", f"    due = {timers[0][2]}_due()"]
            for _, _, operator, _ in timers[1:]:
                lines += [f"    other = {operator}_due()", "    if other < due:", "        due = other"]
            lines += ["    if due > t:", "        break", "    if due > s.now:", "        s.now = due"]
            for _, _, operator, told in timers:
                lines += [
                    f"    if {operator}_due() <= s.now:",
                    "        s.place += 1",
                    f"        {operator}_on_timer()",
                ]
                lines += [f"        {told}_flush()"] if told is not None else []
                lines += ["        settle()"]
            lines.append("    collect()")
        return [*lines, "if t > s.now:", "    s.now = t"]


def _record(name: str, kinds: Mapping[int, DataType]) -> Struct:
    """Rows with values at some places."""
    return Struct(name, {f"f{place}": type_of_value(kind).optional for place, kind in kinds.items()}, record=True)
