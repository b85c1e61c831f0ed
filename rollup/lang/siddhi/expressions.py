"""SiddhiQL's expressions: one method a rule of the grammar gives a tree whose nodes know their place in the text."""

from __future__ import annotations

from typing import Any

from lark import Token, Transformer, v_args
from lark.tree import Meta
from sqlglot import exp

from rollup.core.errors import PlanError
from rollup.plan.app import position
from rollup.plan.composed import filtered
from rollup.plan.types import Type

_COMPARE: dict[str, type[exp.Expr]] = {
    "==": exp.EQ,
    "=": exp.EQ,
    "!=": exp.NEQ,
    "<>": exp.NEQ,  # SQL writes it so
    ">": exp.GT,
    ">=": exp.GTE,
    "<": exp.LT,
    "<=": exp.LTE,
}
_ARITHMETIC: dict[str, type[exp.Expr]] = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul, "/": exp.Div, "%": exp.Mod}


def _tagged(node: exp.Expr, meta: Meta) -> exp.Expr:
    if not getattr(meta, "empty", True):
        node.meta.setdefault("line", meta.line)
        node.meta.setdefault("column", meta.column)
    return node


def _literal(text: str, kind: Type, quoted: bool = False) -> exp.Literal:
    node = exp.Literal(this=text, is_string=quoted)
    node.meta["type"] = kind
    return node


