"""A person's terminal apart from the tests: runs our commands as typed there.

    python terminal.py

Speaks as tests/journeys/rig/puppet.py does, and knows what that does and
`command`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from tests.journeys.rig import puppet

COMMAND_S = 60.0


def command(words: list[str], **variables: str) -> dict[str, Any]:
    """One `agentworks` command line: its exit code, output and errors."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "bridge", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
        timeout=COMMAND_S,
        check=False,
    )
    return {"ok": {"exit": done.returncode, "out": done.stdout, "err": done.stderr}}


if __name__ == "__main__":
    puppet.ACTIONS["command"] = command
    puppet.main()
