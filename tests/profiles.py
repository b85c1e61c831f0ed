"""How hard the property tests try: few examples by default and the same each time, so that what passed here passes anywhere;
with `--hypothesis-profile=long` many, and others each time, to look for what nobody has met.

The profiles are registered when this module is imported; tests/conftest.py imports it, so that the option knows them.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("small", deadline=None, suppress_health_check=_QUIET, print_blob=True, derandomize=True)
settings.register_profile("long", deadline=None, suppress_health_check=_QUIET, print_blob=True)
settings.load_profile("small")  # the option, where it is given, is read later
_LONGER = 25


def examples(count: int) -> settings:
    """Settings for a property that is tried `count` times by default and 25 times as often under the long profile."""
    more = _LONGER if settings.get_current_profile_name() == "long" else 1
    return settings(max_examples=count * more, deadline=None, suppress_health_check=_QUIET, print_blob=True)
