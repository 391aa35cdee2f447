"""A bridge with its embedded server, for more names than one person has.

python -m tests.benchmarks.embedded
"""

from __future__ import annotations

from functools import partial

from bridge import daemon
from bridge.config import load_settings
from bridge.paths import locate
from bridge.server import limits

MANY = 100_000


def main() -> int:
    """The exit code."""
    limits.Settings = partial(  # type: ignore[misc, assignment]
        limits.Settings,
        names=MANY,
        names_per_account=MANY,
        streams=MANY,
        conversation_hourly=MANY,
    )
    paths = locate()
    return daemon.run(paths, load_settings(paths.config_file, "embedded"))


if __name__ == "__main__":
    raise SystemExit(main())