class Expressions(Transformer[Token, Any]):
    """One method a grammar rule; each gets the rule's position and its children already read."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def _words(self, meta: Meta) -> str:
        return " ".join(self._text[meta.start_pos : meta.end_pos].split())

    # names, constants, expressions

    def name(self, meta: Meta, parts: list[Token]) -> Token:
        token = parts[0]
        return token.update(value=token.value.strip("`"))

    def string(self, meta: Meta, parts: list[Token]) -> exp.Expr:
        return _tagged(_literal(parts[0][1:-1], Type.STRING, quoted=True), meta)

    def integer(self, meta: Meta, parts: list[Token]) -> exp.Expr:
        kind = Type.INT if int(parts[0]) < 2**31 else Type.LONG
        return _tagged(_literal(str(parts[0]), kind), meta)

    def long(self, meta: Meta, parts: list[Token]) -> exp.Expr:
        return _tagged(_literal(parts[0][:-1], Type.LONG), meta)

    def float_(self, meta: Meta, parts: list[Token]) -> exp.Expr:
        return _tagged(_literal(parts[0][:-1], Type.FLOAT), meta)

    def double(self, meta: Meta, parts: list[Token]) -> exp.Expr:
        return _tagged(_literal(parts[0].rstrip("dD"), Type.DOUBLE), meta)

    def true(self, meta: Meta, parts: list[Token]) -> exp.Expr:
        return _tagged(exp.Boolean(this=True), meta)

    def false(self, meta: Meta, parts: list[Token]) -> exp.Expr:
        return _tagged(exp.Boolean(this=False), meta)

    def null(self, meta: Meta, parts: list[Token]) -> exp.Expr:
        return _tagged(exp.Null(), meta)

    def reference(self, meta: Meta, parts: list[Token]) -> exp.Expr:
        table, column = (parts[0], parts[1]) if len(parts) == 2 else (None, parts[0])
        return _tagged(
            exp.column(exp.to_identifier(str(column), quoted=True), table=str(table) if table else None), meta
        )

    def function(self, meta: Meta, parts: list[Any]) -> exp.Expr:
        names = [str(part) for part in parts if isinstance(part, Token) and part.type != "DISTINCT"]
        arguments = [part for part in parts if isinstance(part, exp.Expr) and not isinstance(part, exp.Where)]
        call = exp.Anonymous(this=":".join(names), expressions=arguments)
        _tagged(call, meta)
        if any(isinstance(part, Token) and part.type == "DISTINCT" for part in parts):
            if call.name.lower() != "count" or len(arguments) != 1:
                raise PlanError("distinct stands in count(distinct x)", hint="distinctCount(x)").at(*position(call))
            call.set("this", "distinctCount")
        if isinstance(parts[-1], exp.Where):
            try:
                return filtered(call, parts[-1].this)
            except PlanError as problem:
                raise problem.at(*position(call)) from None
        return call

    def filtered(self, meta: Meta, parts: list[exp.Expr]) -> exp.Expr:
        return exp.Where(this=parts[0])

    def compare(self, meta: Meta, parts: list[Any]) -> exp.Expr:
        return _tagged(
            _COMPARE[str(parts[1])](this=exp.paren(parts[0], copy=False), expression=exp.paren(parts[2], copy=False)),
            meta,
        )

    def is_null(self, meta: Meta, parts: list[Any]) -> exp.Expr:
        return self._unless(meta, parts, exp.Is(this=exp.paren(parts[0], copy=False), expression=exp.Null()))

    def among(self, meta: Meta, parts: list[Any]) -> exp.Expr:
        one, *listed = (part for part in parts if isinstance(part, exp.Expr))
        return self._unless(meta, parts, exp.or_(*(self.compare(meta, [one.copy(), "=", each]) for each in listed)))

    def between(self, meta: Meta, parts: list[Any]) -> exp.Expr:
        one, low, high = (part for part in parts if isinstance(part, exp.Expr))
        both = exp.and_(self.compare(meta, [one, ">=", low]), self.compare(meta, [one.copy(), "<=", high]))
        return self._unless(meta, parts, both)

    def like(self, meta: Meta, parts: list[Any]) -> exp.Expr:
        pattern = self.string(meta, [parts[-1]])
        if "\\" in pattern.name:
            problem = PlanError("a pattern of like has no backslash", hint="% stands for any text, _ for any letter")
            raise problem.at(parts[-1].line, parts[-1].column)
        found = exp.Like(this=exp.paren(parts[0], copy=False), expression=pattern)
        return self._unless(meta, parts, _tagged(found, meta))

    def _unless(self, meta: Meta, parts: list[Any], found: exp.Expr) -> exp.Expr:
        """What was found, or its opposite where `not` stands among the parts."""
        negated = any(isinstance(part, Token) and part.type == "NOT" for part in parts)
        return _tagged(exp.Not(this=exp.paren(found, copy=False)) if negated else found, meta)

    def when(self, meta: Meta, parts: list[exp.Expr]) -> tuple[exp.Expr, exp.Expr]:
        return parts[0], parts[1]

    def otherwise(self, meta: Meta, parts: list[exp.Expr]) -> list[exp.Expr]:
        return parts

    def case(self, meta: Meta, parts: list[Any]) -> exp.Expr:
        of = parts[0] if isinstance(parts[0], exp.Expr) else None
        made = parts[-1][0] if isinstance(parts[-1], list) else exp.Null()
        for condition, value in reversed([part for part in parts if isinstance(part, tuple)]):
            if of is not None:
                condition = self.compare(meta, [of.copy(), "=", condition])
            made = _tagged(exp.Anonymous(this="ifThenElse", expressions=[condition, value, made]), meta)
        return made

    def arithmetic(self, meta: Meta, parts: list[Any]) -> exp.Expr:
        return _tagged(
            _ARITHMETIC[str(parts[1])](
                this=exp.paren(parts[0], copy=False), expression=exp.paren(parts[2], copy=False)
            ),
            meta,
        )

    def negative(self, meta: Meta, parts: list[Any]) -> exp.Expr:
        return _tagged(exp.Neg(this=exp.paren(parts[-1], copy=False)), meta)

    def not_(self, meta: Meta, parts: list[Any]) -> exp.Expr:
        return _tagged(exp.Not(this=exp.paren(parts[0], copy=False)), meta)

    def and_(self, meta: Meta, parts: list[Any]) -> exp.Expr:
        return _tagged(exp.and_(*parts, copy=False), meta)

    def or_(self, meta: Meta, parts: list[Any]) -> exp.Expr:
        return _tagged(exp.or_(*parts, copy=False), meta)


v_args(meta=True)(Expressions)  # in place: as a decorator it would hide the type of the class
