"""Variables over columns: what a core shows and what events it takes may hang on them, and they may change between batches."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Generic, TypeVar

from rollup.core.descriptions import descendants
from rollup.engine.columns.running.uses import marked, mentioned
from rollup.engine.expressions import Variable, with_values
from rollup.engine.rows.actions import SetVariables
from rollup.engine.rows.component import Component, Deployed
from rollup.engine.rows.plans import Select, StreamInput
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.types import DataType, RowType

T = TypeVar("T")


class Varying(Generic[T]):
    """A core, or a plan, and the variables of the engine: as it is with the values that they have."""

    def __init__(self, given: T, variables: Mapping[str, Any]) -> None:
        self._given, self._variables, self._known = given, variables, (repr([]), given)

    @cached_property
    def _names(self) -> list[str]:
        return sorted(variables_in(self._given))

    @property
    def now(self) -> T:
        """As it is now."""
        if not self._names:
            return self._given
        values = {name: self._variables[name] for name in self._names}
        key = repr(list(values.values()))  # 0.0 is not -0.0, though they are equal
        if self._known[0] != key:
            self._known = (key, with_values(self._given, values))
        return self._known[1]


def variables_in(tree: Any) -> frozenset[str]:
    """The names of the variables that a core or plan reads."""
    return frozenset(each.name for each in descendants(tree, (DataType, RowType)) if isinstance(each, Variable))


def against_varying(plan: Select, known: Collection[str]) -> str | None:
    """The first reason against where a statement reads variables: filters ask for them when an event comes, columns and `having`
    when a row is made, outputs of so many events whenever they count. Elsewhere rows are kept by what they were worth. `known`: those that are no partition's own.
    """
    names = variables_in(plan)
    if not names <= {*known}:
        return "a variable of each partition"
    return "a variable where rows are kept, wait or are counted" if variables_in(_elsewhere(plan)) else None


def _elsewhere(plan: Select) -> Select:
    """A statement without what may hang on variables."""
    inputs, own = ([_unfiltered(each) for each in some] for some in (plan.inputs, plan.own_inputs))
    shown = plan.projection if plan.rate.limited else Projection(())
    rate = plan.rate if plan.rate.mode == "first" else replace(plan.rate, events=None)
    return replace(plan, inputs=tuple(inputs), own_inputs=tuple(own), projection=shown, rate=rate)


def _unfiltered(input: Any) -> Any:
    return replace(input, filter=replace(input.filter, test=None)) if isinstance(input, StreamInput) else input


class Steadiness:
    """Whether the variables that statements read stay what they are for as long as a batch is under way; `uses`: what each
    statement has in common with others.
    """

    def __init__(self, component: Component, uses: Mapping[str, frozenset[str]]) -> None:
        self._component, self._uses = component, uses

    @cached_property
    def _setting(self) -> dict[str, list[str]]:
        """The statements that set each variable."""
        found: dict[str, list[str]] = {}
        for name, deployed in self._component.statements.items():
            for variable in _set_by(deployed):
                found.setdefault(variable, []).append(name)
        return found

    @cached_property
    def _quiet(self) -> frozenset[str]:
        """The streams that come from outside alone, and of whose events nothing is inserted."""
        heard = frozenset[str]().union(*(marked(uses, "< ") for uses in self._uses.values()))
        moving = (marked(uses, "> ") | marked(uses, "< ") for uses in self._uses.values() if marked(uses, "> "))
        return heard - frozenset[str]().union(*moving)

    def against(self, name: str) -> str | None:
        """The first reason why a batch of what a statement hears might change a variable that it reads."""
        if not self._setting:
            return None
        hears = self._heard(name)
        for variable in marked(self._uses[name], "variable "):
            if not all(self._aside(setter, hears) for setter in self._setting.get(variable, ())):
                return f"the variable `{variable}`, which may be set between the events that it hears"
        return None

    def _heard(self, name: str) -> frozenset[str]:
        """The streams that a statement hears, be it by its context."""
        context = self._component.statements[name].context
        begun = () if context is None else mentioned(self._component.contexts[context].context)
        return marked((*self._uses[name], *begun), "< ")

    def _aside(self, setter: str, hears: frozenset[str]) -> bool:
        """Whether a variable is set by the events of a stream alone that has nothing to do with those."""
        deployed = self._component.statements[setter]
        plan = deployed.plan
        if not isinstance(plan, SetVariables) or deployed.context is not None:
            return False
        trigger = plan.trigger
        if not isinstance(trigger, StreamInput) or trigger.window is not None:
            return False
        return trigger.filter.stream in self._quiet - hears


def _set_by(deployed: Deployed) -> Collection[str]:
    match deployed.plan:
        case SetVariables(settings=settings):
            return [name for name, _ in settings]
        case Select(rate=rate):
            return [each.variable for each in (*rate.then, *rate.end_then)]
        case _:
            return ()
