"""Who is asking follows from the kernel's facts; what cannot be read grants nothing."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bridge.core.caller import (
    Ancestry,
    ChildCaller,
    Evidence,
    HookCaller,
    Nobody,
    OwnSession,
    Person,
    ProcessFacts,
    ProviderFound,
    call_caller,
    child_caller,
    hook_caller,
)

THREAD = "01a227d3-848f-7b23-90c6-83ace1170043"
CHAT = frozenset({"COPILOT_AGENT_SESSION_ID"})
CODEX_SHELL = frozenset({"CODEX_SESSION_ID", "CODEX_THREAD_ID"})
CLAUDE_SHELL = frozenset({"CLAUDECODE", "CLAUDE_CODE_SESSION_ID"})
SHELL_MARKS = {"codex": frozenset({"CODEX_THREAD_ID"})}
PROVIDER_OF = {"claude": "claude", "codex": "codex", "worker": "script"}
NAMES = ("ask", "pipe", "agentworks", "sh", "bash", "tmux", "systemd", *PROVIDER_OF)


def evidence(
    *names: str,
    marks: Mapping[int, frozenset[str] | None] | None = None,
    whole: bool = True,
    session_id: str = "",
) -> Evidence:
    """A chain of processes by name, client first; `sh -c` is a shell with -c."""
    chain = tuple(
        ProcessFacts(
            pid=1000 - place,
            parent_pid=999 - place,
            start=5000 - place,
            name=name.split()[0],
            uid=1000,
            arguments=tuple(name.split()) + ("command",) * ("-" in name),
        )
        for place, name in enumerate(names)
    )
    found = tuple(
        ProviderFound(
            PROVIDER_OF[name],
            place,
            SHELL_MARKS.get(name, frozenset()),
            has_many_chats=PROVIDER_OF[name] == "codex",
        )
        for place, name in enumerate(names)
        if name in PROVIDER_OF
    )
    known = {place: frozenset[str]() for place in range(len(names))}
    return Evidence(
        Ancestry(chain, whole, "" if whole else "a parent is missing"),
        found,
        tuple({**known, **(marks or {})}[place] for place in range(len(names))),
        session_id,
    )


# ---- hooks and MCP children ----------------------------------------------------


@pytest.mark.parametrize("between", [(), ("sh -c",), ("bash -lc",)])
@pytest.mark.parametrize("provider", ["claude", "codex"])
def test_a_hook_speaks_for_the_program_that_started_it(
    provider: str, between: tuple[str, ...]
) -> None:
    facts = evidence("ask", *between, provider, "bash", "systemd")
    caller = hook_caller(provider, facts)

    place = len(between) + 1
    assert caller == HookCaller(provider, facts.ancestry.chain[place], is_nested=False)


def test_an_mcp_child_speaks_for_the_program_that_started_it() -> None:
    facts = evidence("pipe", "codex", "systemd")

    assert child_caller("codex", facts) == ChildCaller(
        "codex", facts.ancestry.chain[1], is_nested=False
    )


@pytest.mark.parametrize(
    ("provider", "names"),
    [
        ("claude", ("ask", "bash", "systemd")),
        ("claude", ("ask", "codex", "systemd")),
        ("claude", ("ask", "codex", "sh -c", "claude")),
        ("claude", ("ask", "bash", "claude")),
        ("claude", ("ask", "sh script.sh", "claude")),
        ("claude", ("ask", "tmux -c", "claude")),
        ("claude", ("ask", "sh -c", "sh -c", "claude")),
        ("claude", ("ask",)),
        ("script", ("ask", "claude", "worker")),
    ],
)
def test_whoever_is_not_the_programs_own_child_gets_nothing(
    provider: str, names: tuple[str, ...]
) -> None:
    for decide in (hook_caller, child_caller):
        caller = decide(provider, evidence(*names))
        assert isinstance(caller, Nobody)
        assert caller.code == "not_its_host"


def test_a_chats_shell_in_the_shared_daemon_is_no_hook() -> None:
    for place in (0, 1):
        facts = evidence("ask", "bash -lc", "codex", marks={place: CODEX_SHELL})
        assert isinstance(hook_caller("codex", facts), Nobody)


@pytest.mark.parametrize("place", [0, 1])
def test_what_shells_and_children_have_alike_is_in_no_hook(place: int) -> None:
    """Copilot's chats share a process; each child says whose it is."""
    facts = evidence("ask", "bash -c", "codex", marks={place: CHAT}, session_id="one")
    (found,) = facts.found
    facts = replace(facts, found=(replace(found, child_marks=CHAT),))

    child = child_caller("codex", facts)

    assert isinstance(hook_caller("codex", facts), Nobody)
    assert isinstance(child, ChildCaller)
    assert child.session_id == "one"


