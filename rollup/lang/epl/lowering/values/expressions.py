"""Expressions of the tree → typed expressions of the engine: names bound, operators chosen, types checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, NoReturn

from rollup.core.errors import PlanError
from rollup.engine import decimals
from rollup.engine import operators as op
from rollup.engine.expressions import All, Any_, Call, Case, Coalesce, Const, Expr, Now, inputs_read
from rollup.engine.operators import Operator
from rollup.engine.quantifiers import AMONG, quantifier
from rollup.engine.rows.plans import Arriving, Earlier, Previous
from rollup.engine.types import ANY, BOOL, DECIMAL, DOUBLE, FLOAT, INT, LONG, NULL, STRING, DataType, Kind
from rollup.lang.epl.accessing import OF_RANKS
from rollup.lang.epl.catalog import keyable, loose, ordered, problem, unknown
from rollup.lang.epl.lowering.values.comparing import FLAT, LISTED, among, apart, as_doubles, between, widened
from rollup.lang.epl.lowering.values.names import LowerNames
from rollup.lang.epl.render import render
from rollup.lang.epl.scope import Scope, aggregates, called, is_aggregate, reads_nothing
from rollup.lang.epl.semantics import ARITHMETIC, BITS, CASTS, COMPARE, HASHES, OF_WHOLE, REGEXP, casting, regular
from rollup.lang.epl.tree import expressions as ex
from rollup.lang.epl.tree.node import Enclosed


def lower(node: ex.Expression, scope: Scope) -> Expr:
    """An expression, bound. Raises PlanError with the place for names and types that do not fit."""
    return _Lowering(scope).lower(node)


def condition(node: ex.Expression, scope: Scope) -> Expr:
    """A condition: its value must be a boolean."""
    found = lower(node, scope)
    if found.type.kind not in (Kind.BOOL, Kind.ANY):
        raise problem(f"`{render(node)}` is {found.type}, not a condition", node, "compare it with something")
    return found


class _Lowering(LowerNames):
    """The lowering of one expression."""

    def lower(self, node: ex.Expression) -> Expr:
        return getattr(self, f"_{type(node).__name__.lower()}", self._refused)(node)

    def _refused(self, node: ex.Expression) -> NoReturn:
        raise problem(f"`{render(node)}` cannot stand here", node, "an expression")

    # operators

    def _sign(self, node: ex.Sign) -> Expr:
        call = node.operand
        if isinstance(call, ex.Call) and call.of is None and self.scope.declaration(call.name) is None:
            raise problem(f"`-` before `{render(call)}`", node, f"0 - {render(call)}")
        value = self._number(node.operand)
        if value.type == DECIMAL:
            return Call(decimals.NEGATE, (value,), DECIMAL)
        return Call(OF_WHOLE["negate"] if value.type.integral else op.NEGATE, (value,), value.type)

    def _number(self, node: ex.Expression) -> Expr:
        value = self.lower(node)
        if value.type.kind is Kind.NULL:
            raise problem(f"`{render(node)}` is null, with which nothing is computed", node)
        if not value.type.numeric and not loose(value.type) and value.type.kind not in (Kind.TIMESTAMP, Kind.DURATION):
            raise problem(f"`{render(node)}` is {value.type}, not a number", node)
        return value

    def _arithmetic(self, node: ex.Arithmetic) -> Expr:
        if node.operator == "||":
            return Call(op.CONCAT, (self._text(node.left), self._text(node.right)), STRING)
        left, right = self._number(node.left), self._number(node.right)
        if node.operator in BITS:
            inner = node.left
            if isinstance(inner, ex.Arithmetic) and inner.operator in BITS and not isinstance(inner.at, Enclosed):
                raise problem(f"`{inner.operator}` and `{node.operator}` side by side", node, "put one in parentheses")
            for side, value in ((node.left, left), (node.right, right)):
                if value.type.kind in (Kind.FLOAT, Kind.DOUBLE, Kind.DECIMAL):
                    raise problem(f"`{render(side)}` is {value.type}, not a whole number", side, "cast(x, long)")
            return Call(BITS[node.operator], (left, right), _widest(left, right))
        kind = _widest(left, right)
        if kind.kind is Kind.DECIMAL:
            left, right = (
                v if v.type.kind is Kind.DECIMAL else Call(CASTS[Kind.DECIMAL], (v,), DECIMAL) for v in (left, right)
            )
            return Call(decimals.ARITHMETIC[node.operator], (left, right), DECIMAL)
        if node.operator == "/":
            return Call(op.DIVIDE_IEEE, (left, right), DOUBLE)
        signs = OF_WHOLE if left.type.integral and right.type.integral else ARITHMETIC
        found = Call(signs[node.operator], (left, right), kind)
        return Call(op.FIT_FLOAT, (found,), FLOAT) if kind == FLOAT else found

    def _text(self, node: ex.Expression) -> Expr:
        """A text to be put together with others; of a value that may be anything its text."""
        value = self.lower(node)
        if value.type.kind is Kind.ANY:
            return Call(CASTS[Kind.STRING], (value,), STRING)
        if value.type.kind is not Kind.STRING:
            raise problem(f"`{render(node)}` is {value.type}, not a text", node, f"cast({render(node)}, string)")
        return value

    def _comparison(self, node: ex.Comparison) -> Expr:
        left, right = self.lower(node.left), self.lower(node.right)
        self._comparable(left.type, right.type, node, node.operator[0] in "<>")
        return Call(COMPARE[node.operator], (as_doubles(left, right), as_doubles(right, left)), BOOL)

    def _comparable(self, left: DataType, right: DataType, node: ex.Expression, order: bool = False) -> None:
        for side in (left, right):
            if order:
                ordered(side, node, render(node))
            if side.kind is Kind.NULL and order and isinstance(node, ex.Comparison):
                raise problem(f"`{render(node)}` compares with null, which is neither more nor less", node, "is null")
        if loose(left) or loose(right) or left.kind is right.kind:
            return
        times = (Kind.TIMESTAMP, Kind.DURATION)
        numbers = (left.numeric or left.kind in times) and (right.numeric or right.kind in times)
        if not numbers:
            raise problem(f"`{render(node)}` compares {left} with {right}", node, "cast one of them")

    def _logical(self, node: ex.Logical) -> Expr:
        parts: list[Expr] = []
        for side in (node.left, node.right):
            value = condition(side, self.scope)
            same = All if node.operator == "and" else Any_
            parts += value.args if isinstance(value, same) else (value,)
        return All(tuple(parts)) if node.operator == "and" else Any_(tuple(parts))

    def _not(self, node: ex.Not) -> Expr:
        return Call(op.NOT, (condition(node.operand, self.scope),), BOOL)

    def _negated(self, value: Expr, negated: bool) -> Expr:
        return Call(op.NOT, (value,), BOOL) if negated else value

    def _in(self, node: ex.In) -> Expr:
        value, items = self.lower(node.value), self._all(node.items)
        alone = len(items) == 1  # the list may be of another type
        for item in items:
            kind = (item.type.element or ANY) if apart(value, item) else item.type
            if not (alone and item.type.kind is Kind.LIST):
                self._comparable(value.type, kind, node)
        return self._negated(among(value, items), node.negated)

    def _between(self, node: ex.Between) -> Expr:
        value, low, high = self._all((node.value, node.low, node.high))
        for side in (low, high):
            self._comparable(value.type, side.type, node, True)
        if value.type.kind is Kind.NULL:
            raise problem(f"`{render(node.value)}` is null, which lies between nothing", node)
        if any(side.type.kind is Kind.NULL for side in (low, high)):
            return Const(False, BOOL)
        return between(value, (low, high), (node.low_closed, node.high_closed), node.negated)

    def _like(self, node: ex.Like) -> Expr:
        parts = [node.value, node.pattern, *([node.escape] if node.escape else [])]
        values = self._all(parts)
        if values[0].type.numeric:
            values = (Call(CASTS[Kind.STRING], values[:1], STRING), *values[1:])
        for value, part in zip(values, parts, strict=True):
            if value.type.kind is not Kind.STRING and not loose(value.type):
                raise problem(f"`{render(part)}` is {value.type}, not a text", part)
        if node.regexp and isinstance(pattern := values[1], Const) and isinstance(pattern.value, str):
            try:
                regular(pattern.value)
            except ValueError as wrong:
                raise problem(
                    f"the regular expression `{render(node.pattern)}` cannot be used: {wrong}",
                    node.pattern,
                    hint="regular expressions are RE2's: without back references, and without looking ahead or behind",
                ) from None
        return self._negated(Call(REGEXP if node.regexp else op.LIKE, values, BOOL), node.negated)

    def _quantified(self, node: ex.Quantified) -> Expr:
        from rollup.lang.epl.lowering.queries import subquery

        left = self.lower(node.left)
        nothing = False
        if isinstance(node.items, tuple):
            items = self._all(node.items)
            nothing = any(isinstance(item, Const) and item.value is None for item in items)
            several = any(item.type.kind is Kind.LIST for item in items)
            values: Expr = Call(FLAT if several else LISTED, items, DataType(Kind.LIST, element=ANY))
        else:
            values, several = subquery(node.items, self.scope, "list"), False
            items = (values,)
        for item in items:
            kind = (item.type.element or ANY) if item.type.kind is Kind.LIST else item.type
            self._comparable(left.type, kind, node, node.operator[0] in "<>")
        return Call(quantifier(node.operator, node.every, several, nothing), (left, values), BOOL)

    def _case(self, node: ex.Case) -> Expr:
        branches: list[tuple[Expr, Expr]] = []
        operand = self.lower(node.operand) if node.operand is not None else None
        for when, then in node.branches:
            if operand is None:
                test = condition(when, self.scope)
            else:
                value = self.lower(when)
                self._comparable(operand.type, value.type, when)
                test = Call(op.SAME, (operand, value), BOOL)
            branches.append((test, self.lower(then)))
        otherwise = self.lower(node.otherwise) if node.otherwise is not None else Const(None, NULL)
        made = [isinstance(each, ex.New) for each in (*(then for _, then in node.branches), node.otherwise) if each]
        if any(made) and not all(made):
            raise problem(
                f"`{render(node)}` is a structure or something else", node, "new { … } in every branch, or none"
            )
        row = branches[0][1].type.row
        if any(made) and node.otherwise is None and row is not None:  # nothing fits: a structure of nulls
            otherwise = Call(op.ROW, tuple(Const(None, NULL) for _ in row.fields), row.data_type)
        kinds = [value.type for _, value in branches] + [otherwise.type]
        kind = self._common(kinds, node)
        taken = tuple((test, widened(value, kind)) for test, value in branches)
        return Case(taken, widened(otherwise, kind), kind)

    def _common(self, kinds: Sequence[DataType], node: ex.Expression) -> DataType:
        found = [kind for kind in kinds if kind.kind is not Kind.NULL]
        if not found:
            return NULL
        first = found[0]
        for kind in found[1:]:
            if first.numeric and kind.numeric:
                first = first.widest(kind)
            elif first.kind is not kind.kind:
                raise problem(f"`{render(node)}` is {first} or {kind}", node, "values of one type")
        return first

    def _array(self, node: ex.Array) -> Expr:
        items = self._all(node.items)
        kind = self._common([item.type for item in items], node)
        return Call(LISTED, tuple(widened(item, kind) for item in items), DataType(Kind.LIST, element=kind))

    # sub-queries

    def _subquery(self, node: ex.Subquery) -> Expr:
        from rollup.lang.epl.lowering.queries import subquery

        return subquery(node.query, self.scope, "value")

    def _exists(self, node: ex.Exists) -> Expr:
        from rollup.lang.epl.lowering.queries import subquery

        return subquery(node.query, self.scope, "exists")

    def _inquery(self, node: ex.InQuery) -> Expr:
        from rollup.lang.epl.lowering.queries import subquery

        value, values = self.lower(node.value), subquery(node.query, self.scope, "list")
        if values.type.element is not None:
            self._comparable(value.type, values.type.element, node)
        return self._negated(Call(AMONG, (value, values), BOOL), node.negated)

    # calls

    def _call(self, node: ex.Call) -> Expr:
        if node.of is not None:
            return self._method(node)
        if is_aggregate(node):
            return self._aggregate(node)
        name = node.name.lower()
        known: dict[str, Callable[[ex.Call], Expr]] = {
            "current_timestamp": lambda node: self._of_nothing(node, Now()),
            "istream": lambda node: self._of_nothing(node, self.scope.registry.ask(Arriving(), BOOL)),
            "coalesce": self._coalesce,
            "cast": self._cast,
            "prev": self._prev,
            "prior": self._prior,
            "prevtail": self._prev,
            "prevcount": self._prev,
            "prevwindow": self._prev,
            "min": self._extreme,
            "max": self._extreme,
            "typeof": self._type_name,
            "instanceof": self._instance,
            "event_identity_equals": self._same_event,
            "grouping": self._grouping,
            "grouping_id": self._grouping,
        }
        if name in known:
            return known[name](node)
        if name in HASHES:
            return Call(Operator(name, HASHES[name], strict=False), self._all(node.arguments), LONG)
        declared = self.scope.declaration(node.name)
        if declared is not None:
            return self._declared(node, declared.body)
        raise unknown("function", node.name, [*known, *HASHES, *self.scope.catalog.expressions, "sum", "count"], node)

    def _of_nothing(self, node: ex.Call, value: Expr) -> Expr:
        if node.arguments:
            raise problem(f"`{node.name}` takes nothing", node, f"{node.name.lower()}()")
        return value

    def _aggregate(self, node: ex.Call) -> Expr:
        slots = self.scope.slots
        if slots is None:
            raise problem(
                f"the aggregate `{render(node)}` is not allowed {self.scope.no_aggregates}", node, "having, select"
            )
        found = slots[render(node)]
        return (
            Call(OF_RANKS, (found,), found.type) if node.name.lower() == "sorted" and not self.scope.filling else found
        )

    def _declared(self, node: ex.Call, body: ex.Expression) -> Expr:
        parameters = body.parameters if isinstance(body, ex.Lambda) else ()
        if len(parameters) != len(node.arguments):
            message = f"`{node.name}` takes {len(parameters)} argument(s), not {len(node.arguments)}"
            raise problem(message, node)
        self.scope.registry.write_out(node)
        if not isinstance(body, ex.Lambda):
            reads_nothing(node, body, self.scope)
        whole = called(node, self.scope)
        if whole is not None and aggregates([whole], self.scope):
            return self.lower(whole)
        values = dict(zip(parameters, self._all(node.arguments), strict=True))
        inner = replace(self.scope, locals={**self.scope.locals, **values})
        return _Lowering(inner).lower(body.body if isinstance(body, ex.Lambda) else body)

    def _coalesce(self, node: ex.Call) -> Expr:
        if len(node.arguments) < 2:
            raise problem("coalesce takes two values or more", node, "coalesce(x, 0)")
        values = self._all(node.arguments)
        kind = self._common([value.type for value in values], node)
        return Coalesce(tuple(widened(value, kind) for value in values), kind)

    def _cast(self, node: ex.Call) -> Expr:
        if len(node.arguments) != 2:
            raise problem("cast takes a value and a type", node, "cast(x, int)")
        kind = self._kind(node.arguments[1])
        if kind.kind not in CASTS:
            raise problem(f"nothing is cast to {kind}", node.arguments[1], "cast(x, int)")
        value = self.lower(node.arguments[0])
        if value.type.kind in (Kind.LIST, Kind.ROW) and kind.kind is not Kind.STRING:
            raise problem(f"`{render(node.arguments[0])}` is {value.type}, which is not cast to {kind}", node)
        return Call(casting(value.type, kind), (value,), kind)

    def _extreme(self, node: ex.Call) -> Expr:
        values = self._all(node.arguments)
        found = op.LEAST if node.name.lower() == "min" else op.GREATEST
        kind = self._common([value.type for value in values], node)
        if not kind.numeric and not loose(kind):
            raise problem(f"`{render(node)}` compares values of type {kind}", node, "numbers; case when a < b then …")
        return reduce(lambda one, other: Call(found, (one, other), kind), (widened(value, kind) for value in values))

    def _prev(self, node: ex.Call) -> Expr:
        name, arguments = node.name.lower(), list(node.arguments)
        offset: Expr | None = None
        if name in ("prev", "prevtail") and len(arguments) == 2:
            offset = self.lower(arguments.pop(0) if not isinstance(arguments[1], ex.Constant) else arguments.pop(1))
        elif name == "prev":
            offset = Const(1, INT)
        if len(arguments) != 1 or not (offset is None or offset.type.integral):
            raise problem(f"`{node.name}` takes a whole number and a property", node, "prev(1, price)")
        if not isinstance(arguments[0], (ex.Reference, ex.Member, ex.Star, ex.StreamStar)):
            raise problem(f"`{render(arguments[0])}` is no property", node, "prev(1, price) + 1")
        value = self.lower(arguments[0])
        place = self._stream_of(value, node)
        if not self.scope.sources[place].ordered:
            message = f"`{node.name}` needs a window on the stream that keeps rows one after another"
            raise problem(message, node, "one of #length(10), #time(1 min), #keepall, #sort, batches")
        what: Any = {"prev": "row", "prevtail": "tail", "prevcount": "count", "prevwindow": "window"}[name]
        kind = {"count": LONG, "window": DataType(Kind.LIST, element=value.type)}.get(what, value.type)
        return self.scope.registry.ask(Previous(place, what, value, offset), kind)

    def _prior(self, node: ex.Call) -> Expr:
        number = node.arguments[0] if len(node.arguments) == 2 else None
        if not isinstance(number, ex.Constant) or number.kind not in ("int", "long"):
            raise problem("`prior` takes a constant number and a property", node, "prior(1, price)")
        if not isinstance(node.arguments[1], (ex.Reference, ex.Member)):
            what = f"`{render(node.arguments[1])}` is no property"
            raise problem(what, node.arguments[1], "prior(1, price) + 1")
        offset, value = int(number.value or 0), self.lower(node.arguments[1])
        place = self._stream_of(value, node)
        priors = self.scope.registry.priors
        priors[place] = max(offset, priors.get(place, 0))
        return self.scope.registry.ask(Earlier(place, offset, value), value.type)

    def _stream_of(self, value: Expr, node: ex.Call) -> int:
        places = inputs_read([value])
        if len(places) != 1:
            raise problem(f"`{render(node)}` needs a property of one stream", node)
        return places.pop()


def _widest(left: Expr, right: Expr) -> DataType:
    """The type of a result: of a 32-bit float and a whole number it is a double."""
    kinds = [side.type for side in (left, right) if side.type.numeric]
    if len(kinds) == 2 and FLOAT in kinds and kinds[0] != kinds[1]:
        return kinds[0].widest(kinds[1]).widest(DOUBLE)
    if len(kinds) == 2:
        return kinds[0].widest(kinds[1])
    return kinds[0] if kinds else LONG


def key(node: ex.Expression, scope: Scope) -> Expr:
    """A value by which rows are told apart: of a group, a partition, a window of one row a key."""
    found = lower(node, scope)
    keyable(found.type, node, render(node))
    return found


def criterion(node: ex.Expression, scope: Scope) -> Expr:
    """A value by which rows are put in order."""
    found = lower(node, scope)
    ordered(found.type, node, render(node))
    return found


def constant(node: ex.Expression, scope: Scope, what: str, kind: DataType | None = None) -> Any:
    """The value of an expression that is known when the statement is deployed: constants, variables, parameters; of `kind`
    where that is given.
    """
    from rollup.engine.compiling import compiled
    from rollup.engine.expressions import Ask, Field, RowOf, walk

    found = lower(node, scope)
    if any(isinstance(each, (Field, RowOf, Ask)) for each in walk(found)):
        raise problem(f"{what} must be known at once, and `{render(node)}` is not", node, "a number or a variable")
    try:
        return compiled(found if kind is None else widened(found, kind))((), (), scope.catalog.beginning())
    except TypeError:
        raise PlanError(f"{what} cannot be worked out", line=node.at.line, column=node.at.column) from None
