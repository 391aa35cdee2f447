"""How every test of this tree runs."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# No deadline and no measuring of speed: a busy machine is not a failing test. The
# same examples each time: what fails for one person fails for everybody.
settings.register_profile(
    "house",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("house")
