"""This computer as the bridge names it: a host id, and our command to paste.

Promises that the host id is made once for a state folder and that a printed
command works as it stands.
"""

from __future__ import annotations

import re
import secrets
import shlex
import shutil
import sys
from pathlib import Path

from bridge.errors import EXIT_CONFIG, Refused
from bridge.paths import Paths, read_private_file, write_private_file

_SMALL_FILE = 64 * 1024
_HOST_ID = re.compile(rb"host-[0-9a-f]{16}\n?")


def host_id(paths: Paths) -> str:
    """A random name of this state folder, made once.

    Raises Refused (exit 78) for a file that we did not write.
    """
    file = paths.state / "host_id"
    content = read_private_file(file, _SMALL_FILE)
    if content is None:
        content = f"host-{secrets.token_hex(8)}".encode()
        write_private_file(file, content)
    if not _HOST_ID.fullmatch(content):
        place = shlex.quote(str(file))
        raise Refused(
            "bad_host_id",
            f"{file} does not hold this computer's id, which the bridge wrote there.",
            f"Move it away, and a new one is made: mv {place} {place}.old",
            exit_code=EXIT_CONFIG,
        )
    return content.decode("ascii").strip()


def program() -> str:
    """The command as it can be pasted: its bare name only if PATH finds ours."""
    own = Path(sys.executable).with_name("agentworks")
    found = shutil.which("agentworks")
    if found is not None and Path(found).resolve() == own.resolve():
        return "agentworks"
    return str(own) if own.exists() else f"{sys.executable} -m bridge"
