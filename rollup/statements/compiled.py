"""The statements of an app, compiled: components in the order in which events reach them, and the streams between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from rollup.core.errors import PlanError, RollupError
from rollup.core.nesting import nests
from rollup.lang.sections import SIDDHIQL, Section
from rollup.plan.app import StreamDef
from rollup.plan.filled import Filled, names_of
from rollup.plan.types import Type
from rollup.statements.component import Component, Names, Streams
from rollup.statements.languages import language

Found = TypeVar("Found")


@dataclass(frozen=True)
class Part:
    """A component with its name in the app, and the streams it reads."""

    name: str
    section: Section
    names: Names
    component: Component


@dataclass(frozen=True)
class Statements:
    """All statements of an app. `streams` are those that they insert into."""

    parts: tuple[Part, ...] = ()
    streams: Streams = field(default_factory=dict[str, StreamDef])

    @property
    def reads(self) -> frozenset[str]:
        """Every stream that a component reads."""
        return frozenset(name for part in self.parts for name in part.names.reads)

    def needed(self, streams: Streams) -> Mapping[str, tuple[str, ...]]:
        """The columns that components need of some streams, in the streams' order."""
        found = dict[str, tuple[str, ...]]()
        for name in streams.keys() & self.reads:
            asked = [part.names.columns.get(name) for part in self.parts if name in part.names.reads]
            some = set[str]().union(*(each for each in asked if each is not None))
            every = any(each is None for each in asked)
            found[name] = tuple(column for column in streams[name].attributes if every or column in some)
        return found


@dataclass(frozen=True)
class _Read:
    """A text whose names are known: those it says itself."""

    name: str
    section: Section
    said: Names

    @property
    def names(self) -> Names:
        """With the stream that its results go to."""
        into = self.section.into
        return self.said if into is None else replace(self.said, writes=self.said.writes | {into})


@nests
def compile_statements(sections: Sequence[Section], streams: Streams, tables: Sequence[Filled] = ()) -> Statements:
    """The statements of an app's parts over its streams and the configuration's tables. Raises SyntaxProblem or PlanError with the place in its file."""
    texts = list[_Read]()
    for section in sections:
        said = _with_tables(section, _at(section, partial(language(section.language).names, section)), tables)
        texts.append(_Read(_name(section, [text.name for text in texts]), section, said))
    known, parts = dict(streams), list[Part]()
    for text in _ordered(texts):
        _check_carried(text, known)
        compile = partial(language(text.section.language).compile, text.section, known, text.said)
        made = _at(text.section, compile)
        for target, given in made.writes.items():
            _fits(text.section, given, known.setdefault(target, given))
        parts.append(Part(text.name, text.section, text.names, made))
    written = {target for part in parts for target in part.component.writes}
    return Statements(tuple(parts), {name: known[name] for name in known if name in written})


def _with_tables(section: Section, said: Names, tables: Sequence[Filled]) -> Names:
    """Names of which some are tables. Raises PlanError for a text that cannot read or would change one."""
    found = tuple(table for table in tables if table.name in said.reads | said.writes)
    for table in found:
        if section.language != SIDDHIQL:
            message = f"{table.name} is a table of the configuration, [tables.{table.name}], which SiddhiQL alone joins"
            cure = f"before this block: from S join {table.name} on … select … insert into T; the block reads T"
            raise section.located(PlanError(message, hint=cure))
    return replace(said, reads=said.reads - names_of(found), tables=found)


def _at(section: Section, action: Callable[[], Found]) -> Found:
    try:
        return action()
    except RollupError as problem:
        raise section.located(problem) from None


def _name(section: Section, taken: Sequence[str]) -> str:
    """What a component is called in `rollup plan` and in the files of its state."""
    if section.file is not None:
        wanted = section.file
    else:
        wanted = section.language if section.language == SIDDHIQL else f"{section.language} block"
    found, number = wanted, 1
    while found in taken:
        number += 1
        found = f"{wanted} {number}"
    return found


def _ordered(texts: Sequence[_Read]) -> list[_Read]:
    """Components after those that feed them. Raises PlanError for a circle between components."""
    waiting, done = list(texts), list[_Read]()
    while waiting:
        ready = [
            each
            for each in waiting
            if not any(each.names.reads & other.names.writes for other in waiting if other is not each)
        ]
        if not ready:
            circle, first = ", ".join(text.name for text in waiting), waiting[0].section
            raise PlanError(
                f"the statements of {circle} feed each other in a circle",
                line=first.line,
                column=first.column,
                hint="statements that feed each other belong into one block",
            )
        done += ready
        waiting = [each for each in waiting if each not in ready]
    return done


def _check_carried(text: _Read, streams: Streams) -> None:
    """Refuse a stream of a type that the engine of statements does not carry exactly."""
    tables = {table.name: table.stream for table in text.names.tables}
    named = [streams[name] for name in sorted(text.names.reads | text.names.writes) if name in streams]
    for stream in (*named, *tables.values()):
        for name, kind in stream.attributes.items():
            if not kind.carried:
                other = "double" if kind.exact else "long" if kind is Type.TIMESTAMP else "string"
                hint = f"a query before them selects it as another type: convert({name}, '{other}') as {name}"
                if stream.name in tables:
                    hint = f"[tables.{stream.name}] says which text or number it is: types = {{ {name} = '{other}' }}"
                problem = PlanError(f"statements carry no {kind}, which {name} of {stream.name} is", hint=hint)
                raise text.section.located(problem)


def _fits(section: Section, given: StreamDef, wanted: StreamDef) -> None:
    if list(given.attributes.items()) == list(wanted.attributes.items()):
        return
    selected = ", ".join(f"{name} {kind}" for name, kind in given.attributes.items())
    defined = ", ".join(f"{name} {kind}" for name, kind in wanted.attributes.items())
    raise section.located(
        PlanError(f"the statements insert ({selected}) into {given.name}, which is defined as ({defined})")
    )
