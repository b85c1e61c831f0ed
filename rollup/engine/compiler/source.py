"""What is compiled: functions with the files that they come from, and structs."""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rollup.engine.compiler.types import Layout, Struct, parsed


@dataclass(frozen=True)
class Function:
    """A function as a tree, whose line numbers are those of its file."""

    node: ast.FunctionDef
    file: str

    @property
    def name(self) -> str:
        """The function's name."""
        return self.node.name


def function_of(function: Callable[..., Any]) -> Function:
    """A function of Python as a function of the subset."""
    lines, first = inspect.getsourcelines(function)
    (node,) = parsed(textwrap.dedent("".join(lines))).body
    assert isinstance(node, ast.FunctionDef)
    ast.increment_lineno(node, first - 1)
    return Function(node, inspect.getsourcefile(function) or "?")


def functions_of(text: str, file: str = "<text>") -> dict[str, Function]:
    """The functions of a text by name."""
    return {each.name: Function(each, file) for each in parsed(text).body if isinstance(each, ast.FunctionDef)}


@dataclass(frozen=True)
class Source:
    """Functions over one state. `entries` are the functions that are called from outside, with the types of their arguments."""

    functions: Mapping[str, Function]
    structs: Sequence[Struct]
    entries: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    root: str = "State"

    @cached_property
    def layout(self) -> Layout:
        """The places of all fields."""
        return Layout.of(self.structs, self.root)

    @cached_property
    def text(self) -> str:
        """The program as somebody would have written it."""
        return "\n\n\n".join(ast.unparse(each.node) for each in self.functions.values())

    @cached_property
    def key(self) -> str:
        """A hash of all that machine code depends on. Lines count, since faults are named by them."""
        lines = [(each.node.lineno, each.node.end_lineno) for each in self.functions.values()]
        text = f"{self.text}\n{self.layout.text()}\n{dict(self.entries)}\n{lines}"
        return hashlib.sha256(text.encode()).hexdigest()
