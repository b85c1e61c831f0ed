"""Compiled loops: generated source, kept in a file under the hash of its text, compiled once a machine by numba.

numba keeps machine code beside the file that a function came from; that is why the source is a file. A new process
loads the code (0.25 s) instead of compiling it (1 to 2 s).
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from rollup.core.cache import cache_root

_HEAD = '''"""Generated; see rollup/engine/columns/cores."""
from math import sqrt

import numpy as np
from numba import njit

compiled = njit(cache=True, nogil=True, error_model="numpy")


@compiled
def moments_without(n, center, m2, x):
    if n <= 1:
        return 0, 0.0, 0.0
    before = center
    center = (n * center - x) / (n - 1)
    if n == 2:
        return 1, center, 0.0
    return n - 1, center, max(0.0, m2 - (x - before) * (x - center))


@compiled
def mean_of_whole(total, n):
    """As exact as Python's: rounded once, also where the total has more bits than a double."""
    if -(2**53) <= total <= 2**53:
        return total / n
    # Below 2**31 values of 32 bits: the quotient has 23 to 32 bits and fits 64 with 32 more. At least 55 in all are the
    # 53 of a double, the one that rounds, and one that says whether there is more.
    rest = total % n << 32
    fine = (total // n << 32) + rest // n
    return (fine | (rest % n != 0)) / 2**32


'''


CHAINS = """
@compiled
def link(p, c, first, last, after, before):
    before[p], after[p] = last[c], -1
    if last[c] >= 0:
        after[last[c]] = p
    else:
        first[c] = p
    last[c] = p


@compiled
def unlink(p, c, first, last, after, before):
    if before[p] >= 0:
        after[before[p]] = after[p]
    else:
        first[c] = after[p]
    if after[p] >= 0:
        before[after[p]] = before[p]
    else:
        last[c] = before[p]


"""
"""Chains of numbers, each in the order in which they were linked: `c` says which one a number is in."""
LOADS = """
from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def load(bits, kind):
    # data[at:] as one number of so many bits, the first byte lowest. An index of numba's may be negative, which is
    # asked at every byte: twice the time of the whole loop.
    def typed(typing, data, at):
        def code(context, builder, signature, args):
            place = builder.gep(context.make_array(signature.args[0])(context, builder, args[0]).data, [args[1]])
            found = builder.load(builder.bitcast(place, ir.IntType(bits).as_pointer()))
            found.align = 1
            return found

        return kind(data, types.int64), code

    return intrinsic(typed)


byte_at = load(8, types.uint8)
eight_at = load(64, types.uint64)


"""
"""What a loop over bytes needs before it: `byte_at(data, at)` and `eight_at(data, at)`."""


@cache
def loop(text: str, before: str = "") -> Callable[..., Any]:
    """The compiled function `core` of a text that defines it; `before` is what else that text needs.

    >>> loop("def core(n):\\n    return n + 1\\n")(1)
    2
    """
    source = f"{_HEAD}{before}@compiled\n{text}"
    name = f"core_{hashlib.sha256(source.encode()).hexdigest()[:24]}"
    spec = importlib.util.spec_from_file_location(name, _file(name, source))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # machine code that is loaded from the cache asks for its module by name
    spec.loader.exec_module(module)
    return module.core


def _file(name: str, source: str) -> Path:
    """The file of a source. What stands there is compared, since a cache may have been cut off or changed."""
    folder = cache_root() / "cores"
    path = folder / f"{name}.py"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != source:
            handle, temporary = tempfile.mkstemp(dir=folder, suffix=".tmp")
            with os.fdopen(handle, "w") as file:
                file.write(source)
            os.replace(temporary, path)  # another process may be writing the same text
    except OSError:  # no folder of the user's: this process compiles for itself
        path = Path(tempfile.mkdtemp(prefix="rollup-core-")) / f"{name}.py"
        path.write_text(source)
    return path


def block(lines: Sequence[str], depth: int) -> str:
    """Lines at a depth of indentation, for a template."""
    return "\n".join("    " * depth + line for line in lines) or "    " * depth + "pass"
