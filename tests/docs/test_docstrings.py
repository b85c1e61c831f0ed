"""Every public function and method says what it does, at the place where a reader looks for it.

A method that stands for one of a protocol or a base is described there; a method that stands for a rule of a grammar,
by the rule; one that a library calls, by the library.
"""

from __future__ import annotations

import ast
import gc
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "rollup"
Function = ast.FunctionDef | ast.AsyncFunctionDef
Trees = Mapping[Path, ast.Module]


@pytest.fixture(scope="module")
def trees() -> Iterator[Trees]:
    """The files of the package, as long as they are looked at: each worker of a run collects the tests of all."""
    gc.disable()  # a collection looks through all that tests before have left
    try:
        yield {path: ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}
    finally:
        gc.enable()


def classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    """The public classes of a file."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))


def public(owner: ast.Module | ast.ClassDef) -> Iterator[Function]:
    """The public functions that stand in a module or a class."""
    return (node for node in owner.body if isinstance(node, Function) and not node.name.startswith("_"))


def described(trees: Trees) -> set[str]:
    """The names of methods that some class of ours describes."""
    every = (found for tree in trees.values() for found in ast.walk(tree) if isinstance(found, ast.ClassDef))
    return {method.name for found in every for method in public(found) if ast.get_docstring(method)}


def rules(path: Path) -> set[str]:
    """The names in the grammars of a folder and of the one above."""
    grammars = (grammar for folder in (path.parent, path.parent.parent) for grammar in folder.glob("*.lark"))
    return {word for grammar in grammars for word in re.findall(r"\w+", grammar.read_text())}


def from_elsewhere(tree: ast.Module, owner: ast.ClassDef) -> bool:
    """Whether a class has a base that is neither of this project nor of `typing`."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    ours = {
        each.name for node in imports if str(node.module).split(".")[0] in ("rollup", "typing") for each in node.names
    }
    ours |= {node.name for node in tree.body if isinstance(node, ast.ClassDef)} | {"Protocol", "Exception"}
    bases = {name.id for base in owner.bases for name in ast.walk(base) if isinstance(name, ast.Name)}
    return bool(bases - ours)


def silent(trees: Trees) -> Iterator[str]:
    """The functions that nobody describes."""
    elsewhere = described(trees)
    for path, tree in trees.items():
        grammar = rules(path)
        for function in public(tree):
            if not ast.get_docstring(function):
                yield f"{path.relative_to(ROOT)}: {function.name}"
        for owner in classes(tree):
            for method in public(owner):
                known = method.name in elsewhere or {method.name.rstrip("_"), method.name.upper()} & grammar
                if not ast.get_docstring(method) and not known and not from_elsewhere(tree, owner):
                    yield f"{path.relative_to(ROOT)}: {owner.name}.{method.name}"


def test_every_public_function_is_described(trees: Trees) -> None:
    assert list(silent(trees)) == []


def test_every_public_class_is_described(trees: Trees) -> None:
    found = ((path, node) for path, tree in trees.items() for node in tree.body if isinstance(node, ast.ClassDef))
    public = ((path, node) for path, node in found if not node.name.startswith("_"))
    assert [f"{path.relative_to(ROOT)}: {node.name}" for path, node in public if not ast.get_docstring(node)] == []
