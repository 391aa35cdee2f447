"""A bridge with a bug: `python failing.py STATE_FOLDER FUNCTION TRIGGER`.

Runs the daemon as the command does. Once the file TRIGGER exists, the next call
of FUNCTION raises KeyError in it, as a mistake of ours would.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from types import FrameType

from bridge import daemon
from bridge.config import load_settings
from bridge.paths import Paths


def fail_in(function: str, trigger: Path) -> None:
    """From now on; what is raised in a profile function is raised in the code."""

    def profile(frame: FrameType, event: str, detail: object) -> None:
        if (
            event == "call"
            and frame.f_code.co_name == function
            and "/bridge/" in frame.f_code.co_filename
            and trigger.exists()
        ):
            sys.setprofile(None)
            raise KeyError("a mistake of ours")

    threading.setprofile(profile)
    sys.setprofile(profile)


if __name__ == "__main__":
    state = Path(sys.argv[1])
    fail_in(sys.argv[2], Path(sys.argv[3]))
    paths = Paths(config=state, state=state, config_file=state / "config.json")
    os.chdir("/")
    sys.exit(daemon.run(paths, load_settings(paths.config_file)))
