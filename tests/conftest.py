"""How every test of this tree runs."""

from __future__ import annotations

from hypothesis import settings

# No deadline: a busy machine is not a failing test. The same examples each time:
# what fails for one person fails for everybody.
settings.register_profile("house", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("house")
