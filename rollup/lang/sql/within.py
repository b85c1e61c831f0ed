"""The SQL spelling of retrieval: `FROM TradeAgg WITHIN '2018-01-** **:**:**' PER 'days'` inside any query.

Three spellings mean the same node, so that strict SQL parsers of BI tools can ask too:

    TradeAgg WITHIN bound[, bound] PER unit [FILL (word)] [[AS] alias]
    TradeAgg(bound[, bound], unit[, fill => 'word']) [[AS] alias]
    "TradeAgg within bound[, bound] per unit [fill word]" [[AS] alias]

`rewrite` exchanges only the characters of those sources, by token position, so everything else of the text stays as it
was written, byte for byte. A statement without any is never parsed, so SQL that sqlglot cannot read passes, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from typing import ClassVar, cast

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, ParseError
from sqlglot.expressions.core import Expression
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

from rollup.core.errors import PlanError, RollupError, SyntaxProblem
from rollup.lang.sql.pushdown import columns_used, conditions_on
from rollup.lang.sql.source import CLAUSE_HINT, FILLS, Names, Within, WithinParser, position, spelling_at, word_at

__all__ = ["FILLS", "Within", "Wrapped", "columns_used", "conditions_on", "mentions", "parse", "rewrite"]

_WORDS = bytes(byte if byte > 127 or chr(byte).isalnum() or byte == ord("_") else ord(" ") for byte in range(256))
"""Each byte of a word as it is, and a gap for all else."""

_QUERY_WORDS = frozenset({"SELECT", "WITH", "(", "VALUES", "FROM", "INSERT", "UPDATE", "DELETE", "MERGE"})
_EXPLAIN = frozenset({"EXPLAIN", "DESCRIBE", "DESC", "SUMMARIZE"})
_EXPLAIN_WORDS = frozenset({"ANALYZE", "ANALYSE", "VERBOSE", "EXTENDED", "CODEGEN", "COST", "FORMATTED", "QUERY"})


class Wrapped(Expression):
    """A query inside EXPLAIN, PREPARE, DECLARE … CURSOR or COPY: `this`, and the text before (`prefix`) and after."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "prefix": True, "suffix": False}


@lru_cache
def _machinery(read: str) -> tuple[Dialect, type[Tokenizer], type[WithinParser]]:
    """Dialect, tokenizer and parser for a base dialect; the tokenizer never swallows a command's rest as one string."""
    dialect = Dialect.get_or_raise(read)
    tokenizer = cast(type[Tokenizer], type("_Tokenizer", (dialect.tokenizer_class,), {"COMMANDS": set[TokenType]()}))
    parser = cast(type[WithinParser], type("_Parser", (WithinParser, dialect.parser_class), {}))
    return dialect, tokenizer, parser


def _statements(sql: str, read: str) -> Iterator[list[Token]]:
    """The tokens of each statement between semicolons; raises SyntaxProblem for text that is no SQL at all."""
    dialect, tokenizer, _ = _machinery(read)
    try:
        tokens = tokenizer(dialect=dialect).tokenize(sql)
    except Exception as error:  # an open quote or comment; whatever the tokenizer raises means the same
        raise SyntaxProblem("the query has an open quote or comment") from error
    statement: list[Token] = []
    for token in tokens:
        if token.token_type != TokenType.SEMICOLON:
            statement.append(token)
        elif statement:
            yield statement
            statement = []
    if statement:
        yield statement


def _closing(tokens: Sequence[Token], opening: int) -> int:
    depth = 0
    for index in range(opening, len(tokens)):
        depth += (tokens[index].token_type == TokenType.L_PAREN) - (tokens[index].token_type == TokenType.R_PAREN)
        if depth == 0:
            return index
    return len(tokens)


def _after_word(tokens: Sequence[Token], word: str) -> int:
    return next((i + 1 for i in range(len(tokens)) if word_at(tokens, i) == word), len(tokens))


