"""The command that a person types in a chat: attach, detach or agents.

Owns its grammar and when it counts. Promises that a prompt is a command only as
a whole, so that no text around it, before it or after it is ever acted on or
swallowed, and that every text whatever has an answer: a command, or None.
"""

from __future__ import annotations

import re
from collections.abc import Container

from msgspec import Struct

from bridge.core.caller import HookEvent, HookInput
from bridge.core.ids import is_name
from bridge.core.visible import one_line

# A word longer than this is not echoed whole in an answer.
_WORD_SHOWN = 64
# Text is longer than any command long before this; such prompts are not parsed.
_LONGEST_COMMAND = 400

_SLASH = ("/agentworks",)
# The words that begin a command, by provider; the first is shown in the usage.
_PREFIXES = {
    "claude": ("/agentworks", "/agentworks:agentworks"),
    "codex": (
        "$agentworks",
        "$agentworks:agentworks",  # as the skill of our plugin is inserted
        "/agentworks",
        "/agentworks:agentworks",
    ),
}
# Where no slash command of ours is known to reach the hooks the plain word counts
# too, but only where prose can hardly be meant: see _is_prose.
_PLAIN = dict.fromkeys(("codex", "cursor", "droid", "kimi", "muse"), "agentworks")


_REMOTE = "--native-remote"
_WISHES = {
    "--at-prompt": "at_prompt",
    "--mid-turn": "mid_turn",
    "--no-wake": "no_wake",
    "--usual": "usual",
}


class AttachCommand(Struct, frozen=True):
    """Attach this chat, under this name or under its default one.

    `native_remote` names its native way, empty for none; `wants` are the person's
    wishes for mail, None when nothing was said of them (core/remotes).
    """

    name: str | None
    native_remote: str = ""
    wants: tuple[str, ...] | None = None


class DetachCommand(Struct, frozen=True):
    """Detach this chat."""


class AgentsCommand(Struct, frozen=True):
    """Show who is attached."""


class UsageCommand(Struct, frozen=True):
    """It was meant for us and is not right; `text` is the answer."""

    text: str


Command = AttachCommand | DetachCommand | AgentsCommand | UsageCommand


def parse(provider: str, prompt: str) -> Command | None:
    """What the whole trimmed prompt asks for; None when it is not a command."""
    words = _words(provider, prompt)
    if words is None:
        return None
    verb, arguments = (words[0], words[1:]) if words else ("", [])
    if verb == "attach":
        return _attach(provider, arguments)
    if verb == "detach" and not arguments:
        return DetachCommand()
    if verb in ("agents", "agent") and not arguments:
        return AgentsCommand()
    return UsageCommand(_unknown(provider, verb, arguments))


def typed_command(
    hook: HookInput,
    *,
    host_marks_typed: bool,
    is_nested: bool,
    offered: Container[str] = (),
) -> Command | None:
    """The command in this hook, if it counts as typed by the person in this chat.

    `host_marks_typed`: this host has an event that fires for typed text only, so
    no other event counts. `is_nested`: the provider itself runs below another
    provider, whose agent may have written the prompt. `offered` holds the texts
    of outstanding offers, which a route may have handed over as a prompt. A
    command in a nested chat is answered with why it does nothing.
    """
    if hook.event not in (HookEvent.PROMPT, HookEvent.COMMAND):
        return None
    if hook.is_subagent or hook.prompt in offered:
        return None
    if host_marks_typed and not hook.person_typed:
        return None
    command = parse(hook.provider, hook.prompt)
    if command is not None and is_nested:
        return UsageCommand(_nested(hook.provider))
    return command


def chat_word(provider: str) -> str:
    """The word that begins a command in a chat of this provider, as we print it."""
    return _PREFIXES.get(provider, _SLASH)[0]


def usage(provider: str) -> str:
    """The three lines that say what can be typed in a chat of this provider."""
    prefix = chat_word(provider)
    return (
        f"{prefix} attach [NAME]  attach this chat, so that other agents can reach it\n"
        f"{prefix} detach         end that\n"
        f"{prefix} agents         show who is attached"
    )


def _nested(provider: str) -> str:
    return (
        f"Nothing was done: this {one_line(provider, _WORD_SHOWN)} runs below another "
        "coding agent, so the bridge cannot tell whether a person typed this. The "
        "person can attach it from a terminal: agentworks attach"
    )


def _words(provider: str, prompt: str) -> list[str] | None:
    """The words after the prefix; None when the prompt is something else."""
    trimmed = prompt.strip()
    if len(trimmed) > _LONGEST_COMMAND or "\n" in trimmed or "\r" in trimmed:
        return None
    first, *rest = re.split(r"[ \t]+", trimmed)
    if first in _PREFIXES.get(provider, _SLASH):
        return rest
    if first == _PLAIN.get(provider) and not _is_prose(rest):
        return rest
    return None


def _is_prose(words: list[str]) -> bool:
    """True when a sentence may have begun with our name ("agentworks is down")."""
    known = bool(words) and words[0] in ("attach", "detach", "agents", "agent")
    if known and any(word.startswith("--") for word in words):
        return False
    return len(words) > 2 or (len(words) == 2 and not known)


def _attach(provider: str, arguments: list[str]) -> Command:
    names, remote, said = _options(arguments)
    if names is None:
        return UsageCommand(_bad_name(provider, arguments))
    wants = tuple(sorted(said - {"usual"})) if said else None
    if not names:
        return AttachCommand(None, remote, wants)
    if len(names) == 1 and is_name(names[0]):
        return AttachCommand(names[0], remote, wants)
    return UsageCommand(_bad_name(provider, names))


def _options(arguments: list[str]) -> tuple[list[str] | None, str, set[str]]:
    """The other words, the URI and the wishes; None where an option is wrong."""
    names: list[str] = []
    remote = ""
    said: set[str] = set()
    words = iter(arguments)
    for word in words:
        if word in _WISHES:
            said.add(_WISHES[word])
        elif word == _REMOTE and not remote:
            remote = next(words, "")
            if not remote:
                return None, "", set()
        elif word.startswith("--"):
            return None, "", set()
        else:
            names.append(word)
    return names, remote, said


def _bad_name(provider: str, arguments: list[str]) -> str:
    if len(arguments) > 1 or arguments[0].startswith("--"):
        problem = (
            f"attach takes one NAME or none, and the options {_REMOTE} URI, "
            f"{', '.join(_WISHES)}."
        )
    else:
        problem = (
            f"“{one_line(arguments[0], _WORD_SHOWN)}” cannot be a name: a name is 1 to "
            "64 ASCII letters, digits, dots, underscores and hyphens, and begins with "
            "a letter or digit."
        )
    return f"Nothing was attached: {problem}\n{usage(provider)}"


def _unknown(provider: str, verb: str, arguments: list[str]) -> str:
    if not verb:
        return usage(provider)
    shown = one_line(verb, _WORD_SHOWN)
    problem = f"There is no command “{shown}” here."
    if verb in ("detach", "agents", "agent") and arguments:
        problem = f"{shown} takes no more words in a chat."
    return f"Nothing was done: {problem}\n{usage(provider)}"
