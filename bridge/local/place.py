"""The socket's file, looked after while the bridge runs.

Promises that a socket, lock or run folder which somebody removed or replaced is
noticed within seconds and put back under the lock, that who is connected stays
connected, and that a place which cannot be taken again is said once and tried
again. It looks at two names every five seconds, and at nothing else.
"""

from __future__ import annotations

from typing import NoReturn

import trio

from bridge.errors import BridgeError
from bridge.local.instance import Instance
from bridge.local.listener import Log
from bridge.local.stream import LocalListener

LOOK_EVERY_S = 5.0


async def keep_in_place(
    instance: Instance, listener: LocalListener, log: Log
) -> NoReturn:
    """Until cancelled: have the socket's path lead to `listener`."""
    trouble = ""
    while True:
        await trio.sleep(LOOK_EVERY_S)
        if instance.is_in_place():
            continue
        before, trouble = trouble, _put_back(instance, listener)
        if not trouble:
            log.warning("socket_put_back")
        elif trouble != before:
            log.warning("socket_lost", reason=trouble)


def _put_back(instance: Instance, listener: LocalListener) -> str:
    """What stands in the way, or nothing."""
    try:
        fresh = instance.take_place_again()
    except BridgeError as error:
        return error.sentence()
    except OSError as error:
        return str(error)
    if fresh is not None:
        listener.replace(fresh)
    return ""
