"""How the memory of a program is given back, as text of the subset that is made for its structs."""

from __future__ import annotations

from rollup.engine.compiler.types import (
    CHUNKS,
    LIVE,
    POOLS,
    ColumnsOf,
    HeapOf,
    Layout,
    ListOf,
    MapOf,
    QueueOf,
    SortedOf,
    Struct,
    TableOf,
)

FREED = -2
"""The count of a struct that the checked build has freed: its memory is not used again."""


def freeing(layout: Layout, checked: bool) -> dict[str, str]:
    """The functions that free what nothing refers to, and all memory."""
    lines = ["def collect_all():", "    i = 0", "    while i < load(root() + 16):"]
    lines += ["        p = load(load(root()) + i * 16)", "        struct = load(load(root()) + i * 16 + 8)"]
    lines += ["        count = load(p) & -2", "        store(p, count)", "        if count == 0:"]
    lines += [f"            store(root() + {8 * LIVE}, load(root() + {8 * LIVE}) - 1)"]
    for struct in layout.structs.values():
        if struct.name != layout.root:
            lines += [f"            if struct == {struct.number}:"]
            lines += [f"                {each}" for each in _dropping(layout, struct, "p")]
            pool = f"root() + {8 * (POOLS + struct.number)}"
            again = [f"store(p, {FREED})"] if checked else [f"store(p + 8, load({pool}))", f"store({pool}, p)"]
            lines += [f"                {each}" for each in again]
    lines += ["        i += 1", "    store(root() + 16, 0)"]
    disposing = ["def dispose_all():", *(f"    {each}" for each in _dropping(layout, layout.state, "root()"))]
    disposing += ["    collect_all()", f"    chunk = load(root() + {8 * CHUNKS})", "    while chunk != 0:"]
    disposing += ["        following = load(chunk)", "        free(chunk)", "        chunk = following"]
    disposing += ["    free(load(root()))"]
    return {"collect": "\n".join(lines), "dispose": "\n".join(disposing)}


def _dropping(layout: Layout, struct: Struct, base: str) -> list[str]:
    """Lines that let go of all that a struct refers to, and free the memory of its containers."""
    lines = list[str]()
    for name, kind in struct.fields.items():
        at = 8 * struct.places[name]
        data = f"load({base} + {at})"
        match kind:
            case ListOf() | HeapOf() | QueueOf() | MapOf() | SortedOf():
                item = kind.value if isinstance(kind, MapOf) else kind.item
                for i, target in item.references:
                    number = layout.structs[target].number
                    if isinstance(kind, QueueOf):
                        position = 8 * layout.structs[target].places[kind.position] if kind.position else 0
                        lines.append(f"release_ring({base} + {at}, {position}, {number})")
                    elif isinstance(kind, MapOf):
                        value = 8 * (1 + len(kind.key.parts) + i)
                        lines.append(
                            f"release_entries({data}, load({base} + {at + 16}), {8 * kind.size}, {value}, {number})"
                        )
                    else:
                        size = 8 * item.words
                        lines.append(f"release_items({data} + {8 * i}, load({base} + {at + 16}), {size}, {number})")
                lines.append(f"free({data})")
                if isinstance(kind, MapOf):
                    lines.append(f"free(load({base} + {at + 32}))")
            case TableOf():
                lines += [f"free(load({base} + {at + 16 + 8 * i}))" for i in range(len(kind.of.parts))]
            case ColumnsOf():
                pass
            case _:
                lines += [
                    f"release(load({base} + {at + 8 * i}), {layout.structs[target].number})"
                    for i, target in kind.references
                ]
    return lines or ["pass"]
