"""How hard the property tests try: few examples by default and the same each time, so that what passed here passes anywhere;
with `--hypothesis-profile=long` many, and others each time, to look for what nobody has met; with `unit` very few.

The profiles are registered when this module is imported; tests/conftest.py imports it, so that the option knows them.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("small", deadline=None, suppress_health_check=_QUIET, print_blob=True, derandomize=True)
settings.register_profile("long", deadline=None, suppress_health_check=_QUIET, print_blob=True)
settings.register_profile(
    "unit", max_examples=10, deadline=None, suppress_health_check=_QUIET, print_blob=True, derandomize=True
)
settings.load_profile("small")  # the option, where it is given, is read later
_TIMES = {"small": 1.0, "long": 25.0, "unit": 0.1}


def examples(count: int) -> settings:
    """Settings for a property that is tried `count` times by default, 25 times as often under the long profile."""
    tried = max(1, round(count * _TIMES.get(settings.get_current_profile_name(), 1.0)))
    return settings(max_examples=tried, deadline=None, suppress_health_check=_QUIET, print_blob=True)
