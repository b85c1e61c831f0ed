"""Random statements with loops that are compiled, as everywhere but in the tests that say otherwise."""

import pytest

from tests.live.test_comparing import compared_for_long


@pytest.mark.slow
def test_compiled_loops_make_no_difference_either() -> None:
    compared_for_long()
