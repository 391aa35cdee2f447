"""Which providers stand above a process, and which live sessions there are.

Owns the reading of an ancestry and of environments into what core/caller decides
by. Promises that a fact which cannot be read grants nothing, and that a live
session is one whose own process says so. Facts and environments come from
`providers/process`, passed in as functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from bridge.core.caller import Ancestry, Evidence, ProcessFacts, ProviderFound
from bridge.errors import Refused
from bridge.providers import claude, copilot, cursor, script
from bridge.providers.claude_registration import registration_of
from bridge.providers.known import PROVIDERS

FactsOf = Callable[[int], ProcessFacts | None]
# The environment of a process as it was started, None when it cannot be read.
EnvironmentOf = Callable[[int], Mapping[str, str] | None]
IsScript = Callable[[ProcessFacts], bool]

_REMEMBERED = 128
_MARKS = frozenset(mark for provider in PROVIDERS.values() for mark in provider.MARKS)
_CHILD_MARKS = {copilot.NAME: copilot.CHILD_MARKS}


class LiveSession(Struct, frozen=True):
    """One chat that is open now, by its own process's word."""

    provider: str
    session_id: str
    process: ProcessFacts
    folder: str = ""
    version: str = ""
    name: str = ""


# A hook asks of each process above it, and those are the same for a chat's whole
# life: a dozen programs are compared once (30 us of each hook, measured).
@lru_cache(maxsize=_REMEMBERED)
def program_of(facts: ProcessFacts) -> str | None:
    """The provider whose program this process runs, or None."""
    for name, provider in PROVIDERS.items():
        if provider.is_program(facts):
            return name
    return None


def evidence_of(
    ancestry: Ancestry,
    environment_of: EnvironmentOf,
    is_script: IsScript,
    *,
    looks_above: bool = True,
) -> Evidence:
    """What core/caller decides by, for the process that `ancestry` begins with.

    `is_script` tells whether a process is attached as a script, which nothing but
    its process key can make it. A mark that the nearest provider's process was
    itself started with says nothing about what that process started, so it is
    left out below it. Without `looks_above` no mark of the nearest provider or
    above it is known: it then counts as one that an agent started.
    """
    found = tuple(_found(ancestry, is_script))
    nearest = found[0].at if found else len(ancestry.chain)
    reach = len(ancestry.chain) if looks_above else nearest + 1 if found else 0
    environments = [environment_of(facts.pid) for facts in ancestry.chain[:reach]]
    inherited = (environments[nearest] if found else None) or {}
    below = [_marks(each, inherited) for each in environments[:nearest]]
    above = [_marks(each, {}) for each in environments[nearest:] if looks_above]
    shells = environments[: max(nearest, 1)]
    session_id = _own_session(found[0].provider, shells) if found else ""
    return Evidence(ancestry, found, (*below, *above), session_id)


def live_sessions(
    pids: Iterable[int], facts_of: FactsOf, environment_of: EnvironmentOf
) -> list[LiveSession]:
    """The chats that are open now among these processes, by pid.

    Claude Code only: Codex says nowhere which chats its process has open.
    """
    found = []
    for pid in sorted(set(pids)):
        facts = facts_of(pid)
        session = None if facts is None else live_session(facts, environment_of)
        if session is not None:
            found.append(session)
    return found


def live_session(
    process: ProcessFacts, environment_of: EnvironmentOf
) -> LiveSession | None:
    """The chat that this process has open, or None when it does not say."""
    if not claude.is_program(process):
        return None
    registration = registration_of(process, environment_of(process.pid))
    if registration is None:
        return None
    return LiveSession(
        provider=claude.NAME,
        session_id=registration.session_id,
        process=process,
        folder=registration.folder,
        version=registration.version,
        name=registration.name,
    )


def _found(ancestry: Ancestry, is_script: IsScript) -> Iterable[ProviderFound]:
    for place, facts in enumerate(ancestry.chain):
        name = script.NAME if is_script(facts) else program_of(facts)
        if name is not None:
            provider = PROVIDERS[name]
            yield ProviderFound(
                name,
                place,
                provider.SHELL_MARKS,
                _CHILD_MARKS.get(name, frozenset()),
                has_many_chats=provider.HAS_MANY_CHATS,
                is_in_process=provider.IS_IN_PROCESS,
                is_editor=name == cursor.NAME and cursor.is_app(facts),
                is_unmarked=not provider.MARKS,
            )


def _own_session(provider: str, shells: Sequence[Mapping[str, str] | None]) -> str:
    """The chat that the command's environment names; `shells` are it and those above.

    Empty where it names none, where hints contradict each other, or where one of
    the shells above names another chat.
    """
    session_of = PROVIDERS[provider].session_of_environment
    try:
        own, *above = [session_of(shell or {}) or "" for shell in shells]
    except Refused:
        return ""
    return own if all(each in ("", own) for each in above) else ""


def _marks(
    environment: Mapping[str, str] | None, inherited: Mapping[str, str]
) -> frozenset[str] | None:
    if environment is None:
        return None
    return frozenset(
        name
        for name in _MARKS.intersection(environment)
        if environment[name] and environment[name] != inherited.get(name)
    )
