"""Texts as whole numbers: what a program sees of them, which only asks whether two are the same."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rollup.engine.compiler.arrays import Ints


class Codes:
    """The texts that one state has seen, by number. A text keeps its number while the state lives; None is -1.

    >>> codes = Codes()
    >>> codes.encode(pa.array(["a", "b", None, "a"])).tolist()
    [0, 1, -1, 0]
    >>> codes.decode(np.array([1, -1])).to_pylist()
    ['b', None]
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._texts = pa.array([], pa.string())

    def encode(self, texts: pa.Array) -> Ints:
        """The numbers of texts."""
        encoded = texts.dictionary_encode()
        numbers = self._numbers
        known = [numbers.setdefault(each, len(numbers)) for each in encoded.dictionary.to_pylist()]
        found = encoded.indices.fill_null(len(known)) if encoded.null_count else encoded.indices
        return np.array([*known, -1], np.int64)[found.to_numpy()]

    def decode(self, numbers: Ints) -> pa.Array:
        """The texts of numbers."""
        return self.named(numbers).dictionary_decode()

    def named(self, numbers: Ints) -> pa.DictionaryArray:
        """The same, as numbers beside the texts."""
        if len(self._texts) < len(self._numbers):
            self._texts = pa.array(self._numbers, pa.string())
        nothing = numbers < 0
        found = pa.array(numbers, mask=nothing if nothing.any() else None)
        return pa.DictionaryArray.from_arrays(found, self._texts, safe=False)