def _query_slice(tokens: Sequence[Token], start: int = 0) -> tuple[int, int] | None:
    """Which tokens of a statement are its query; None for statements that are the server's alone."""
    word = word_at(tokens, start)
    if word in _QUERY_WORDS:
        return start, len(tokens)
    if word == "COPY" and word_at(tokens, start + 1) == "(":
        return start + 2, _closing(tokens, start + 1)
    if word == "PREPARE":
        return _query_slice(tokens, _after_word(tokens, "AS"))
    if word == "DECLARE":
        part = _query_slice(tokens, _after_word(tokens, "FOR"))
        read_only = [word_at(tokens, len(tokens) - i) for i in (3, 2, 1)] == ["FOR", "READ", "ONLY"]
        return (part[0], part[1] - 3) if part and read_only else part
    return _query_slice(tokens, _explained(tokens, start + 1)) if word in _EXPLAIN else None


def _explained(tokens: Sequence[Token], index: int) -> int:
    while True:
        if word_at(tokens, index) in _EXPLAIN_WORDS:
            index += 1
        elif word_at(tokens, index) == "(" and word_at(tokens, index + 1) not in _QUERY_WORDS:
            index = _closing(tokens, index) + 1
        else:
            return index


def _tree(tokens: list[Token], sql: str, names: Names, read: str) -> exp.Expr:
    """The tree of one query; anything sqlglot cannot read is refused with the place where it stopped."""
    dialect, _, parser_class = _machinery(read)
    parser = parser_class(dialect=dialect, error_level=ErrorLevel.IMMEDIATE)
    parser.names = names
    try:
        trees = parser.parse(tokens, sql)
    except RollupError:
        raise
    except Exception as error:  # broken SQL makes the parser raise more than ParseError, e.g. when nested too deeply
        stopped = error.errors[0]["description"] if isinstance(error, ParseError) else ""
        line, column = position(sql, min(parser.here(), tokens[-1].end + 1))
        message = f"the query cannot be read from here on: {stopped or 'too deeply nested or broken'}"
        raise SyntaxProblem(message, line=line, column=column, hint=CLAUSE_HINT) from error
    if len(trees) != 1 or trees[0] is None or isinstance(trees[0], exp.Command):
        line, column = position(sql, tokens[0].start)
        raise SyntaxProblem("this statement cannot hold a WITHIN source", line=line, column=column, hint=CLAUSE_HINT)
    return _scoped(trees[0], names)


# A CTE of the same name hides the aggregation, as it would hide a table.


def _visible_ctes(node: exp.Expr | None) -> Iterator[exp.Expr]:
    while node is not None:
        parent = node.parent
        if isinstance(node, exp.CTE) and isinstance(parent, exp.With):
            yield from parent.expressions if parent.args.get("recursive") else parent.expressions[: node.index]
            node = parent.parent.parent if parent.parent else None
            continue
        with_ = node.args.get("with_")
        yield from with_.expressions if isinstance(with_, exp.With) else ()
        node = parent


def _hidden(within: Within) -> bool:
    name = str(within.meta["name"]).casefold()
    return not within.this.db and any(cte.alias.casefold() == name for cte in _visible_ctes(within.parent))


def _foreign(within: Within) -> exp.Table:
    """What a hidden source means instead: a function or table of that name, which is the server's to judge."""
    this: exp.Expr = exp.to_identifier(within.meta["name"], quoted=True)
    if within.meta["spelling"] == "call":
        given = [within.args["start"], within.args.get("end"), within.args["per"]]
        this = exp.Anonymous(this=within.meta["name"], expressions=[arg for arg in given if arg is not None])
    return exp.Table(this=this, alias=within.args.get("alias"), joins=within.args.get("joins"))


def _scoped(tree: exp.Expr, names: Names) -> exp.Expr:
    """The tree with every source that a CTE hides turned into what it is; a WITHIN clause on a CTE is refused."""
    for within in [node for node in tree.find_all(Within) if _hidden(node)]:
        if within.meta["spelling"] == "clause":
            line, column = within.position
            message = f"'{within.meta['name']}' is a WITH query here, and WITHIN stands after an aggregation only"
            raise PlanError(message, line=line, column=column, hint=f"rename the WITH query; {names.hint()}")
        other = _foreign(within)
        if within is tree:
            return other
        within.replace(other)
    return tree


def _concerns(tokens: Sequence[Token], names: Names) -> bool:
    return any(spelling_at(tokens, index, names) for index in range(len(tokens)))


def _concerns_known(tokens: Sequence[Token], names: Names) -> bool:
    """As `_concerns`, without WITHIN after a name that is not ours, and without views, which answer by themselves."""
    spellings = ((token, spelling_at(tokens, index, names)) for index, token in enumerate(tokens))
    ours = ((token, spelling) for token, spelling in spellings if spelling not in (None, "bare"))
    return any(spelling != "clause" or names.of(token) for token, spelling in ours)


