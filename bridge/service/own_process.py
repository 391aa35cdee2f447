"""What a process with tokens and messages in its memory asks of the system.

Promises, however it was started: no core dump, no look into its memory or its
environment by another program of the same person (Linux), and descriptors for
as many local programs as the door lets in.
"""

from __future__ import annotations

import ctypes
import resource
import sys

_SET_DUMPABLE = 4  # prctl
# 1,024 children, 128 others, and two for each stream of an embedded server.
_DESCRIPTORS = 8192


def shield_own_process() -> None:
    """Ask for all of it; what this system does not know is left as it is."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _allow_descriptors()
    if sys.platform == "linux":
        # Also where cores go to a program, which is not held by the limit.
        ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def _allow_descriptors() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
