"""The first line of a CSV file is found wherever it is, and without reading what follows it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.core.columns import ColumnEngine
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


_ABOVE = ["", "# of shop 7, exported at 10:00", "Report", "sep=,", "Report,,", '# 5" wide', "\r"]


@given(
    st.lists(st.sampled_from(_ABOVE), max_size=4),
    st.lists(st.sampled_from(["1,2,3", "", "4,5", '"x,y",,z']), max_size=5),
)
def test_the_header_may_stand_below_other_lines(above: list[str], lines: list[str]) -> None:
    """Read at once and line by line: the same records, and the same lines that are none, as without what is above."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder) / "f.csv"
        path.write_text("\n".join([*above, "a,b,c", *lines, ""]))
        file = Delimited(str(path), True, ",", ("",)).headed(lambda names: {"b", "c"} <= {*names})
        assert file.names() == ["a", "b", "c"]
        found = [_loaded(file)]
        patch.setattr(Delimited, "_at_once", lambda *_: None)
        found.append(_loaded(file))
        path.write_text("\n".join(["a,b,c", *lines, ""]))
        rows, broken = _loaded(Delimited(str(path), True, ",", ("",)))
        assert found == [(rows, [line + len(above) for line in broken])] * 2


def _loaded(file: Delimited) -> tuple[list[dict[str, Any]], list[int]]:
    found, engine = list[dict[str, Any]](), ColumnEngine()

    def read(records: str) -> tuple[int, pa.Table]:
        found[:] = engine.run(f"SELECT * EXCLUDE __arrival FROM {records}").to_pylist()
        return len(found), pa.table({})

    _, _, broken = file.load(engine, 3, read)
    return found, broken["line"].to_pylist()


@pytest.mark.parametrize("text", ["x,y,z\n1,2,3\na,b,c\n4,5,6\n", "1,2,3\n", "", "a,b\n1,2\n", "a\n", '"\nx,y'])
def test_a_header_below_what_may_be_a_record_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "f.csv").write_text(text)
    file = Delimited(str(tmp_path / "f.csv"), True, ",", ("",))
    assert file.headed(lambda names: {"b", "c"} <= {*names}) is file


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
