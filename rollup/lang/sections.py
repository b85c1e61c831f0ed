"""The text of an app taken apart: what the rollups are made of, SiddhiQL's other queries, and blocks of other languages.

Every part keeps its place: what belongs to another part is blanked, so line and column of an error are those of the app.

    define stream S (k string, v double, ts long);
    define aggregation A from S select … aggregate by ts every sec ... year;   -- the rollups'
    from S#window.length(5) select k, avg(v) as mean insert into Means;        -- a statement
    @lang('epl') { insert into Rise select … from pattern [every a=S -> b=S]; }  -- a block
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from rollup.core.errors import PlanError, RollupError, SyntaxProblem
from rollup.lang.languages import LANGUAGES, SIDDHIQL, in_blocks
from rollup.plan.app import Annotation

_TOKEN = re.compile(
    r"""(?P<feed>\f)
      |(?P<skip>[^\S\f]+|--[^\n]*|/\*.*?(?:\*/|\Z))
      |(?P<string>"[^"]*"|'[^']*')
      |(?P<word>`[^`]*`|[A-Za-z_]\w*)
      |(?P<sign>->|.)""",
    re.DOTALL | re.VERBOSE,
)
_AGGREGATES = frozenset(
    ["sum", "avg", "count", "distinctcount", "stddev", "min", "max", "minforever", "maxforever", "unionset"]
)
_OF_STATEMENTS = frozenset(
    ["every", "not", "join", "group", "having", "order", "limit", "offset", "output", "delete", "update", "partition"]
)

_CHANGING = frozenset(["into", "update", "delete"])


@dataclass(frozen=True)
class Section:
    """A part in one language, at its place in the app; `into` is where its results go if its text does not say it.

    A text from a file of its own is placed in that file; a form feed before its block ends what stands before.
    """

    language: str
    text: str
    line: int = 1
    column: int = 1
    into: str | None = None
    file: str | None = None

    @property
    def placed(self) -> str:
        """The text with blanks before it, so that line and column in it are those of its file."""
        return "\n" * (self.line - 1) + " " * (self.column - 1) + self.text

    def located(self, problem: RollupError) -> RollupError:
        """An error of this text, with the file that it is in."""
        if self.file is not None and not problem.message.startswith(self.file):
            problem.message = f"{self.file}: {problem.message}"
        return problem.at(self.line, self.column)


def block_of_file(name: str, into: str, language: str, text: str) -> str:
    """The block that a file's text is behind an app's text, whatever that ends with.

    Raises PlanError for a name that cannot be written as a text, and for a brace that has no other.

    >>> block_of_file("rise.epl", "rise", "epl", "select k from S")
    "\\n\\x0c@lang('epl', file='rise.epl', into='rise') {select k from S\\n}"
    """
    if re.search(r"['\"\f\n]", name):
        raise PlanError(f"the name {name!r} of a file of statements has a quote or a line's end", hint="rename it")
    end = _closing(text + "\n}", 0, language)
    if end is None:
        raise SyntaxProblem(f"{name}: a `{{`, a text or a comment is not closed", line=1, column=1)
    if end < len(text):
        line, column = _position(text, end)
        raise SyntaxProblem(f"{name}: `}}` closes nothing", line=line, column=column, hint="leave it out")
    return f"\n\f@lang('{language}', file='{name}', into='{into}') {{{text}\n}}"


@dataclass(frozen=True)
class Sections:
    """The parts of an app: the text of its rollups, and those of statements."""

    rollups: str
    statements: tuple[Section, ...] = ()
    sinks: Mapping[str, tuple[Annotation, ...]] = field(default_factory=dict[str, tuple[Annotation, ...]])
    """By stream, its `@sink`s, which only an app with statements may have."""


class _Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """The word in lower case, '' for anything else."""
        return self.text.lower() if self.kind == "word" else ""


@dataclass(frozen=True)
class _Piece:
    """A statement of the app with what stands before it, up to its semicolon."""

    tokens: tuple[_Token, ...]
    body: int  # the first token behind the annotations
    end: int
    block: Section | None = None

    @property
    def start(self) -> int:
        return self.tokens[0].start

    @property
    def words(self) -> Sequence[_Token]:
        return self.tokens[self.body :]


def sections(text: str, tables: Set[str] = frozenset()) -> Sections:
    """The parts of an app's text; `tables` are those of its configuration. Raises SyntaxProblem for a block that is not closed, PlanError for an unknown language.

    >>> found = sections("define stream S (v int); from S#window.length(2) select v insert into T;")
    >>> found.rollups.rstrip(), [part.language for part in found.statements]
    ('define stream S (v int);', ['siddhiql'])
    """
    pieces = list(_Cutter(text).pieces())
    _check_answers(text, pieces)
    _check_tables(text, pieces, tables)
    blocks = [piece.block for piece in pieces if piece.block is not None]
    ours = _statements([piece for piece in pieces if piece.block is None], blocks, tables)
    _check_used(text, ours)
    if not blocks and not ours:
        return Sections(text)
    foreign = [piece for piece in pieces if piece.block is not None]
    found = list(blocks)
    if ours:
        defining = [piece for piece in pieces if piece.block is None and _defines_stream(piece)]
        kept = {id(piece) for piece in (*ours, *defining)}
        found.insert(0, Section(SIDDHIQL, _without(text, [p for p in pieces if id(p) not in kept], False)))
    rollups = _without(text, [*foreign, *ours], True)
    sinks = dict[str, tuple[Annotation, ...]]()
    for piece in pieces:
        for start, end, annotation in _annotations(text, piece):
            stream = piece.words[2].text.strip("`") if _defines_stream(piece) and len(piece.words) > 2 else ""
            if annotation.name == "sink" and stream:
                sinks[stream] = (*sinks.get(stream, ()), annotation)
            elif annotation.name != "app:playback" or annotation.values:
                continue
            rollups = _blanked(rollups, start, end)
    return Sections(rollups, tuple(found), sinks)


