"""Asks the daemon from below a filter that forbids connect, as a sandbox would.

    python forbidden_connect.py STATE_FOLDER

Prints the refusal's code; exit 77 where no such filter may be set.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from pathlib import Path

from bridge.errors import BridgeError
from bridge.local.client import call
from bridge.local.requests import Hello
from bridge.paths import Paths

CONNECT = {"x86_64": 42, "aarch64": 203}
NO_NEW_PRIVILEGES, SECCOMP, FILTER = 38, 22, 2
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL_WITH_EPERM = 0x7FFF0000, 0x00050001


def forbid_connect(number: int) -> bool:
    """True when from now on every connect fails with EPERM."""
    steps = (
        (LOAD, 0, 0, 0),
        (JUMP_IF_EQUAL, 0, 1, number),
        (RETURN, 0, 0, FAIL_WITH_EPERM),
        (RETURN, 0, 0, ALLOW),
    )
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    filter_code = ctypes.create_string_buffer(code)
    program = struct.pack("HP", len(steps), ctypes.addressof(filter_code))
    control = ctypes.CDLL(None).prctl
    control(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    return bool(control(SECCOMP, FILTER, ctypes.c_char_p(program)) == 0)


def main(state: Path) -> int:
    number = CONNECT.get(platform.machine())
    if sys.platform != "linux" or number is None or not forbid_connect(number):
        return 77
    paths = Paths(config=state, state=state, config_file=state / "config.json")
    try:
        call(paths, Hello())
    except BridgeError as error:
        os.write(1, error.code.encode() + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
