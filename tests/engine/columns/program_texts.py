"""Prints a hash of the texts of the programs that statements over columns become, one of sixteen."""

import hashlib
from typing import Any

from rollup.engine.programs.lowering.linking import Linker
from tests.engine.columns.delivering import core
from tests.engine.columns.statements import COVERED


def main() -> None:
    """Make the programs."""
    texts, made = hashlib.sha256(), Linker.source

    def recorded(linker: Linker, entries: Any) -> Any:
        source = made(linker, entries)
        texts.update(source.key.encode())
        return source

    Linker.source = recorded
    for text in COVERED[::16]:
        core(text)
    print(texts.hexdigest())


if __name__ == "__main__":
    main()
