"""A whole file of ours in a person's project.

Promises that a file which does not carry our mark is never replaced or removed.
"""

from __future__ import annotations

from pathlib import Path

from bridge.errors import Refused

WRITTEN = "ritten by `agentworks attach`"
"""In every file that we write whole, whatever its language."""


def placed(path: Path, before: str | None, content: str, mark: str = WRITTEN) -> str:
    """The content for this path; raises Refused where a file of others lies."""
    if before is not None and mark not in before:
        raise Refused(
            "name_taken",
            f"{path} is not a file of ours, so it was not touched.",
            "If it is an older one of yours, remove it and try again.",
        )
    return content


def taken_out(before: str | None, mark: str = WRITTEN) -> str | None:
    """None where the file is ours or missing, else what is in it."""
    return before if before is not None and mark not in before else None
