"""What compiled containers and structs are made of, in the subset itself.

Addresses are whole numbers, sizes are in bytes. Nothing here is checked: the checked build checks what is asked of a
container before it calls these functions. The layouts are those of `types.py`.
"""
# pyright: reportUnusedFunction=false

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Key = tuple[int, ...]

    def load(address: int) -> int: ...
    def store(address: int, value: int) -> None: ...
    def malloc(size: int) -> int: ...
    def realloc(address: int, size: int) -> int: ...
    def calloc(count: int, size: int) -> int: ...
    def free(address: int) -> None: ...
    def memcpy(to: int, of: int, size: int) -> None: ...
    def memmove(to: int, of: int, size: int) -> None: ...
    def root() -> int: ...
    def hashed(key: Key) -> int: ...
    def same_key(address: int, key: Key) -> bool: ...
    def load_key(address: int, key: Key) -> Key: ...
    def store_key(address: int, key: Key) -> None: ...


COLD = {"add_chunk", "grow", "ring_grow", "table_grow", "map_grow", "heap_up", "heap_down"}
"""What is called seldom, or is long: it is not put into the functions that call it."""


# structs


def add_chunk(pool: int, size: int) -> None:
    """Memory for 64 structs more."""
    chunk = malloc(64 * size + 8)
    store(chunk, load(root() + 24))
    store(root() + 24, chunk)
    i = 63
    while i >= 0:
        p = chunk + 8 + i * size
        store(p + 8, load(pool))
        store(pool, p)
        i -= 1


def grow(values: int, size: int) -> None:
    """Room for more items in a list."""
    capacity = load(values + 8) * 2
    if capacity == 0:
        capacity = 8
    store(values, realloc(load(values), capacity * size))
    store(values + 8, capacity)


def note_dying(p: int, struct: int) -> None:
    """Nothing refers to a struct now; if that is still so when the call is over, it is freed."""
    dying = root()
    if load(dying + 16) == load(dying + 8):
        grow(dying, 16)
    entry = load(dying) + load(dying + 16) * 16
    store(entry, p)
    store(entry + 8, struct)
    store(dying + 16, load(dying + 16) + 1)


def release(p: int, struct: int) -> None:
    """One reference less."""
    if p != 0:
        count = load(p) - 2
        store(p, count)
        if count == 0:
            store(p, 1)
            note_dying(p, struct)


def release_items(data: int, count: int, size: int, struct: int) -> None:
    """One reference less for each item; `data` is the address of the reference in the first one."""
    i = 0
    while i < count:
        release(load(data + i * size), struct)
        i += 1


def release_ring(queue: int, position: int, struct: int) -> None:
    """One reference less for each struct of a queue, which then stands nowhere in it."""
    i = load(queue + 16)
    while i < load(queue + 24):
        p = load(load(queue) + (i & (load(queue + 8) - 1)) * 8)
        if p != 0 and position != 0:
            store(p + position, 0)
        release(p, struct)
        i += 1


def release_entries(entries: int, used: int, size: int, at: int, struct: int) -> None:
    """One reference less for each value of a map."""
    i = 0
    while i < used:
        if load(entries + i * size) != 0:
            release(load(entries + i * size + at), struct)
        i += 1


# numbers in order


def sorted_place(values: int, number: int) -> int:
    """The address where a number stands or would stand."""
    low = 0
    high = load(values + 16)
    while low < high:
        half = (low + high) >> 1
        if load(load(values) + half * 8) < number:
            low = half + 1
        else:
            high = half
    return load(values) + low * 8


def sorted_add(values: int, number: int) -> None:
    """One number more."""
    if load(values + 16) == load(values + 8):
        grow(values, 8)
    at = sorted_place(values, number)
    memmove(at + 8, at, load(values) + load(values + 16) * 8 - at)
    store(at, number)
    store(values + 16, load(values + 16) + 1)


def sorted_discard(values: int, number: int) -> None:
    """One number less, if it is there."""
    at = sorted_place(values, number)
    end = load(values) + load(values + 16) * 8
    if at < end and load(at) == number:
        memmove(at, at + 8, end - at - 8)
        store(values + 16, load(values + 16) - 1)


# queues


def ring_grow(queue: int, position: int) -> None:
    """A new ring without the gaps of the old one, twice as large if that was more than half full."""
    capacity = load(queue + 8)
    size = capacity
    if load(queue + 32) * 2 > capacity:
        size = capacity * 2
    if size == 0:
        size = 16
    data = malloc(size * 8)
    count = 0
    i = load(queue + 16)
    while i < load(queue + 24):
        p = load(load(queue) + (i & (capacity - 1)) * 8)
        if p != 0:
            store(data + count * 8, p)
            if position != 0:
                store(p + position, count + 1)
            count += 1
        i += 1
    free(load(queue))
    store(queue, data)
    store(queue + 8, size)
    store(queue + 16, 0)
    store(queue + 24, count)


