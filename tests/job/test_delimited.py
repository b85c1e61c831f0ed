"""The first line of a CSV file is found wherever it is, and without reading what follows it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.sources.content import delimited
from rollup.sources.content.delimited import Delimited


def test_the_names_of_columns_are_read_from_the_beginning_of_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def blocks(path: str, size: int) -> Iterator[bytes]:
        yield b"\r\n" * 3000
        yield b'a,"b\nb",c\n' + b"1,2,3\n" * 1500
        raise AssertionError("what follows was read")

    monkeypatch.setattr(delimited, "blocks", blocks)
    assert Delimited("f.csv", True, ",", ("",)).names() == ["a", "b\nb", "c"]


@pytest.mark.parametrize("lines", [0, 10, 2000])
def test_names_stand_in_a_file_of_any_length(tmp_path: Path, lines: int) -> None:
    (tmp_path / "f.csv").write_text("\n\na,b\n" + "1,2\n" * lines)
    assert Delimited(str(tmp_path / "f.csv"), True, ",", ("",)).names() == ["a", "b"]


_LINE = st.lists(st.sampled_from([b"1,2", b"", b" ", b"x,y", b"\r", b"1,2\r", b'"a\nb",2', b'"",1']), max_size=8)


@given(_LINE, st.booleans(), st.integers(min_value=1, max_value=40))
def test_blocks_that_need_no_look_at_their_bytes_are_counted_as_the_others(
    lines: list[bytes], ended: bool, block: int
) -> None:
    content = b"\n".join(lines) + (b"\n" if ended else b"")
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "_COUNTED", block)
        (Path(folder) / "f.csv").write_bytes(content)
        file = Delimited(str(Path(folder) / "f.csv"), False, ",", ("",))
        quick = file._records()  # pyright: ignore[reportPrivateUsage]
        patch.setattr(delimited, "_UNEVEN", (b"",))
        assert quick == file._records()  # pyright: ignore[reportPrivateUsage]