def test_a_hook_whose_environment_cannot_be_read_gets_nothing() -> None:
    facts = evidence("ask", "codex", marks={0: None})

    assert isinstance(hook_caller("codex", facts), Nobody)
    assert isinstance(
        hook_caller("codex", Evidence(facts.ancestry, facts.found)), Nobody
    )


def test_a_claude_hook_may_carry_claudes_own_mark() -> None:
    facts = evidence("ask", "claude", "bash", marks={0: CLAUDE_SHELL})
    caller = hook_caller("claude", facts)

    assert isinstance(caller, HookCaller)
    assert not caller.is_nested


def test_a_script_asks_from_any_depth_below_it() -> None:
    caller = hook_caller("script", evidence("ask", "python3", "bash", "worker", "bash"))

    assert isinstance(caller, HookCaller)
    assert caller.process.name == "worker"


@pytest.mark.parametrize(
    ("facts", "nested"),
    [
        (evidence("ask", "codex", "codex", "bash"), False),
        (evidence("ask", "claude", "bash", "codex"), True),
        (evidence("ask", "claude", "codex"), True),
        (evidence("ask", "claude", "bash", "claude"), True),
        (evidence("ask", "claude", "bash", marks={1: CLAUDE_SHELL}), True),
        (evidence("ask", "claude", "bash", marks={2: CODEX_SHELL}), True),
        (evidence("ask", "claude", "bash", marks={1: None}), True),
        (evidence("ask", "claude", "bash", "login", marks={3: None}), False),
    ],
)
def test_a_program_that_an_agent_started_is_nested(
    facts: Evidence, nested: bool
) -> None:
    caller = hook_caller(facts.found[0].provider, facts)

    assert isinstance(caller, HookCaller)
    assert caller.is_nested is nested


def test_a_program_that_leaves_no_mark_below_itself_may_be_its_agents() -> None:
    """The shell that an agent starts a program with often becomes that program."""
    facts = evidence("ask", "codex", "codex", "bash")
    found = tuple(replace(each, is_unmarked=True) for each in facts.found)
    caller = hook_caller("codex", replace(facts, found=found))
    alone = hook_caller("codex", replace(facts, found=found[:1]))

    assert isinstance(caller, HookCaller)
    assert caller.is_nested
    assert isinstance(alone, HookCaller)
    assert not alone.is_nested


def test_an_editor_above_an_agent_nests_nothing() -> None:
    facts = evidence("ask", "claude", "bash", "codex")
    editor = replace(facts.found[1], is_editor=True)
    caller = hook_caller("claude", replace(facts, found=(facts.found[0], editor)))

    assert isinstance(caller, HookCaller)
    assert not caller.is_nested


def test_a_program_whose_hooks_run_inside_of_it_speaks_for_itself() -> None:
    facts = evidence("codex", "bash")
    inside = replace(facts.found[0], is_in_process=True)

    assert isinstance(hook_caller("codex", facts), Nobody)
    assert isinstance(hook_caller("codex", replace(facts, found=(inside,))), HookCaller)


# ---- commands ----------------------------------------------------


def test_a_command_below_an_editor_has_no_chat_of_its_own() -> None:
    facts = evidence("agentworks", "bash", "claude", "bash")
    editor = replace(facts.found[0], is_editor=True)
    caller = call_caller(replace(facts, found=(editor,)))

    assert isinstance(caller, Nobody)
    assert caller.code == "no_session"


