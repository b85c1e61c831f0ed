"""SIMILAR TO as the regular expression that it is: `%` is any text, `_` any character (in Calcite `.` too), the rest as in POSIX."""

from __future__ import annotations

import re

from sqlglot import exp

from rollup.lang.calcite.semantics import refused

_OWN = "|*+?{}()."
"""What means in a pattern of SQL what it means in a regular expression; inside brackets `^` and `-` do too."""
_CLASSES = {"ALPHA", "UPPER", "LOWER", "DIGIT", "ALNUM", "SPACE", "WHITESPACE"}


def similar(node: exp.SimilarTo, escape: exp.Expr | None) -> exp.Expr:
    """The test of a text against a pattern. Raises PlanError for a pattern that is no constant."""
    pattern = node.expression
    if not isinstance(pattern, exp.Literal) or not pattern.is_string:
        raise refused(node, "SIMILAR TO needs a pattern in quotes", "LIKE takes any expression")
    text = regular(pattern.name, escape.name if isinstance(escape, exp.Literal) else None)
    return exp.Anonymous(this="regexp_full_match", expressions=[node.this.copy(), exp.Literal.string(text)])


def regular(pattern: str, escape: str | None = None) -> str:
    r"""The regular expression of a pattern.

    >>> regular("a_%"), regular("x.[a-c]+"), regular("100!%", "!")
    ('(?s)a..*', '(?s)x.[a-c]+', '(?s)100%')
    """
    found, at, inside = list[str](), 0, False
    while at < len(pattern):
        sign = pattern[at]
        at += 1
        if sign == escape and at < len(pattern):
            found.append(re.escape(pattern[at]))
            at += 1
        elif inside or sign == "[":
            named = re.match(r"\[:(\w+):\]", pattern[at - 1 :]) if inside else None
            if named and named[1].upper() in _CLASSES:
                found.append(f"[:{named[1].lower().replace('whitespace', 'space')}:]")
                at += len(named[0]) - 1
            else:
                found.append("\\\\" if sign == "\\" else sign)
                inside = sign != "]"
        else:
            found.append({"%": ".*", "_": "."}.get(sign) or (sign if sign in _OWN else re.escape(sign)))
    return "(?s)" + "".join(found)