def _check_answers(text: str, pieces: Sequence[_Piece]) -> None:
    """Raise PlanError for a question to an aggregation whose answers should go into a table or shared window."""
    defined = [piece.words for piece in pieces if _is(piece, "define") and len(piece.words) > 2]
    stores = {words[2].text.strip("`") for words in defined if words[1].word in ("table", "window")}
    for piece in pieces:
        filled = sorted(_targets(piece.words) & stores) if _is(piece, "from") and _asks_aggregation(piece) else []
        if filled:
            line, column = _position(text, piece.words[0].start)
            message = f"what an aggregation answers cannot fill {filled[0]}"
            raise PlanError(message, line=line, column=column, hint="insert into a stream, with a sink to keep it")


def _check_tables(text: str, pieces: Sequence[_Piece], tables: Set[str]) -> None:
    """Raise PlanError where the app defines or changes a table of the configuration, or only an aggregation reads it."""
    for piece in pieces if tables else ():
        words = piece.words
        named = {words[2].text.strip("`")} if _is(piece, "define") and len(words) > 2 else set[str]()
        aggregated = len(words) > 1 and words[1].word == "aggregation"
        changed = {after.text.strip("`") for token, after in itertools.pairwise(words) if token.word in _CHANGING}
        read = {after.text.strip("`") for token, after in itertools.pairwise(words) if token.word == "from"}
        for name in sorted(tables & (named | changed | (read if aggregated else set()))):
            line, column = _position(text, words[0].start)
            if name in named:
                message, cure = "is defined here too", "leave the definition out, or give one of them another name"
            elif name in changed:
                message, cure = "is only read", "`define table` with another name for what statements change"
            else:
                message = "has no time by which it could be aggregated"
                cure = f"from S join {name} on … select … insert into T; and the aggregation reads T"
            raise PlanError(
                f"{name} is a table of the configuration, [tables.{name}], and {message}",
                line=line,
                column=column,
                hint=cure,
            )


def _statements(pieces: Sequence[_Piece], blocks: Sequence[Section], tables: Set[str]) -> list[_Piece]:
    """SiddhiQL's statements: what only the engine can do, and the plain queries that read what those give."""
    found = [piece for piece in pieces if _needs_engine(piece)]
    stores = {piece.words[2].text.strip("`") for piece in found if _is(piece, "define") and len(piece.words) > 2}
    found += [piece for piece in pieces if piece not in found and _fills(piece, stores | tables)]
    given = {target for piece in found for target in _targets(piece.words)}
    given |= {target for block in blocks for target in _targets(tuple(_tokens(block.text)))}
    given |= {block.into for block in blocks if block.into}
    plain = [piece for piece in pieces if piece not in found and _is(piece, "from") and not _asks_aggregation(piece)]
    while more := [piece for piece in plain if piece.words[1].text.strip("`") in given]:
        found += more
        plain = [piece for piece in plain if piece not in more]
        given |= {target for piece in more for target in _targets(piece.words)}
    return found


