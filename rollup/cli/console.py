"""The console that tables and lines for people are printed on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def console(width: int | None = None) -> Console:
    """One that prints every text as it is: `[late]` in a hint, `[x]` or `:x:` in a user's value are no markup.

    `width` goes before that of the terminal.
    """
    from rich.console import Console

    return Console(width=width, markup=False, emoji=False, highlight=False)
