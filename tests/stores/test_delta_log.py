"""The log of a Delta table as this package reads it, written by Delta's own library."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from rollup.stores.delta.standing import made_after


@pytest.mark.parametrize("key", ["plain", "a\u2028b", "a\x85b", "a\nb", 'a"b'])
def test_a_key_with_any_sign_does_not_cut_the_log(tmp_path: Path, key: str) -> None:
    for _ in range(3):
        write_deltalake(tmp_path, pa.table({"k": [key]}), mode="append")
    assert [(made.version, made.changes) for made in made_after(tmp_path, 0)] == [(1, True), (2, True)]
