"""Which Codex processes serve others, and where.

Owns what the command line of `codex app-server` means. Promises a pure reading of
it: whether something listens there, and who, is to be asked of the kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bridge.core.caller import ProcessFacts
from bridge.providers import codex

_VERB = "app-server"
_RUNS_ONCE = frozenset({"exec", "e"})
_OPTION = "--listen"
_SCHEME = "unix://"
# Where `unix://` without a path is, below CODEX_HOME; the shared server's place.
_USUAL = "app-server-control/app-server-control.sock"


def is_server(facts: ProcessFacts) -> bool:
    """Is this a `codex app-server`, the shared one included?"""
    return codex.is_program(facts) and _VERB in facts.arguments[1:]


def runs_once(facts: ProcessFacts) -> bool:
    """May this be `codex exec`, which ends with its turn? True when in doubt."""
    return not _RUNS_ONCE.isdisjoint(facts.arguments[1:])


def own_socket(facts: ProcessFacts, environment: Mapping[str, str]) -> str | None:
    """The absolute path at which this process says that it listens, or None.

    `environment` is the one that it was started with.
    """
    listen = _listen(facts.arguments) if is_server(facts) else ""
    if not listen.startswith(_SCHEME):
        return None
    path = listen.removeprefix(_SCHEME) or _usual_place(environment)
    return path if path.startswith("/") else None


def _listen(arguments: Sequence[str]) -> str:
    """The last value of the option, as Codex takes it; empty without one."""
    own = arguments[arguments.index(_VERB) + 1 :]
    found = ""
    for place, word in enumerate(own):
        if word == _OPTION:
            found = own[place + 1] if place + 1 < len(own) else ""
        elif word.startswith(f"{_OPTION}="):
            found = word.removeprefix(f"{_OPTION}=")
    return found


def _usual_place(environment: Mapping[str, str]) -> str:
    home = environment.get("HOME", "")
    codex_home = environment.get("CODEX_HOME") or (f"{home}/.codex" if home else "")
    return f"{codex_home}/{_USUAL}" if codex_home else ""
