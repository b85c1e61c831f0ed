"""Trees of frozen dataclasses, which is what statements, plans and expressions are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any


def descendants(value: Any, leaves: tuple[type, ...] = ()) -> Iterator[Any]:
    """A dataclass and every one inside it, outermost first; those of `leaves` are passed over with what they hold.

    >>> from dataclasses import make_dataclass
    >>> Node = make_dataclass("Node", ["name", "below"])
    >>> [node.name for node in descendants(Node("a", (Node("b", ()), Node("c", [Node("d", ())]))))]
    ['a', 'b', 'c', 'd']
    """
    if isinstance(value, (tuple, list)):
        for each in value:  # type: ignore[reportUnknownVariableType]
            yield from descendants(each, leaves)
    elif is_dataclass(value) and not isinstance(value, (type, *leaves)):
        yield value
        for field in fields(value):
            yield from descendants(getattr(value, field.name), leaves)


def exchanged(value: Any, change: Callable[[Any], Any], leaves: tuple[type, ...] = ()) -> Any:
    """A tree in which some dataclasses are others: `change` gives what stands for one, or that one itself, which is then looked
    into. What has nothing of it inside stays the very thing that it was, and so do `leaves`.

    >>> from dataclasses import make_dataclass
    >>> Node = make_dataclass("Node", ["name", "below"])
    >>> same, other = Node("a", ()), Node("b", ())
    >>> found = exchanged(Node("c", (same, other)), lambda node: Node("d", ()) if node.name == "b" else node)
    >>> [node.name for node in found.below], found.below[0] is same
    (['a', 'd'], True)
    """
    if isinstance(value, (tuple, list)):
        parts: list[Any] = [exchanged(each, change, leaves) for each in value]  # type: ignore[reportUnknownVariableType]
        return _of_parts(value, parts)
    if not is_dataclass(value) or isinstance(value, (type, *leaves)):
        return value
    found = change(value)
    if found is not value:
        return found
    node: Any = value
    inside = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    other = {name: exchanged(each, change, leaves) for name, each in inside.items()}
    changed = {name: each for name, each in other.items() if each is not inside[name]}
    return replace(node, **changed) if changed else value


def _of_parts(value: Any, parts: list[Any]) -> Any:
    """A tuple or list of other parts, or itself where they are the same."""
    if all(mine is other for mine, other in zip(value, parts, strict=True)):
        return value
    return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