def _check_used(text: str, found: Sequence[_Piece]) -> None:
    """Raise PlanError for tables, windows and triggers without a query: nothing would come of them."""
    if found and all(_is(piece, "define") for piece in found):
        line, column = _position(text, found[0].words[0].start)
        what = " ".join(word.text for word in found[0].words[1:3])
        cure = "leave it out, or add a query: from S select … insert into …"
        raise PlanError(f"no query uses {what}", line=line, column=column, hint=cure)


def _fills(piece: _Piece, stores: Set[str]) -> bool:
    """Whether a plain query reads, asks or fills a table or shared window."""
    asked = (after for token, after in itertools.pairwise(piece.words) if token.word in ("from", "in"))
    named = {*(word.text.strip("`") for word in asked), *_targets(piece.words)}
    return _is(piece, "from") and not _asks_aggregation(piece) and not named.isdisjoint(stores)


def _needs_engine(piece: _Piece) -> bool:
    words = piece.words
    if _is(piece, "partition"):
        return True
    if _is(piece, "define"):
        return len(words) > 1 and words[1].word in ("table", "window", "trigger")
    if not _is(piece, "from") or _asks_aggregation(piece) or len(words) < 2:
        return False
    depth, selecting = 0, False
    for place, token in enumerate(words[1:], start=1):
        after = words[place + 1] if place + 1 < len(words) else None
        depth += (token.text in "([") - (token.text in ")]") if token.kind == "sign" else 0
        if token.kind == "sign" and (token.text in ("->", "#") or (token.text == "," and not _selecting(words, place))):
            return depth == 0
        if token.word in _OF_STATEMENTS and depth == 0:
            return True
        selecting |= token.word == "select" and depth == 0
        if selecting and token.word in _AGGREGATES and after is not None and after.text == "(":
            return True
        if token.word in ("all", "expired") and after is not None and after.word == "events":
            return True
    return False


def _selecting(words: Sequence[_Token], place: int) -> bool:
    """Whether a comma stands in the select list, or in brackets; else it separates the steps of a sequence."""
    depth = 0
    for token in words[:place]:
        depth += (token.text in "([") - (token.text in ")]") if token.kind == "sign" else 0
        if token.word == "select" and depth == 0:
            return True
    return depth > 0


def _asks_aggregation(piece: _Piece) -> bool:
    """Whether a query joins an aggregation: `within … per …`."""
    words = [token.word for token in piece.words]
    return "per" in words and "within" in words and "->" not in [token.text for token in piece.words]


def _defines_stream(piece: _Piece) -> bool:
    return _is(piece, "define") and len(piece.words) > 1 and piece.words[1].word == "stream"


def _is(piece: _Piece, word: str) -> bool:
    return bool(piece.words) and piece.words[0].word == word


def _targets(tokens: Sequence[_Token]) -> set[str]:
    """The names behind `into` and UQL's `to`."""
    pairs = itertools.pairwise(tokens)
    return {after.text.strip("`") for token, after in pairs if token.word in ("into", "to") and after.kind == "word"}


def _without(text: str, pieces: Sequence[_Piece], keep_app: bool) -> str:
    """The text with some statements blanked; what `@app:` says about the whole stays where it can."""
    last = max((piece.end for piece in pieces), default=0)
    rest_follows = bool(text[last:].strip())
    for piece in pieces:
        start = piece.start
        if keep_app and (piece.end != last or rest_follows):
            start = _behind_app(piece)
        text = _blanked(text, start, piece.end)
    return text


def _blanked(text: str, start: int, end: int) -> str:
    return text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]


def _annotations(text: str, piece: _Piece) -> Iterator[tuple[int, int, Annotation]]:
    """The annotations before a statement, in lower case, each with its range of the text."""
    place = 0
    while place < piece.body:
        after = _annotation(piece.tokens, place)
        start, end, inside = piece.tokens[place].start, piece.tokens[after - 1].end, piece.tokens[place:after]
        name = text[start + 1 : end].split("(")[0].strip().lower()
        yield start, end, Annotation(name, _values(text, inside), (), *_position(text, start))
        place = after


def _values(text: str, tokens: Sequence[_Token]) -> Mapping[str, str]:
    """The values of an annotation, each by what stands before its `=`."""
    found, begin = dict[str, str](), 0
    for place, token in enumerate(tokens):
        if token.text in ("(", ","):
            begin = place + 1
        elif token.kind == "string":
            key = tokens[begin:place]
            found[text[key[0].start : key[-1].start].strip() if key else ""] = token.text[1:-1]
    return found


def _position(text: str, at: int) -> tuple[int, int]:
    before = text[:at]
    return before.count("\n") + 1, at - before.rfind("\n")


