"""Small files that stand behind one another in a batch, read as one part: what a part costs to begin is paid once.

A part takes some 15 to 40 ms of a core however little is in it, so a folder of ten thousand files of a few lines would
take minutes. The driver notes the place in the batch of each small file, and gives neighbours to one task; there those
whose places follow one another are one relation. Its records are those of the files read one by one, with the same
order, letters and positions; files that do not fit together, or hold anything odd, are read one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from rollup.core.columns import ColumnEngine
from rollup.core.identifiers import quoted
from rollup.sources.base import DEAD, Part
from rollup.sources.content.delimited import Delimited
from rollup.sources.content.documents import IS_OBJECT, OK, Documents, read_documents
from rollup.sources.content.lines import lines
from rollup.sources.content.presence import great, json_looked, objects
from rollup.sources.content.records import view
from rollup.sources.file_log import in_order

if TYPE_CHECKING:
    from rollup.sources.files import Files

SMALL = 64 << 10
"""Bytes of a file that may be read together with others."""
PLACE = "__place"
_MOST_FILES, _MOST_ROWS = 256, 100_000
Row = Mapping[str, Any]


class Odd(Exception):
    """Files that are not read together."""


def runs(batch: pa.Table) -> Iterator[list[Row]]:
    """The files of a task's share, those together whose places in the batch follow one another."""
    run = list[Row]()
    for row in batch.to_pylist():
        place = row.get("place", -1)
        if run and (place < 0 or place != run[-1]["place"] + 1 or len(run) == _MOST_FILES):
            yield run
            run = []
        run.append(row)
    if run:
        yield run


def dealt(sizes: Sequence[int], tasks: int) -> list[tuple[int, int]]:
    """For each file of a batch by its place: in the order in which tasks take equal shares of them, with -1 for the
    place of one that is read by itself.

    >>> dealt([10, 10, 1 << 20, 10, 2 << 20], 2)
    [(4, -1), (0, 0), (2, -1), (1, 1), (3, 3)]
    """
    large = sorted((at for at, size in enumerate(sizes) if size > SMALL), key=lambda at: -sizes[at])
    small = [at for at, size in enumerate(sizes) if size <= SMALL]
    found = list[tuple[int, int]]()
    for task in range(tasks):
        share = small[task * len(small) // tasks : (task + 1) * len(small) // tasks]
        found += [(at, -1) for at in large[task::tasks]] + [(at, at) for at in share]
    return found


def together(files: Files, engine: ColumnEngine, rows: Sequence[Row]) -> Part:
    """Files as one part. Raises Odd, or whatever reading them raises, where they must be read one by one."""
    read = {"json": _json, "csv": _csv, "parquet": _parquet}[files.kind]
    count, dead, looked = read(files, engine, rows)
    parsed = files.kind != "parquet"
    first = rows[0]
    return Part(
        "__batch",
        count,
        first["path"],
        in_order(first["modified"] // 1000),
        dead,
        places="__places",
        looked=looked,
        parsed=parsed,
    )


def _gathered(rows: Sequence[Row], tables: Sequence[pa.Table]) -> pa.Table:
    """The records of files as one table: with their arrival, when they were received, and where they stand."""
    placed, before = list[pa.Table](), 0
    for row, table in zip(rows, tables, strict=True):
        count = table.num_rows
        columns = {
            "__arrival": pa.array(range(before, before + count), pa.int64()),
            "__received": pa.repeat(pa.scalar(row["modified"] // 1000, pa.int64()), count),
            PLACE: pa.array([f"{row['path']}:{number}" for number in range(count)], pa.string()),
        }
        for name, column in columns.items():
            table = table.append_column(name, column)
        placed.append(table)
        before += count
    return pa.concat_tables(placed)


def _json(files: Files, engine: ColumnEngine, rows: Sequence[Row]) -> tuple[int, pa.Table, pa.Table]:
    found = [lines(files.near(row["path"])).read_all().select(["raw", "readable", "plain"]) for row in rows]
    raw = "RTRIM(raw, CHR(10) || CHR(13))"

    def read(documents: Documents) -> tuple[int, pa.Table]:
        relation = documents.relation("(SELECT * FROM small_files)")
        return view(engine, files.stream, relation, documents.readers(), raw, OK, PLACE, [PLACE])

    with engine.tables({"small_files": _gathered(rows, found)}):
        count, dead = read_documents(files.stream, files.renamed, read)
        known = objects("small_files", f"readable AND {IS_OBJECT}", "__arrival", None, PLACE)
        return count, dead, json_looked(engine, files.stream, files.options, known)


def _csv(files: Files, engine: ColumnEngine, rows: Sequence[Row]) -> tuple[int, pa.Table, pa.Table]:
    each = [files.delimited(row["path"]) for row in rows]
    names = _same([file.names() for file in each]) if each[0].header else files.own_names
    if files.missing(names) or files.twice(names):
        raise Odd
    found, letters = list[pa.Table](), list[pa.Table]()
    for row, file in zip(rows, each, strict=True):
        records, broken = file.records(len(names))
        found.append(records)
        letters.append(files.letters(row["path"], broken))
    relation = "(SELECT * FROM small_files) AS r"
    with engine.tables({"small_files": _gathered(rows, found)}):
        count, dead = view(
            engine, files.stream, relation, files.text_readers(names), Delimited.text(names), "true", PLACE, [PLACE]
        )
        seen = pa.concat_tables([files.looked(names, rows[0]["path"]), great(engine, files.stream)])
    return count, pa.concat_tables([dead, *letters]), seen


def _parquet(files: Files, engine: ColumnEngine, rows: Sequence[Row]) -> tuple[int, pa.Table, pa.Table]:
    """Only where every column has its attribute's type: then nothing is converted, and every row is an event."""
    found = [_exact(files, row["path"]) for row in rows]
    with engine.tables({"small_files": _gathered(rows, found)}):
        engine.connection.execute("CREATE OR REPLACE TEMP TABLE __held AS SELECT * FROM small_files")
    names = ", ".join(map(quoted, files.stream.attributes))
    engine.connection.execute(
        f"CREATE OR REPLACE TEMP VIEW __batch AS SELECT {names}, __arrival, __received FROM __held"
    )
    engine.connection.execute(
        f"CREATE OR REPLACE TEMP VIEW __places AS SELECT __arrival, {PLACE} AS __position FROM __held"
    )
    count = sum(table.num_rows for table in found)
    return count, DEAD.empty_table(), files.looked(files.own_names, rows[0]["path"])


def _exact(files: Files, path: str) -> pa.Table:
    """The attributes in a Parquet file. Raises Odd when a column is not there, or not of its attribute's type."""
    with pq.ParquetFile(files.near(path)) as file:
        schema = file.schema_arrow
        places = [schema.get_field_index(name) for name in files.own_names]
        kinds = [kind.arrow for kind in files.stream.attributes.values()]
        if any(at < 0 or schema.field(at).type != kind for at, kind in zip(places, kinds, strict=True)):
            raise Odd
        if file.metadata.num_rows > _MOST_ROWS:
            raise Odd
        whole = file.read(use_threads=False)
    whole.validate(full=True)
    columns = [whole.column(at) for at in places]
    return pa.table(columns, names=list(files.stream.attributes))


def _same(names: Sequence[list[str]]) -> list[str]:
    if any(each != names[0] for each in names):
        raise Odd
    return names[0]
