"""What our own extensions say from inside of a host, and how they are answered.

Owns the shape that the extensions of Pi and opencode share: they speak as a hook
would, with event words of ours, and take plain text. Promises pure functions of
their input. What the extensions do with an answer is in hooks/.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec.structs import replace

from bridge.core.caller import HookEvent, HookInput
from bridge.core.render import Print
from bridge.providers import host_json

OFFERS_AT: frozenset[HookEvent] = frozenset({HookEvent.TURN_ENDED})

_EVENTS: Mapping[str, HookEvent] = MappingProxyType(
    {
        "session_start": HookEvent.SESSION_STARTED,
        "prompt": HookEvent.PROMPT,
        "command": HookEvent.COMMAND,
        "turn_end": HookEvent.TURN_ENDED,
        "session_end": HookEvent.SESSION_ENDED,
    }
)
# The one way for a turn to end at which the host takes what we hand it.
_COMPLETED = "completed"


def read(host: str, event_word: str, stdin: bytes) -> HookInput:
    """What an extension said; raises Invalid.

    A command comes with what was typed after its name. A turn that was aborted or
    failed may not drain.
    """
    said = host_json.read(host, event_word, stdin)
    heard = host_json.to_input(host, _EVENTS, said, is_subagent=False)
    match heard.event:
        case HookEvent.COMMAND:
            prompt = f"/agentworks {said.command_args.strip()}".strip()
            return replace(heard, prompt=prompt, person_typed=True)
        case HookEvent.TURN_ENDED:
            return replace(heard, may_drain=said.reason == _COMPLETED)
        case _:
            return heard


def offer(event: HookEvent, text: str) -> Print:
    """An offer, whole and plain; raises ValueError at any event but a turn's end."""
    if event not in OFFERS_AT:
        raise ValueError(f"no offer is handed over at {event}")
    return Print(text=text.encode())


def answer(event: HookEvent, text: str) -> Print:
    """The answer to a typed command; raises ValueError at any other event."""
    if event is not HookEvent.COMMAND:
        raise ValueError(f"no command is answered at {event}")
    return Print(text=text.encode())


def line(event: HookEvent, text: str) -> Print | None:
    """A line that the host shows to the person and not to the model."""
    return Print(text=text.encode()) if event is HookEvent.SESSION_STARTED else None
