"""What a user of the endpoint or the console may read: some names, and of an aggregation the rows of some group keys.

    [serve.users]
    ann = { password_env = "ANN_PASSWORD", reads = ["TradeAgg"], where = "region = 'EU'" }

A grant makes a program of its own, which has nothing else. So whatever is made of it (questions, views, lists of names,
hints of errors) cannot show what is not granted.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rollup.core.errors import ConfigError, RollupError
from rollup.lang.sql.declarations import parse_condition
from rollup.plan.aggregation import Aggregation
from rollup.plan.expressions import Scope, condition
from rollup.program import Program

HINT = 'reads = ["TradeAgg"], and where = "region = \'EU\'" or where = { TradeAgg = "region = \'EU\'" }'


@dataclass(frozen=True)
class Grant:
    """The names that may be read, and for some of the aggregations the condition that a row passes.

    Users of equal grants share what is loaded for them.
    """

    reads: tuple[str, ...]
    where: tuple[tuple[str, str], ...] = ()

    def program(self, program: Program) -> Program:
        """The program with what may be read of it alone. Raises PlanError for a condition that cannot be one."""
        passes = dict(self.where)
        granted = {
            name: _only(aggregation, passes[name]) if name in passes else aggregation
            for name, aggregation in program.aggregations.items()
            if name in self.reads
        }
        return replace(program, aggregations=granted, streams={})


def _only(aggregation: Aggregation, text: str) -> Aggregation:
    kinds = {key.name: key.type for key in aggregation.keys}
    return replace(aggregation, visible=condition(parse_condition(text), Scope.of(kinds), "`where`"))


def grant_of(said: Mapping[str, Any], program: Program, tables: tuple[str, ...], where: str) -> Grant | None:
    """The grant that an entry of `[serve.users]` says; None for a user who may read everything.

    `tables` are the names beside aggregations, and `where` says in which place of the configuration it stands.
    Raises ConfigError.
    """
    if "reads" not in said and "where" not in said:
        return None
    known = (*program.aggregations, *tables)
    reads = said.get("reads", list(known))
    if not isinstance(reads, list) or not all(isinstance(name, str) for name in reads):
        raise ConfigError(f"{where} reads is {reads!r}, which is no list of names", hint=HINT)
    for name in reads:
        if name not in known:
            raise ConfigError(f"{where} reads {name!r}, which there is not", hint=_near(name, known))
    passes = _conditions(said.get("where", {}), reads, program, where)
    made = Grant(tuple(dict.fromkeys(reads)), tuple(sorted(passes.items())))
    for name, text in passes.items():
        try:
            _only(program.aggregations[name], text)
        except RollupError as problem:
            keys = ", ".join(key.name for key in program.aggregations[name].keys) or "none"
            raise ConfigError(
                f"{where} where = {text!r}: {problem.message}", hint=f"the group keys of {name} are {keys}"
            ) from None
    return made


def _conditions(said: Any, reads: list[str], program: Program, where: str) -> dict[str, str]:
    """The condition for each aggregation: one text is for all of them."""
    if isinstance(said, str):
        beside = [name for name in reads if name not in program.aggregations]
        if beside:
            raise ConfigError(
                f"{where} where is of all that the user reads, and {beside[0]} is no aggregation",
                hint="name the aggregations: where = { TradeAgg = \"region = 'EU'\" }; tables are read whole",
            )
        return dict.fromkeys(reads, said)
    if not isinstance(said, Mapping) or not all(isinstance(text, str) for text in said.values()):
        raise ConfigError(f"{where} where is {said!r}, which is no condition", hint=HINT)
    for name in said:
        if name not in reads or name not in program.aggregations:
            raise ConfigError(f"{where} where names {name!r}, which is no aggregation that the user reads", hint=HINT)
    return dict(said)


def _near(name: str, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(name, known, 1)
    return f"did you mean {close[0]}?" if close else f"there are {', '.join(known) or 'none'}"