def ring_remove(queue: int, place: int) -> None:
    """A gap where a struct stood; the head goes on to the next struct."""
    mask = load(queue + 8) - 1
    store(load(queue) + (place & mask) * 8, 0)
    store(queue + 32, load(queue + 32) - 1)
    if place == load(queue + 16):
        place += 1
        while place < load(queue + 24) and load(load(queue) + (place & mask) * 8) == 0:
            place += 1
        store(queue + 16, place)


# output


def table_grow(table: int, columns: int) -> None:
    """Room for more rows."""
    capacity = load(table + 8) * 2
    if capacity == 0:
        capacity = 1024
    store(table + 8, capacity)
    i = 0
    while i < columns:
        store(table + 16 + i * 8, realloc(load(table + 16 + i * 8), capacity * 8))
        i += 1


# heaps


def heap_less(a: int, b: int, ranks: int) -> bool:
    """Whether an item comes before another, by its first whole numbers."""
    i = 0
    while i < ranks:
        if load(a + i) != load(b + i):
            return load(a + i) < load(b + i)
        i += 8
    return False


def heap_swap(a: int, b: int, size: int) -> None:
    """Two items change places."""
    i = 0
    while i < size:
        word = load(a + i)
        store(a + i, load(b + i))
        store(b + i, word)
        i += 8


def heap_up(heap: int, size: int, ranks: int) -> None:
    """The last item goes up to its place."""
    i = load(heap + 16) - 1
    while i > 0:
        above = (i - 1) >> 1
        if not heap_less(load(heap) + i * size, load(heap) + above * size, ranks):
            break
        heap_swap(load(heap) + i * size, load(heap) + above * size, size)
        i = above


def heap_down(heap: int, size: int, ranks: int) -> None:
    """The first item changes places with the last, is no longer counted, and what came first goes down to its place."""
    count = load(heap + 16) - 1
    store(heap + 16, count)
    heap_swap(load(heap), load(heap) + count * size, size)
    i = 0
    while True:
        low = 2 * i + 1
        if low >= count:
            break
        if low + 1 < count and heap_less(load(heap) + (low + 1) * size, load(heap) + low * size, ranks):
            low += 1
        if not heap_less(load(heap) + low * size, load(heap) + i * size, ranks):
            break
        heap_swap(load(heap) + low * size, load(heap) + i * size, size)
        i = low


# maps; the index holds 0 for a free place, -1 for one that was given up, else 1 + the number of an entry


def map_find(entries: int, key: Key, size: int) -> int:
    """The address of the entry of a key, or 0."""
    if load(entries + 24) == 0:
        return 0
    mask = load(entries + 40)
    i = hashed(key) & mask
    while True:
        number = load(load(entries + 32) + i * 8)
        if number == 0:
            return 0
        if number > 0:
            entry = load(entries) + (number - 1) * size
            if same_key(entry + 8, key):
                return entry
        i = (i + 1) & mask


def map_link(entries: int, key: Key, number: int) -> None:
    """The entry of a key into the index."""
    mask = load(entries + 40)
    i = hashed(key) & mask
    while load(load(entries + 32) + i * 8) > 0:
        i = (i + 1) & mask
    store(load(entries + 32) + i * 8, number + 1)


def map_grow(entries: int, key: Key, size: int) -> None:
    """Entries without those that were given up, twice as many if more than half were there; and a new index."""
    capacity = load(entries + 8)
    if load(entries + 24) * 2 >= capacity:
        capacity = capacity * 2
    if capacity == 0:
        capacity = 8
    data = malloc(capacity * size)
    free(load(entries + 32))
    store(entries + 32, calloc(capacity * 2, 8))
    store(entries + 40, capacity * 2 - 1)
    count = 0
    i = 0
    while i < load(entries + 16):
        entry = load(entries) + i * size
        if load(entry) != 0:
            memcpy(data + count * size, entry, size)
            map_link(entries, load_key(entry + 8, key), count)
            count += 1
        i += 1
    free(load(entries))
    store(entries, data)
    store(entries + 8, capacity)
    store(entries + 16, count)


def map_put(entries: int, key: Key, size: int, value: int) -> int:
    """The address of the entry of a key; a new one has the words of nothing from `value` on."""
    entry = map_find(entries, key, size)
    if entry != 0:
        return entry
    if load(entries + 16) == load(entries + 8):
        map_grow(entries, key, size)
    number = load(entries + 16)
    entry = load(entries) + number * size
    store(entry, 1)
    store_key(entry + 8, key)
    while value < size:
        store(entry + value, 0)
        value += 8
    store(entries + 16, number + 1)
    store(entries + 24, load(entries + 24) + 1)
    map_link(entries, key, number)
    return entry


def map_drop(entries: int, key: Key, size: int) -> int:
    """The entry of a key is given up; its address, where the value still stands, or 0."""
    if load(entries + 24) == 0:
        return 0
    mask = load(entries + 40)
    i = hashed(key) & mask
    while True:
        number = load(load(entries + 32) + i * 8)
        if number == 0:
            return 0
        if number > 0:
            entry = load(entries) + (number - 1) * size
            if same_key(entry + 8, key):
                store(load(entries + 32) + i * 8, -1)
                store(entry, 0)
                store(entries + 24, load(entries + 24) - 1)
                return entry
        i = (i + 1) & mask
