"""Trees of frozen dataclasses, which is what statements, plans and expressions are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
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
