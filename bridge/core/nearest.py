"""The names nearest to one that nobody has.

Promises at most three names out of those given, the nearest first, and none that
is not near; case does not count.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from bridge.core.ids import fold_name

SHOWN = 3
# Two of five letters may differ: `carrol` finds carol, `bob` does not find alice.
_NEAR = 0.6


def nearest_names(wanted: str, names: Iterable[str]) -> tuple[str, ...]:
    """Up to three of `names`, as they are written, nearest to `wanted` first."""
    by_fold = {fold_name(name): name for name in names}
    found = difflib.get_close_matches(fold_name(wanted), list(by_fold), SHOWN, _NEAR)
    return tuple(by_fold[name] for name in found)
