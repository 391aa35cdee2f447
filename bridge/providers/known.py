"""The providers of this bridge, and what each of them answers.

Owns the list. Promises that every provider answers the same questions, so that
nothing outside its own module needs to know which one it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from bridge.core.caller import HookEvent, HookInput, ProcessFacts
from bridge.core.render import Budget, Print
from bridge.errors import Refused
from bridge.providers import (
    agy,
    claude,
    codex,
    copilot,
    cursor,
    droid,
    gemini,
    kimi,
    muse,
    opencode,
    pi,
    qwen,
    script,
)


class Provider(Protocol):
    """What each provider module is.

    NAME is its word everywhere, TITLE what people call it; ROUTES the ways to an
    attached session, the best first; OFFERS_AT the events at which its hook can
    hand an offer to the model (of these, all but a turn's end only on the person's
    wish). BUDGET is what its hook carries whole, and RESULT_BUDGET what it passes on
    whole as the result of one tool call. HAS_ONE_CHAT: a process has one chat open
    at a time; HAS_MANY_CHATS: several at once. IS_IN_PROCESS: its hooks are code of
    ours inside of the program itself. MARKS are the environment variables that mean
    "below this provider", SHELL_MARKS those of them that only its agents' commands
    have. TRIED says, for the manual, what our tests drove.
    """

    NAME: str
    TITLE: str
    ROUTES: tuple[str, ...]
    OFFERS_AT: frozenset[HookEvent]
    HAS_ONE_CHAT: bool
    HAS_MANY_CHATS: bool
    IS_IN_PROCESS: bool
    TRIED: str
    BUDGET: Budget
    RESULT_BUDGET: Budget
    SHELL_MARKS: frozenset[str]
    MARKS: frozenset[str]

    def read_hook(self, event_word: str, stdin: bytes) -> HookInput:
        """What one hook said; raises Invalid."""
        ...

    def print_offer(self, event: HookEvent, text: str, version: str = "") -> Print:
        """An offer, as a host of this version wants it (empty: as new ones do).

        Raises ValueError at an event where none is printed.
        """
        ...

    def print_block(self, event: HookEvent, text: str) -> Print:
        """The answer to a typed command; ValueError where none is typed."""
        ...

    def print_person_line(self, event: HookEvent, text: str) -> Print | None:
        """A line for the person alone, or None where the host has no such place."""
        ...

    def is_program(self, facts: ProcessFacts) -> bool:
        """Is this a process of the provider's program?"""
        ...

    def thread_of_call(self, meta: Mapping[str, object]) -> str | None:
        """The session that a tool call's `_meta` names; raises Refused."""
        ...

    def session_of_environment(self, environment: Mapping[str, str]) -> str | None:
        """The session whose shell has this environment; raises Refused."""
        ...


PROVIDERS: Mapping[str, Provider] = MappingProxyType(
    {
        agy.NAME: agy,
        claude.NAME: claude,
        codex.NAME: codex,
        copilot.NAME: copilot,
        cursor.NAME: cursor,
        droid.NAME: droid,
        gemini.NAME: gemini,
        kimi.NAME: kimi,
        muse.NAME: muse,
        opencode.NAME: opencode,
        pi.NAME: pi,
        qwen.NAME: qwen,
        script.NAME: script,
    }
)
# Hosts for which no answer at all is a broken hook.
_NOTHING: Mapping[str, Print] = MappingProxyType({agy.NAME: agy.NOTHING})


def nothing_to_say(name: str) -> Print:
    """What a hook of this provider prints that has nothing to say."""
    return _NOTHING.get(name, Print())


def provider_named(name: str) -> Provider:
    """The provider of this name; raises Refused with the names there are."""
    provider = PROVIDERS.get(name)
    if provider is None:
        raise Refused(
            "unknown_provider",
            "There is no such provider.",
            f"Name one of: {', '.join(PROVIDERS)}",
        )
    return provider
