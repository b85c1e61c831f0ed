"""`rollup plan` and `rollup ddl`: what would run, and the tables it needs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rollup.conf import load

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.table import Table

    from rollup.conf import Conf
    from rollup.plan.aggregation import Aggregation
    from rollup.plan.dividing import Keys
    from rollup.program import Program

ConfArgument = Annotated[Path, typer.Argument(help="The configuration, a TOML file.")]


def plan(
    conf: ConfArgument,
    sql: Annotated[bool, typer.Option("--sql", help="Also print the SQL of the first step.")] = False,
) -> None:
    """Say what would run: streams, levels, tables, columns."""
    found = load(conf)
    program = found.program()
    from rollup.aggregation.partials import Partials
    from rollup.cli.console import console
    from rollup.core.dialects import to_sql
    from rollup.dimensions import dimensions
    from rollup.lifecycle.readiness import ready

    ready(found, program)
    if found.serve:
        from rollup.ask import Asker
        from rollup.gateway.servers.options import ServeOptions

        ServeOptions.of(found, passwords=False).grants(found, program, Asker(found, program).tables)
    for said in program.notices:
        print(f"rollup: warning: {found.app}, {said}", file=sys.stderr)
    out = console()
    for name in program.inputs:
        out.print(f"stream {name} from {_origin(found.sources[name])}", soft_wrap=True)
    for derivation in program.derivations:
        out.print(f"stream {derivation.target} from stream {derivation.source}: {to_sql(derivation.query)}")
    for definition in program.app.aggregations:
        aggregation = program.aggregations[definition.name]
        for said in _described(aggregation, program.rollups.lateness.says(definition)):
            out.print(said, soft_wrap=isinstance(said, str))
        if sql:
            out.print(Partials(aggregation).sql, soft_wrap=True)
    for line in _statements(found, program):
        out.print(line, soft_wrap=True)
    for dimension in dimensions(found, program):
        out.print(dimension.described, soft_wrap=True)


def _origin(options: Mapping[str, Any]) -> str:
    """The kind of a source, and of a topic who reads its messages."""
    from rollup.sources.topics.ways import way

    return f"kafka: {way(options).described}" if options["kind"] == "kafka" else str(options["kind"])


def _statements(conf: Conf, program: Program) -> Iterator[str]:
    """A line for each component of statements, and for each stream that it gives."""
    if program.statements is None:
        return
    from rollup.hosts.statements.outlets import sinks_of
    from rollup.hosts.statements.running import bound_to_statements
    from rollup.sinks.kinds import KINDS
    from rollup.statements.committed.kept import Kept

    sinks, bound, kept = sinks_of(conf, program), bound_to_statements(program), Kept(conf.tables, program)
    for part in program.statements.parts:
        how, reads = part.component.described, ", ".join(sorted(part.names.reads))
        shards = _shards(how.keys, conf.statement_shards)
        yield f"statements {part.name}: on {how.executor} ({how.reason}); shards: {shards}; state: {how.state}; reads {reads}"
        for remark in how.remarks:
            yield f"  {remark}"
        for table in part.names.tables:
            yield f"  joins table {table.name}, read when the job starts: {len(table.rows)} rows now"
        if kept.of(part.name):
            yield f"  keeps {', '.join(kept.of(part.name))}: `rollup query` and `rollup serve` read what the last commit left"
        for name in part.component.writes:
            given = program.streams[name]
            what = f"stream {name}" if given.table is None else f"table {name} ({given.kept})"
            fed = [one for one in bound if program.aggregations[one].stream == name]
            to = [f"aggregation {one}" for one in sorted(fed)]
            if name in sinks:
                kind = sinks[name]["kind"]
                merged = f"; {KINDS[kind].keyed}" if given.table else ""
                to.append(f"{kind} ({KINDS[kind].guarantee}{merged})")
            yield f"  {what} to {', '.join(to) or 'no sink: counted in the log'}"


def _shards(keys: Keys, shards: int | None) -> str:
    """How many a component has, by what, or why it has one."""
    if not keys:
        return f"one, in the driver: {keys.reason}"
    if shards is None:
        return f"one, in the driver; statement_shards would divide them by {keys}"
    return f"{shards}, by {keys}"


def _described(aggregation: Aggregation, policy: str) -> Iterator[str | Table]:
    """What an aggregation is, the columns of its tables, and their names."""
    from rich.table import Table

    from rollup.core.dialects import to_sql

    yield (
        f"{aggregation.name}: from {aggregation.stream}, buffer {aggregation.buffer} {aggregation.root.plural}, "
        f"late events {aggregation.policy} ({policy})"
    )
    table = Table("column", "stored as", "merged by")
    merges = {value.name: to_sql(value.merge) for value in aggregation.values}
    for name, kind in aggregation.kinds.items():
        table.add_row(name, str(kind.table), merges.get(name, "key"))
    yield table
    yield "tables: " + ", ".join(map(aggregation.table, aggregation.levels))


def ddl(conf: ConfArgument) -> None:
    """Print the statements that create the tables."""
    found = load(conf)
    from rollup.core.columns import ColumnEngine
    from rollup.stores.ddl import statements

    for aggregation in found.program().aggregations.values():
        for statement in statements(found, aggregation, ColumnEngine()):
            print(statement + ";")
