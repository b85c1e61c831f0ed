"""Texts as whole numbers: what a program sees of them, which only asks whether two are the same."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pyarrow as pa

from rollup.engine.compiler.arrays import Ints

_FEW = 128
"""So many texts are quicker looked up one by one than together by Arrow."""


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
        self._texts: list[str] = []
        """Those of the numbers, but for the newest."""
        self._array = pa.array([], pa.string())
        """The same for Arrow."""

    def encode(self, texts: pa.Array) -> Ints:
        """The numbers of texts."""
        numbers = self._numbers
        if len(texts) < _FEW:
            found = (numbers.setdefault(each, len(numbers)) if each is not None else -1 for each in texts.to_pylist())
            return np.fromiter(found, np.int64, len(texts))
        encoded = texts.dictionary_encode()
        known = [numbers.setdefault(each, len(numbers)) for each in encoded.dictionary.to_pylist()]
        found = encoded.indices.fill_null(len(known)) if encoded.null_count else encoded.indices
        return np.array([*known, -1], np.int64)[found.to_numpy()]

    def decode(self, numbers: Ints) -> pa.Array:
        """The texts of numbers."""
        found = self.named(numbers)
        return found.dictionary_decode() if isinstance(found, pa.DictionaryArray) else found

    def named(self, numbers: Ints) -> pa.Array:
        """The same; of many, as numbers beside the texts."""
        if new := len(self._numbers) - len(self._texts):
            self._texts += [*islice(reversed(self._numbers), new)][::-1]
        if len(numbers) < _FEW:
            return pa.array([self._texts[each] if each >= 0 else None for each in numbers.tolist()], pa.string())
        if len(self._array) < len(self._texts):
            self._array = pa.array(self._texts, pa.string())
        nothing = numbers < 0
        found = pa.array(numbers, mask=nothing if nothing.any() else None)
        return pa.DictionaryArray.from_arrays(found, self._array, safe=False)
