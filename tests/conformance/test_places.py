"""The page of what runs where is what runs where, and a refusal in a job says where else it works."""

from __future__ import annotations

from tests.conformance.places import PAGE, render


def test_the_page_is_that_of_this_tree() -> None:
    assert PAGE.read_text() == render(), "run `make docs`"


def test_a_script_of_streamcruncher_in_a_block_is_told_where_it_runs() -> None:
    lines = [
        line for line in render().splitlines() if line.startswith(("| weights", "| a timer", "| several", "| `in"))
    ]
    assert len(lines) == 4 and all("| runs |" in line and "rollup try FILE.cruncher" in line for line in lines)