def _behind_app(piece: _Piece) -> int:
    """Where the annotations end that speak of the whole app and stand before all others."""
    start, place = piece.start, 0
    while place + 3 < piece.body and piece.tokens[place].text == "@" and piece.tokens[place + 1].word == "app":
        place = _annotation(piece.tokens, place)
        start = piece.tokens[place].start if place < len(piece.tokens) else piece.end
    return start


def _annotation(tokens: Sequence[_Token], place: int) -> int:
    """The place behind an annotation that begins at one."""
    place += 2
    if place + 1 < len(tokens) and tokens[place].text == ":":
        place += 2
    if place < len(tokens) and tokens[place].text == "(":
        depth = 0
        while place < len(tokens):
            depth += (tokens[place].text == "(") - (tokens[place].text == ")")
            place += 1
            if not depth:
                break
    return place


def _tokens(text: str) -> Iterator[_Token]:
    for found in _TOKEN.finditer(text):
        if found.lastgroup not in ("skip", "feed"):
            yield _token(found)


def _token(found: re.Match[str]) -> _Token:
    return _Token(found.lastgroup or "", found.group(), found.start(), found.end())


class _Cutter:
    """Cuts a text at the semicolons of its statements and the braces of its blocks."""

    def __init__(self, text: str) -> None:
        self._text = text

    def pieces(self) -> Iterator[_Piece]:
        at = 0
        while (piece := self._piece(at)) is not None:
            if piece.tokens:
                yield piece
            at = piece.end

    def _piece(self, start: int) -> _Piece | None:
        tokens, body, parting, ended = list[_Token](), 0, False, False
        for found in _TOKEN.finditer(self._text, start):
            if found.lastgroup == "skip":
                continue
            token = _token(found)
            if token.kind == "feed" or (token.text == ";" and token.kind == "sign" and (not parting or ended)):
                return _Piece(tuple(tokens), _body(tokens), token.end)
            tokens.append(token)
            if token.text == "{" and token.kind == "sign" and (given := _language(self._text, tokens)) is not None:
                return self._block(tokens, given, token.end)
            if len(tokens) - 1 == (body := _body(tokens)) and token.word == "partition":
                parting = True
            ended |= parting and token.word == "end" and len(tokens) - 1 > body
        return _Piece(tuple(tokens), _body(tokens), len(self._text)) if tokens else None

    def _block(self, tokens: list[_Token], given: tuple[str, Mapping[str, str], _Token], start: int) -> _Piece:
        language, values, at = given
        line, column = _position(self._text, at.start)
        if language not in in_blocks():
            raise PlanError(
                f"unknown language {language!r}", line=line, column=column, hint=f"one of {', '.join(in_blocks())}"
            )
        end = _closing(self._text, start, language)
        if end is None:
            raise SyntaxProblem(
                "the block is not closed",
                line=line,
                column=column,
                hint="a `}` for its `{`; braces in texts do not count",
            )
        line, column = _position(self._text, start)
        file = values.get("file")
        section = Section(
            language, self._text[start:end], 1 if file else line, 1 if file else column, values.get("into"), file
        )
        found = re.compile(r"\s*;").match(self._text, end + 1)
        return _Piece(tuple(tokens), len(tokens) - 1, found.end() if found else end + 1, section)


def _body(tokens: Sequence[_Token]) -> int:
    place = 0
    while place + 1 < len(tokens) and tokens[place].text == "@" and tokens[place].kind == "sign":
        place = _annotation(tokens, place)
    return place


def _language(text: str, tokens: Sequence[_Token]) -> tuple[str, Mapping[str, str], _Token] | None:
    """What `@lang(…)` before a brace says: the language, the other values, and where it stands."""
    if _body(tokens) != len(tokens) - 1:
        return None
    for place, token in enumerate(tokens):
        if token.text == "@" and tokens[place + 1].word == "lang":
            values = _values(text, tokens[place : _annotation(tokens, place)])
            return values.get("", "").lower(), values, token
    return None


def _closing(text: str, start: int, language: str) -> int | None:
    """Where the brace is that closes a block; those in texts and comments do not count."""
    skipped = LANGUAGES[language].comment + r"|/\*.*?\*/"
    strings = r'"(?:\\.|[^"\\])*"|' r"'(?:\\.|[^'\\])*'"
    depth = 0
    for found in re.finditer(rf"{skipped}|{strings}|[{{}}]", text[start:], re.DOTALL):
        if found.group() in "{}":
            depth += 1 if found.group() == "{" else -1
            if depth < 0:
                return start + found.start()
    return None
