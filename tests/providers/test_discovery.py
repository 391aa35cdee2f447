"""What stands above a process, told from invented trees of processes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from bridge.core.caller import (
    Ancestry,
    Evidence,
    HookCaller,
    Nobody,
    OwnSession,
    Person,
    ProcessFacts,
    call_caller,
    hook_caller,
)
from bridge.errors import Refused
from bridge.providers import discovery, process
from bridge.providers.discovery import evidence_of, live_sessions
from bridge.providers.known import PROVIDERS, provider_named
from tests.providers.captured import captured
from tests.providers.captured import process as program

CLAUDE = ("/opt/claude", "claude")
CODEX = ("/opt/codex", "codex", "app-server")
SANDBOX = ("/opt/codex", "codex-linux-sandbox", "--command-cwd", "/")
ASK = ("/home/user/state/bin/ask", "ask", "hook")
SHELL = ("/usr/bin/dash", "/bin/sh", "-c", "ask hook")
BASH = ("/usr/bin/bash", "bash")
INIT = ("/sbin/init", "init")
CLAUDE_SHELL = {
    "CLAUDECODE": "1",
    "CLAUDE_CODE_SESSION_ID": "s-1",
    "CLAUDE_CODE_EXECPATH": "/opt/claude",
}
CLAUDE_HOOK = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s-1"}
CODEX_SHELL = captured("codex/shell_environment")
Lines = tuple[str, ...]


class Tree:
    """A chain of processes, the client first, and their environments by place."""

    def __init__(self, *lines: Lines, **environments: Mapping[str, str] | None) -> None:
        chain = [
            replace(program(*line, pid=100 - place), start=100 - place)
            for place, line in enumerate(lines)
        ]
        self.ancestry = Ancestry(tuple(chain), whole=True)
        self._environments = environments

    def environment_of(self, pid: int) -> Mapping[str, str] | None:
        return self._environments.get(f"at_{100 - pid}", {})

    def evidence(
        self, script_at: int | None = None, looks_above: bool = True
    ) -> Evidence:
        def is_script(facts: ProcessFacts) -> bool:
            return script_at is not None and facts.pid == 100 - script_at

        return evidence_of(
            self.ancestry, self.environment_of, is_script, looks_above=looks_above
        )


# ---- the nearest provider -------------------------------------------------------


def places(tree: Tree) -> list[tuple[str, int]]:
    """Every provider's program above the caller, the nearest first."""
    return [(each.provider, each.at) for each in tree.evidence().found]


def test_the_first_provider_upward_counts() -> None:
    tree = Tree(ASK, SHELL, CODEX, BASH, CLAUDE, INIT)

    assert places(tree) == [("codex", 2), ("claude", 4)]


def test_a_plain_terminal_has_no_provider() -> None:
    assert places(Tree(BASH, INIT)) == []


def test_a_provider_is_seen_also_in_a_chain_with_a_gap() -> None:
    tree = Tree(BASH, CLAUDE)
    tree.ancestry = replace(tree.ancestry, whole=False, reason="gone")

    assert places(tree) == [("claude", 1)]


def test_a_sandboxed_command_belongs_to_codex_and_not_to_its_sandbox() -> None:
    tree = Tree(BASH, SANDBOX, ("/opt/bwrap", "bwrap"), SANDBOX, CODEX, INIT)

    assert places(tree) == [("codex", 4)]


def test_without_looking_above_a_hook_is_one_and_counts_as_nested() -> None:
    tree = Tree(ASK, SHELL, CLAUDE, BASH, CODEX, INIT, at_0=CLAUDE_HOOK)
    read: list[int] = []

    def environment_of(pid: int) -> Mapping[str, str] | None:
        read.append(pid)
        return tree.environment_of(pid)

    evidence = evidence_of(
        tree.ancestry, environment_of, lambda _: False, looks_above=False
    )
    caller = hook_caller("claude", evidence)

    assert isinstance(caller, HookCaller)
    assert caller.is_nested
    assert read == [100, 99, 98]


def test_without_looking_above_a_shell_mark_below_still_refuses() -> None:
    tree = Tree(ASK, BASH, CODEX, INIT, at_0=CODEX_SHELL)

    caller = hook_caller("codex", tree.evidence(looks_above=False))

    assert isinstance(caller, Nobody)


# ---- what core/caller makes of it --------------------------------------------------


@pytest.mark.parametrize("lines", [(ASK, CLAUDE), (ASK, SHELL, CLAUDE)])
def test_a_hook_of_claude_is_one(lines: tuple[Lines, ...]) -> None:
    tree = Tree(
        *lines, INIT, at_0=CLAUDE_HOOK, at_1=CLAUDE_HOOK if len(lines) > 2 else {}
    )

    caller = hook_caller("claude", tree.evidence())

    assert isinstance(caller, HookCaller)
    assert caller.process is tree.ancestry.chain[len(lines) - 1]
    assert not caller.is_nested


