"""The first line of a CSV file is found wherever it is, and without reading what follows it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rollup.sources.content import delimited
from rollup.sources.content.delimited import Delimited


def test_the_names_of_columns_are_read_from_the_beginning_of_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def blocks(path: str) -> Iterator[bytes]:
        yield b"\r\n" * 3000
        yield b'a,"b\nb",c\n' + b"1,2,3\n" * 1500
        raise AssertionError("what follows was read")

    monkeypatch.setattr(delimited, "blocks", blocks)
    assert Delimited("f.csv", True, ",", "").names() == ["a", "b\nb", "c"]


@pytest.mark.parametrize("lines", [0, 10, 2000])
def test_names_stand_in_a_file_of_any_length(tmp_path: Path, lines: int) -> None:
    (tmp_path / "f.csv").write_text("\n\na,b\n" + "1,2\n" * lines)
    assert Delimited(str(tmp_path / "f.csv"), True, ",", "").names() == ["a", "b"]
