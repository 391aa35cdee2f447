"""What the bridge tells the service manager that started it.

Owns the notify protocol: one datagram for each word. Promises that nothing is
said where nobody listens, that no word holds up the bridge, and that the address
and the watchdog's time are taken out of the environment, so that no program
which the bridge starts can speak for it.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import MutableMapping

import trio

_SOCKET = "NOTIFY_SOCKET"
_WATCHDOG = "WATCHDOG_USEC"
_WATCHDOG_PID = "WATCHDOG_PID"
# A manager that reads nothing for so long does not hear this word.
_TRIES = 20
_PAUSE_S = 0.05
# No room at the manager, or in our own or the system's table of descriptors.
_PASSING = (errno.EAGAIN, errno.EMFILE, errno.ENFILE)


class Notifier:
    """Speaks to `address`, or to nobody where it is empty.

    `watchdog_s` is how long the manager waits for a word from a living bridge; 0
    where it does not watch us.
    """

    def __init__(self, address: str = "", watchdog_s: float = 0.0) -> None:
        self.watchdog_s = watchdog_s
        self._address = address

    @classmethod
    def take(cls, environment: MutableMapping[str, str]) -> Notifier:
        """Who is to be told, by these variables, which are removed from there."""
        address = environment.pop(_SOCKET, "")
        watchdog = environment.pop(_WATCHDOG, "")
        watched = environment.pop(_WATCHDOG_PID, "") or str(os.getpid())
        if not address.startswith(("/", "@")):
            return cls()
        is_ours = watched == str(os.getpid()) and watchdog.isdecimal()
        return cls(address, int(watchdog) / 1e6 if is_ours else 0.0)

    async def say(self, *lines: str) -> None:
        """Tell it all in one datagram; a manager that is gone is not missed.

        Nor is one for which the system has no descriptor just now
        (test_a_want_of_descriptors_ends_no_bridge).
        """
        if not self._address:
            return
        words = "\n".join(lines).encode()
        for _ in range(_TRIES):
            try:
                self._send(words)
            except OSError as error:
                if error.errno not in _PASSING:
                    return
                await trio.sleep(_PAUSE_S)
            else:
                return

    def _send(self, words: bytes) -> None:
        place = self._address
        if place.startswith("@"):  # no file: a name in the kernel alone
            place = f"\0{place[1:]}"
        flags = socket.SOCK_DGRAM | getattr(socket, "SOCK_CLOEXEC", 0)
        with socket.socket(socket.AF_UNIX, flags) as speaking:
            speaking.setblocking(False)
            speaking.sendto(words, place)