def test_a_whole_chain_without_provider_or_mark_is_the_person() -> None:
    caller = call_caller(evidence("agentworks", "bash", "tmux", "systemd"))

    assert caller == Person("agentworks 1000 below bash 999 below tmux 998")


@pytest.mark.parametrize("provider", ["claude", "codex"])
def test_a_command_below_a_provider_is_its_own_session(provider: str) -> None:
    facts = evidence("agentworks", "bash", provider, "bash", session_id=THREAD)

    assert call_caller(facts) == OwnSession(provider, facts.ancestry.chain[2], THREAD)


def test_a_command_below_a_script_is_known_by_its_process_alone() -> None:
    facts = evidence("agentworks", "worker", "bash")

    assert call_caller(facts) == OwnSession("script", facts.ancestry.chain[1], "")


def test_a_chat_of_a_shared_process_is_never_guessed() -> None:
    caller = call_caller(evidence("agentworks", "bash", "codex"))

    assert isinstance(caller, Nobody)
    assert caller.code == "no_session"


def test_the_nearest_provider_is_the_callers_own() -> None:
    facts = evidence("agentworks", "claude", "bash", "codex", marks={0: CLAUDE_SHELL})
    caller = call_caller(facts)

    assert isinstance(caller, OwnSession)
    assert caller.provider == "claude"


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_mark_without_its_program_is_never_the_person(place: int) -> None:
    facts = evidence("agentworks", "bash", "systemd", marks={place: CODEX_SHELL})
    caller = call_caller(facts)

    assert isinstance(caller, Nobody)
    assert caller.code == "detached_from_agent"
    assert "CODEX_SESSION_ID, CODEX_THREAD_ID" in caller.reason


def test_parents_of_another_user_may_keep_their_environment() -> None:
    facts = evidence("agentworks", "bash", "sshd", marks={2: None})

    assert isinstance(call_caller(facts), Person)


@pytest.mark.parametrize(
    "facts",
    [
        evidence("agentworks", "bash", whole=False),
        evidence("agentworks", "bash", "claude", whole=False),
        evidence("agentworks", "bash", marks={0: None}),
        evidence("agentworks", "bash", "codex", marks={0: None}),
        Evidence(Ancestry((), whole=True)),
    ],
)
def test_an_unreadable_caller_is_granted_nothing(facts: Evidence) -> None:
    caller = call_caller(facts)

    assert isinstance(caller, Nobody)
    assert caller.code == "caller_unreadable"
    assert caller.reason
    assert caller.hint


# ---- for every chain ----------------------------------------------------

NO_MARKS = frozenset[str]()
ANY_MARKS = st.sampled_from([None, NO_MARKS, NO_MARKS, CODEX_SHELL, CLAUDE_SHELL])


@st.composite
def any_evidence(draw: st.DrawFn) -> Evidence:
    """Any chain with any marks, readable or not."""
    names = draw(st.lists(st.sampled_from([*NAMES, "sh -c", "bash -lc"]), max_size=6))
    marks = {place: draw(ANY_MARKS) for place in range(len(names))}
    return evidence(*names, marks=marks, whole=draw(st.booleans()))


@given(any_evidence())
def test_the_person_is_only_who_has_a_whole_clean_chain(facts: Evidence) -> None:
    caller = call_caller(facts)

    if isinstance(caller, Person):
        assert facts.ancestry.whole
        assert not facts.found
        assert not any(facts.marks)


@given(any_evidence())
def test_own_session_is_the_nearest_provider(facts: Evidence) -> None:
    caller = call_caller(facts)

    if isinstance(caller, OwnSession):
        assert facts.ancestry.whole
        assert caller.process == facts.ancestry.chain[facts.found[0].at]


@given(any_evidence(), st.sampled_from(["claude", "codex", "script", "other"]))
def test_hooks_and_children_are_decided_alike(facts: Evidence, provider: str) -> None:
    hook, child = hook_caller(provider, facts), child_caller(provider, facts)

    assert isinstance(hook, Nobody) == isinstance(child, Nobody)
    if isinstance(hook, HookCaller):
        assert facts.ancestry.whole
        assert facts.found[0].provider == provider