@pytest.mark.parametrize(
    ("provider", "host", "environment"),
    [("claude", CLAUDE, CLAUDE_SHELL), ("codex", CODEX, CODEX_SHELL)],
)
def test_a_shell_of_an_agent_is_no_hook(
    provider: str, host: Lines, environment: Mapping[str, str]
) -> None:
    tree = Tree(ASK, host, INIT, at_0=environment)

    assert isinstance(hook_caller(provider, tree.evidence()), Nobody)


def test_a_hook_of_one_provider_does_not_speak_for_another() -> None:
    tree = Tree(ASK, CLAUDE, INIT, at_0=CLAUDE_HOOK)

    assert isinstance(hook_caller("codex", tree.evidence()), Nobody)


def test_marks_that_a_nested_program_was_started_with_are_not_its_own() -> None:
    """Codex below another Codex's shell: its hooks inherit that shell's marks."""
    outer = CODEX_SHELL
    tree = Tree(ASK, CODEX, BASH, CODEX, INIT, at_0=outer, at_1=outer, at_2=outer)

    caller = hook_caller("codex", tree.evidence())

    assert isinstance(caller, HookCaller)
    assert caller.is_nested


def test_a_shell_of_a_nested_program_is_still_a_shell() -> None:
    inner = CODEX_SHELL | {"CODEX_THREAD_ID": "inner", "CODEX_SESSION_ID": "inner"}
    tree = Tree(ASK, CODEX, BASH, CODEX, INIT, at_0=inner, at_1=CODEX_SHELL)

    assert isinstance(hook_caller("codex", tree.evidence()), Nobody)


def test_an_environment_that_cannot_be_read_grants_nothing() -> None:
    tree = Tree(ASK, CLAUDE, INIT, at_0=None)

    assert tree.evidence().marks[0] is None
    assert isinstance(hook_caller("claude", tree.evidence()), Nobody)
    assert isinstance(call_caller(tree.evidence()), Nobody)


def test_a_command_below_codex_has_the_session_that_its_shell_names() -> None:
    tree = Tree(BASH, SANDBOX, CODEX, INIT, at_0=CODEX_SHELL)

    caller = call_caller(tree.evidence())

    assert isinstance(caller, OwnSession)
    assert caller.session_id == CODEX_SHELL["CODEX_THREAD_ID"]


def test_a_command_of_a_subagent_has_no_session() -> None:
    environment = captured("codex/shell_environment_subagent")
    tree = Tree(BASH, CODEX, INIT, at_0=environment)

    assert tree.evidence().session_id == ""
    assert isinstance(call_caller(tree.evidence()), Nobody)


def test_a_command_that_names_another_chat_than_its_shell_has_no_session() -> None:
    forged = dict.fromkeys(
        ("CODEX_SESSION_ID", "CODEX_THREAD_ID"), "0000002d-0000-4000-8000-000000000000"
    )
    tree = Tree(BASH, BASH, CODEX, INIT, at_0=CODEX_SHELL | forged, at_1=CODEX_SHELL)

    assert tree.evidence().session_id == ""
    assert isinstance(call_caller(tree.evidence()), Nobody)


def test_a_command_keeps_its_session_below_a_cleaned_shell() -> None:
    tree = Tree(BASH, BASH, CODEX, INIT, at_0=CODEX_SHELL, at_1={})

    assert tree.evidence().session_id == CODEX_SHELL["CODEX_THREAD_ID"]


def test_a_plain_terminal_is_the_persons() -> None:
    assert isinstance(call_caller(Tree(BASH, INIT).evidence()), Person)


def test_a_terminal_that_an_agent_left_behind_is_not() -> None:
    tree = Tree(BASH, ("/usr/bin/tmux", "tmux"), INIT, at_0=CLAUDE_HOOK)

    assert isinstance(call_caller(tree.evidence()), Nobody)


def test_an_attached_process_is_a_script_at_any_height() -> None:
    tree = Tree(ASK, BASH, ("/usr/bin/python3", "python3", "job.py"), INIT)

    caller = hook_caller("script", tree.evidence(script_at=2))

    assert isinstance(caller, HookCaller)
    assert caller.process is tree.ancestry.chain[2]
    assert isinstance(hook_caller("script", tree.evidence()), Nobody)


def test_every_mark_is_one_that_processes_are_read_for() -> None:
    for provider in PROVIDERS.values():
        assert provider.SHELL_MARKS <= provider.MARKS <= process.MARKS


