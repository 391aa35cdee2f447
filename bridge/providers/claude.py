"""Claude Code: what its hooks say and print, and which process it is.

Owns every fact about Claude Code that the rest of the bridge needs to know.
Promises pure functions of their input: nothing here reads a file, a process or a
clock. Observed with 2.1.197 and 2.1.332, offline; where they differ it is said.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import UNSET
from msgspec.structs import replace

from bridge.core.caller import HookEvent, HookInput, ProcessFacts
from bridge.core.render import Budget, Print
from bridge.providers import host_json, programs

NAME = "claude"
TITLE = "Claude Code"
ROUTES: tuple[str, ...] = ("claude_session", "claude_channel", "hook")
OFFERS_AT: frozenset[HookEvent] = frozenset(
    {HookEvent.PROMPT, HookEvent.TOOL_ENDED, HookEvent.TURN_ENDED}
)
HAS_ONE_CHAT = True
HAS_MANY_CHATS = False
IS_IN_PROCESS = False
TRIED = "Claude Code 2.1.332 and 2.1.197, offline"
# Past 10,000 UTF-16 units the host keeps a 2 KB preview and writes the whole text
# to a file that everyone can read: the closing fence would be lost.
BUDGET = Budget("utf16", 9_500)
# Past 50,000 UTF-16 units, or 25,000 of the model's tokens, a tool's result goes
# to a file instead; some scripts need more than one token for a character.
RESULT_BUDGET = Budget("utf16", 20_000)

# Set in its shell tool, and neither in its hooks nor in its MCP children.
SHELL_MARKS = frozenset({"CLAUDE_CODE_EXECPATH"})
# Set in something that Claude Code starts.
MARKS = SHELL_MARKS | {
    "CLAUDECODE",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_SESSION_ID",
}

_COMMAND_NAMES = frozenset({"agentworks", "agentworks:agentworks"})

_EVENTS: Mapping[str, HookEvent] = {
    "SessionStart": HookEvent.SESSION_STARTED,
    "UserPromptSubmit": HookEvent.PROMPT,
    "UserPromptExpansion": HookEvent.COMMAND,
    "PostToolUse": HookEvent.TOOL_ENDED,
    "Stop": HookEvent.TURN_ENDED,
    "SessionEnd": HookEvent.SESSION_ENDED,
}
_HOST_WORDS = {event: word for word, event in _EVENTS.items()}

# The last version that is known to have no UserPromptExpansion, and the first
# whose Stop hook takes additionalContext (its own release notes).
_LAST_WITHOUT_EXPANSION = (2, 1, 112)
_FIRST_WITH_STOP_CONTEXT = (2, 1, 163)
_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})\.(\d{1,6})")


def read_hook(event_word: str, stdin: bytes) -> HookInput:
    """What one hook said; `event_word` is the event that its line names.

    SubagentStop, StopFailure and events we do not know are OTHER, and so is the
    expansion of a command that is not ours. The person's command comes as COMMAND
    with `prompt` as `/agentworks <what was typed after it>`. Raises Invalid.
    """
    said = host_json.read(NAME, event_word, stdin)
    # Cursor runs Claude Code's hooks too; for it there are hooks of its own.
    if said.cursor_version is not UNSET:
        raise host_json.invalid(NAME, "was run by another program")
    # SubagentStop carries the parent's session id: never take it for a turn's end.
    is_subagent = said.agent_id is not None or event_word == "SubagentStop"
    heard = host_json.to_input(NAME, _EVENTS, said, is_subagent)
    if heard.event is not HookEvent.COMMAND:
        return heard
    if not _is_our_command(said):
        return replace(heard, event=HookEvent.OTHER)
    prompt = f"/agentworks {said.command_args.strip()}".strip()
    return replace(heard, prompt=prompt, person_typed=not is_subagent)


def answers_command_at(version: str) -> HookEvent:
    """The event at which a typed command is answered, by the host's version.

    COMMAND, which fires for typed text only; PROMPT just for a version that is
    known to have no such event. An unknown version counts as a new one: at PROMPT
    a text from another session could pass for a typed command.
    """
    known = _parsed(version)
    if known is not None and known <= _LAST_WITHOUT_EXPANSION:
        return HookEvent.PROMPT
    return HookEvent.COMMAND


def print_offer(event: HookEvent, text: str, version: str = "") -> Print:
    """An offer as context of its own; the text reaches the model once and whole.

    `decision: block` would show it twice and call it a standing instruction, so
    it is only used at a turn's end, for a version whose Stop takes no
    additionalContext. Raises ValueError at an event that is not in OFFERS_AT.
    """
    if event not in OFFERS_AT:
        raise ValueError(f"no offer is printed at {event}")
    known = _parsed(version)
    is_end = event is HookEvent.TURN_ENDED
    if is_end and known is not None and known < _FIRST_WITH_STOP_CONTEXT:
        return host_json.printed({"decision": "block", "reason": text})
    return host_json.printed(
        {
            "hookSpecificOutput": {
                "hookEventName": _HOST_WORDS[event],
                "additionalContext": text,
            }
        }
    )


def print_block(event: HookEvent, text: str) -> Print:
    """The answer to a typed command; the person sees it, the model nothing.

    `suppressOriginalPrompt` drops the line that repeats the prompt; 2.1.197 takes
    it at UserPromptSubmit only and ignores it elsewhere. Raises ValueError at an
    event that no prompt has.
    """
    if event not in (HookEvent.COMMAND, HookEvent.PROMPT):
        raise ValueError(f"no command is answered at {event}")
    return host_json.printed(
        {
            "decision": "block",
            "reason": text,
            "hookSpecificOutput": {
                "hookEventName": _HOST_WORDS[event],
                "suppressOriginalPrompt": True,
            },
        }
    )


def print_person_line(event: HookEvent, text: str) -> Print | None:
    """A line that only the person sees, or None where the host shows none."""
    if event is not HookEvent.SESSION_STARTED:
        return None
    return host_json.printed({"systemMessage": text})


# What the command's hook prints by itself when nobody answers it. It must hold for
# every reason of silence, and never change: it is part of the installed line.
FALLBACK_BLOCK = print_block(
    HookEvent.COMMAND,
    "The AgentWorks bridge did not answer, so this command was not carried out."
    " If the bridge is not running, start it with: agentworks up",
).text.decode()


def is_program(facts: ProcessFacts) -> bool:
    """Is this a Claude Code process, by its program and how it was started?

    The native binary (`claude`, `claude.exe` as npm names it, or a file of
    `claude/versions/`) whose argv[0] says so too; the script of the npm packages
    run by node or bun (argv[1], or the title `claude` that it gives itself). With
    an unreadable program both kernel name and argv[0] must be `claude`.
    """
    if not facts.program:
        return facts.name == NAME and programs.argument_name(facts, 0) == NAME
    if programs.is_script_runner(facts):
        return _runs_our_script(facts)
    names = {"claude", "claude.exe"}
    program = programs.program_name(facts)
    is_version_file = _VERSION.match(program) is not None and (
        programs.program_folder(facts).endswith("/claude/versions")
    )
    if program not in names and not is_version_file:
        return False
    return programs.argument_name(facts, 0) in names | {program, ""}


def thread_of_call(meta: Mapping[str, object]) -> str | None:
    """None: a tool call says nothing of its session (the process is bound to one)."""
    return None


def session_of_environment(environment: Mapping[str, str]) -> str | None:
    """The chat that this shell was started by, or None where none is named.

    A shell that outlives a /clear names the chat before it, so that this is to be
    compared with what the process says of itself. Raises Refused for nonsense.
    """
    return host_json.session_named(environment, "CLAUDE_CODE_SESSION_ID", TITLE)


def _is_our_command(said: host_json.Said) -> bool:
    """Ours, and the whole prompt: not a command named in the middle of a text."""
    if said.command_name not in _COMMAND_NAMES:
        return False
    whole = said.prompt if isinstance(said.prompt, str) else f"/{said.command_name}"
    return whole.lstrip().startswith(f"/{said.command_name}")


def _runs_our_script(facts: ProcessFacts) -> bool:
    if programs.argument_name(facts, 0) == NAME:
        return True
    script = facts.arguments[1] if len(facts.arguments) > 1 else ""
    scripts = (
        "/@anthropic-ai/claude-code/cli.js",
        "/@anthropic-ai/claude-agent-sdk/cli.js",
    )
    return script.endswith(scripts) or script.rpartition("/")[2] == NAME


def _parsed(version: str) -> tuple[int, int, int] | None:
    match = _VERSION.match(version)
    if match is None:
        return None
    major, minor, patch = (int(part) for part in match.groups())
    return major, minor, patch
