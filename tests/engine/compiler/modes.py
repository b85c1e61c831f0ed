"""Both modes of a program side by side: the same calls, outputs and states, with every check of the checked build."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from rollup.engine.compiler.cache import Code
from rollup.engine.compiler.compiled import Compiled
from rollup.engine.compiler.interpreted import Interpreted
from rollup.engine.compiler.source import Source, functions_of
from rollup.engine.compiler.state import Tables, restore, save
from rollup.engine.compiler.types import Struct, type_of

Mode = Interpreted | Compiled


def program(
    text: str, structs: Mapping[str, Mapping[str, str]], records: Sequence[str] = (), **entries: Sequence[str]
) -> Source:
    """A source of texts; the state is the struct `State`."""
    declared = [
        Struct(name, {field: type_of(kind) for field, kind in fields.items()}, name in records)
        for name, fields in structs.items()
    ]
    return Source(functions_of(text, "operator.py"), declared, entries or {"run": []})


def checked(source: Source) -> Compiled:
    """The checked build, compiled anew: nothing of another run of the tests is used."""
    return Compiled(source, True, Code(source, True, None))


def production(source: Source) -> Compiled:
    """The build without checks."""
    return Compiled(source, False, Code(source, False, None))


BUILDS: Sequence[Callable[[Source], Mode]] = (Interpreted, checked, production)


def moved(mode: Mode, to: Callable[[Source], Mode]) -> Mode:
    """A program that goes on in another mode, or in the same one anew."""
    made = to(mode.source)
    restore(made, save(mode))
    return made


def same(one: Tables, other: Tables) -> bool:
    """Whether two states are equal bit for bit: a double that is no number is as it is elsewhere."""
    return one.keys() == other.keys() and all(_bits(one[name]) == _bits(other[name]) for name in one)


def _bits(table: pa.Table) -> list[Any]:
    return [table.schema, repr(table.to_pydict()), table.num_rows]