def test_an_unknown_provider_is_refused_with_the_known_ones() -> None:
    for name, provider in PROVIDERS.items():
        assert provider_named(name) is provider
        assert name == provider.NAME
    with pytest.raises(Refused) as refused:
        provider_named("no such")

    assert ", ".join(PROVIDERS) in refused.value.hint


# ---- live sessions ---------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".claude" / "sessions").mkdir(parents=True, mode=0o700)
    return tmp_path


def register(home: Path, facts: ProcessFacts, session_id: str) -> None:
    said = captured("claude/registration_2.1.332") | {
        "pid": facts.pid,
        "procStart": str(facts.start),
        "sessionId": session_id,
    }
    path = home / ".claude" / "sessions" / f"{facts.pid}.json"
    path.write_text(json.dumps(said))
    path.chmod(0o600)


def test_live_sessions_are_those_whose_processes_say_so(home: Path) -> None:
    processes = {
        30: program(*CLAUDE, pid=30),
        20: program(*CLAUDE, pid=20),
        10: program(*BASH, pid=10),
        40: program(*CLAUDE, pid=40),
    }
    for pid in (10, 20, 30):
        register(home, processes[pid], f"session-{pid}")

    found = live_sessions(
        [30, 40, 20, 10, 20, 99], processes.get, lambda _: {"HOME": str(home)}
    )

    assert [(each.process.pid, each.session_id) for each in found] == [
        (20, "session-20"),
        (30, "session-30"),
    ]
    assert found[0].provider == "claude"
    assert found[0].version == "2.1.332"
    assert found[0].folder == "/home/user/project"


def test_a_dead_process_left_no_session(home: Path) -> None:
    killed = program(*CLAUDE, pid=30)
    register(home, killed, "session-30")
    reused = replace(killed, start=killed.start + 1)

    assert not live_sessions([30], lambda _: reused, lambda _: {"HOME": str(home)})
    assert discovery.live_session(killed, lambda _: None) is None


# ---- Cursor, whose app has the person's terminals too -----------------------------

CURSOR_APP = ("/usr/share/cursor/cursor", "/usr/share/cursor/cursor", "--type=utility")
_CLI = "/home/user/.local/share/cursor-agent/versions/2026.09.18"
CURSOR_CLI = (f"{_CLI}/node", "agent", f"{_CLI}/index.js")
CURSOR_SHELL = {"CURSOR_AGENT": "1", "CURSOR_CONVERSATION_ID": "c-1"}


def test_a_hook_of_cursors_app_speaks_for_its_process() -> None:
    tree = Tree(ASK, SHELL, CURSOR_APP, CURSOR_APP, INIT)

    caller = hook_caller("cursor", tree.evidence())

    assert isinstance(caller, HookCaller)
    assert not caller.is_nested


def test_a_shell_of_a_cursor_agent_is_no_hook() -> None:
    tree = Tree(ASK, SHELL, CURSOR_APP, INIT, at_0=CURSOR_SHELL, at_1=CURSOR_SHELL)

    assert isinstance(hook_caller("cursor", tree.evidence()), Nobody)


@pytest.mark.parametrize("environment", [{}, CURSOR_SHELL])
def test_below_cursors_app_nobody_is_taken_for_a_chat_or_the_person(
    environment: Mapping[str, str],
) -> None:
    caller = call_caller(Tree(BASH, CURSOR_APP, INIT, at_0=environment).evidence())

    assert isinstance(caller, Nobody)
    assert caller.code == "no_session"
    assert "terminal outside of the app" in caller.hint


def test_an_agent_in_cursors_terminal_is_the_persons_own() -> None:
    tree = Tree(ASK, SHELL, CLAUDE, BASH, CURSOR_APP, INIT)

    caller = hook_caller("claude", tree.evidence())

    assert isinstance(caller, HookCaller)
    assert not caller.is_nested


def test_an_agent_that_a_cursor_agent_started_is_nested() -> None:
    tree = Tree(ASK, SHELL, CLAUDE, BASH, CURSOR_APP, INIT, at_2=CURSOR_SHELL)

    caller = hook_caller("claude", tree.evidence())

    assert isinstance(caller, HookCaller)
    assert caller.is_nested


def test_a_command_of_cursors_cli_names_its_conversation() -> None:
    caller = call_caller(Tree(BASH, CURSOR_CLI, INIT, at_0=CURSOR_SHELL).evidence())

    assert isinstance(caller, OwnSession)
    assert (caller.provider, caller.session_id) == ("cursor", "c-1")


def test_this_test_is_no_chat() -> None:
    assert live_sessions([os.getpid()], process.facts_of, process.marks_of) == []
