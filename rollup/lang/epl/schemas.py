"""create schema → the columns of its events, and the schemas whose events they are, too."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rollup.engine.types import DataType, Kind, RowType
from rollup.lang.epl.catalog import Catalog, problem, unknown
from rollup.lang.epl.tree import statements as sm


def schema(body: sm.CreateSchema, catalog: Catalog) -> tuple[RowType, list[str]]:
    """The rows of a schema, and those that it inherits. Raises PlanError where it cannot be."""
    if body.kind not in (None, "map", "objectarray", "json", "avro", "xml", "variant"):
        raise unknown("kind of schema", body.kind, ["map", "objectarray", "json"], body)
    if body.kind == "variant":
        raise problem("variant schemas are not supported", body, "create schema name (column type, …)")
    columns: dict[str, DataType] = {}
    parents = _parents(body, catalog)
    for option, names in body.options:
        for name in names if option in ("inherits", "copyfrom") else ():
            for column, kind in catalog.row_type(name, body).fields.items():
                if columns.setdefault(column, kind) != kind:
                    raise problem(f"`{column}` of `{name}` is {kind}, not {columns[column]}", body, "rename it")
    check_names([column for column in body.columns if not _inherited(column, parents, catalog)], columns)
    for column in body.columns:
        columns[column.name] = catalog.data_type(column.type)
    for name in (name for option, names in body.options if option.endswith("timestamp") for name in names):
        if name not in columns or columns[name].kind not in (Kind.LONG, Kind.TIMESTAMP):
            raise problem(f"`{name}` is no time of the event", body, "a column of type long")
    return RowType(body.name, columns), parents


def _parents(body: sm.CreateSchema, catalog: Catalog) -> list[str]:
    """The schemas that one inherits, each of them once, be it through another."""
    names = [name for option, names in body.options if option == "inherits" for name in names]
    for name in names:
        if name == body.name:
            raise problem(f"`{name}` would inherit itself", body, "inherits another schema")
        if name in catalog.implied:  # it ends with the insert, and may yet be declared as anything
            raise problem(
                f"`{name}` is a stream of an insert, not a schema", body, "declare it with create schema first"
            )
        if name not in catalog.types:
            raise unknown("event type", name, catalog.types, body)
    above = {name: catalog.ancestors.get(name, frozenset()) for name in names}
    parents = [name for name in above if not any(name in others for others in above.values())]
    found = set[str]()
    for name in parents:
        twice = found & above[name]
        if twice:
            raise problem(f"`{body.name}` would inherit `{min(twice)}` twice", body, f"inherits {parents[0]}")
        found |= above[name]
    return parents


def _inherited(column: sm.Column, parents: Sequence[str], catalog: Catalog) -> bool:
    """Whether a schema says once more what it inherits. Raises PlanError where it says it otherwise."""
    known = [(parent, catalog.types[parent].fields.get(column.name)) for parent in parents]
    kind = catalog.data_type(column.type)
    for parent, other in known:
        if other is not None and other != kind:
            raise problem(f"`{column.name}` of `{parent}` is {other}", column, "leave it out, or rename it")
    return any(other is not None for _, other in known)


def check_names(columns: Sequence[sm.Column | sm.TableColumn], known: Collection[str] = ()) -> None:
    """Raise PlanError for a name that two columns have, or one of those that are `known`."""
    names = set(known)
    for column in columns:
        if column.name in names:
            raise problem(f"two columns are called `{column.name}`", column)
        names.add(column.name)