def mentions(sql: str, known: Collection[str]) -> bool:
    """Whether a known name occurs anywhere in the text, in any case; cheap, and never false for a query of ours.

    >>> mentions("select * from TRADEAGG('2018-**-** **:**:**', 'days')", ["TradeAgg"]), mentions("from Größen", ["GRÖSSEN"])
    (True, True)
    """
    folded = _lower(sql)
    others = [name.casefold() for name in known if not name.isascii()]
    if any(name.lower().encode() in folded for name in known if name.isascii()):
        return True
    return bool(others) and any(map(sql.casefold().__contains__, others))


def has_word(sql: str, word: str) -> bool:
    """Whether a text has a word, as PostgreSQL folds names that are in no quotes: letters of ASCII in any case.

    >>> has_word("select * from LAST", "last"), has_word("select lasting", "last"), has_word("select last_one", "last")
    (True, False, False)
    """
    return b" " + word.lower().encode() + b" " in b" " + _lower(sql).translate(_WORDS) + b" "


def _lower(sql: str) -> bytes:
    """A text whose letters of ASCII are small. Folding all letters takes a second for some texts of 4 MB."""
    return sql.encode("utf-8", "surrogatepass").lower()


def parse(sql: str, known: Collection[str], read: str = "postgres") -> exp.Expr:
    """The tree of one statement, with a `Within` wherever an aggregation is asked for a range.

    A query inside EXPLAIN, PREPARE, DECLARE or COPY comes as `Wrapped`; a statement without a query as `exp.Command`.
    Raises RollupError with line and column for what cannot be read and for an unknown aggregation before WITHIN.

    >>> parse("select * from TradeAgg within '2018-**-** **:**:**' per 'days'", ["TradeAgg"]).find(Within).aggregation
    'TradeAgg'
    """
    statements = list(_statements(sql, read))
    if len(statements) != 1:
        raise SyntaxProblem(f"expected one statement, found {len(statements)}")
    tokens, names = statements[0], Names(known)
    begin, end = tokens[0].start, tokens[-1].end + 1
    part = _query_slice(tokens)
    if part is None or part[0] >= part[1]:
        first = tokens[0]
        return exp.Command(this=first.text.upper(), expression=sql[first.end + 1 : end].strip())
    query = tokens[part[0] : part[1]]
    tree = _tree(query, sql, names, read)
    if len(query) == len(tokens):
        return tree
    return Wrapped(this=tree, prefix=sql[begin : query[0].start], suffix=sql[query[-1].end + 1 : end])


def rewrite(
    sql: str,
    known: Collection[str],
    resolve: Callable[[Within], exp.Expr],
    read: str = "postgres",
    write: str = "postgres",
    bare: Collection[str] = (),
    wanted: Callable[[Within], bool] = lambda within: True,
) -> str:
    """The text with each of our sources replaced by what `resolve` returns (a query, Subquery or Table).

    Names of `bare` are sources also where no range follows, and those that are not `wanted` stay as they are. Aliases stay as written; a source without one gets its own
    name as alias, so qualified columns go on working; a schema before that name is left out.
    `resolve` sees the node in its tree (see `columns_used`, `conditions_on`); its RollupErrors get the source's
    position. Positional parameters (`?`, `%s`) keep their numbers only if it repeats each of them once and in order.
    Returns the same object when nothing is ours. Raises RollupError.
    """
    if "within" not in sql.casefold() and not mentions(sql, [*known, *bare]):
        return sql
    names = Names(known, bare)
    try:
        statements = list(_statements(sql, read))
    except SyntaxProblem:
        return sql  # not even tokens: the server says what is wrong with it
    found, cuts = list[Within](), set[tuple[int, int]]()
    for tree in (_read(tokens, sql, names, read) for tokens in statements):
        if tree is not None:
            ours = [within for within in _sources(tree) if wanted(within)]
            found += ours
            cuts |= _schemas(tree, ours)
    edits = [
        (within.span, _spelled(sql, within, resolve, write))
        for within in sorted(found, key=lambda node: node.span, reverse=True)
    ]
    inside = [span for span, _ in edits]
    edits += [(cut, "") for cut in cuts if not any(start <= cut[0] < end for start, end in inside)]
    for (start, end), text in sorted(edits, reverse=True):
        sql = sql[:start] + text + sql[end:]
    return sql


