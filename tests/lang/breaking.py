"""Right texts made wrong, for parsers of whatever language."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import strategies as st


@st.composite
def broken(draw: st.DrawFn, right: Sequence[str], token: re.Pattern[str], junk: Sequence[str]) -> str:
    """A right text with a few of its tokens removed, doubled, swapped or replaced."""
    tokens = token.findall(draw(st.sampled_from(right)))
    for _ in range(draw(st.integers(1, 4))):
        at, other = draw(st.integers(0, len(tokens) - 1)), draw(st.integers(0, len(tokens) - 1))
        how = draw(st.sampled_from(["drop", "double", "swap", "junk", "junk"]))
        if how == "drop" and len(tokens) > 1:
            del tokens[at]
        elif how == "double":
            tokens.insert(other, tokens[at])
        elif how == "swap":
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif how == "junk":
            tokens[at] = draw(st.sampled_from(junk))
    return draw(st.sampled_from([" ", "\n"])).join(tokens)