def _read(tokens: list[Token], sql: str, names: Names, read: str) -> exp.Expr | None:
    """The tree of one statement that has a source of ours; None for all else, which is the server's to judge."""
    part = _query_slice(tokens) if _concerns(tokens, names) else None
    if part is None or not _concerns(tokens[slice(*part)], names):
        return None
    query = tokens[slice(*part)]
    try:
        return _tree(query, sql, names, read)
    except SyntaxProblem:
        if _concerns_known(query, names):
            raise
        return None


def _sources(tree: exp.Expr) -> list[Within]:
    """The outermost sources of one statement; those inside their bounds are resolved with them."""
    nodes = (node for node in tree.find_all(Within) if _bound_of(node) is None and not _written_to(node))
    return list({node.span: node for node in nodes}.values())


def _written_to(node: Within) -> bool:
    return node.arg_key == "this" and isinstance(node.parent, (exp.Delete, exp.Update, exp.Merge))


def _schemas(tree: exp.Expr, sources: Collection[Within]) -> set[tuple[int, int]]:
    """Where columns name the schema of a source that has no alias: `"public"."V"."c"`; the tree loses them.

    What takes the source's place is in no schema, and its alias is the bare name.
    """
    inside = [inner for source in sources for inner in source.find_all(Within)]
    ours = {node.source_name.casefold() for node in inside if not node.alias}
    found = set[tuple[int, int]]()
    for column in tree.find_all(exp.Column):
        if column.args.get("db") and column.table.casefold() in ours:
            first = column.args.get("catalog") or column.args["db"]
            found.add((first.meta["start"], column.args["table"].meta["start"]))
            column.set("db", None)
            column.set("catalog", None)
    return found


def _bound_of(node: Within) -> Within | None:
    """The source in whose bounds this one stands, rather than being joined to it."""
    child: exp.Expr = node
    while child.parent is not None:
        if isinstance(child.parent, Within) and child.arg_key != "joins":
            return child.parent
        child = child.parent
    return None


def _resolved(within: Within, resolve: Callable[[Within], exp.Expr]) -> exp.Expr:
    for inner in reversed([node for key in ("start", "end", "per") for node in _inside(within, key)]):
        inner.replace(_in_tree(inner, _resolved(inner, resolve)))
    try:
        result = resolve(within).copy()
    except RollupError as error:
        raise error.at(*within.position) from None
    result = result.subquery(copy=False) if isinstance(result, (exp.Select, exp.SetOperation)) else result
    result.set("alias", None)
    return result


def _in_tree(inner: Within, source: exp.Expr) -> exp.Expr:
    """The source with what the text said around the one it replaces: LATERAL, alias, joins."""
    name = exp.to_identifier(inner.source_name, quoted=inner.meta["label"] != inner.meta["name"])
    placed = exp.Lateral(this=source) if inner.args.get("lateral") else source
    placed.set("alias", inner.args.get("alias") or exp.TableAlias(this=name))
    source.set("joins", inner.args.get("joins"))
    return placed


def _inside(within: Within, key: str) -> list[Within]:
    part = within.args.get(key)
    nodes = list(part.find_all(Within)) if isinstance(part, exp.Expr) else []
    return [node for node in nodes if _bound_of(node) is within]


def _spelled(sql: str, within: Within, resolve: Callable[[Within], exp.Expr], write: str) -> str:
    """What stands in a source's place."""
    start, end = within.span
    result = _resolved(within, resolve)
    plain = isinstance(result, exp.Table) and not isinstance(result.this, exp.Func)
    for parameter in [node for node in result.walk() if "text" in node.meta]:
        parameter.replace(exp.Var(this=parameter.meta["text"]))  # spelled as in the rest of the text
    text = ("LATERAL " if within.args.get("lateral") and not plain else "") + result.sql(dialect=write, comments=False)
    if not within.alias:
        text += f" AS {within.meta['label']}"
    before = " " if start and (sql[start - 1].isalnum() or sql[start - 1] in '_"') else ""
    after = " " if end < len(sql) and not (sql[end].isspace() or sql[end] in ",;)") else ""
    return before + text + after
