"""Only a whole prompt is a command, and only where the person typed it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bridge.core.caller import HookEvent, HookInput
from bridge.core.command import (
    AgentsCommand,
    AttachCommand,
    Command,
    DetachCommand,
    UsageCommand,
    parse,
    typed_command,
    usage,
)
from bridge.core.ids import is_name
from tests.core.examples import ANY_TEXT
from tests.core.golden_text import golden
from tests.core.test_visible import hidden_characters

TYPED = HookInput(
    provider="claude",
    event=HookEvent.COMMAND,
    session_id="6720d3c6-2e01-405e-aff8-4c79d2bc7444",
    prompt="/agentworks attach bob",
    person_typed=True,
)
PREFIXES = {
    "claude": ["/agentworks", "/agentworks:agentworks"],
    "codex": [
        "/agentworks",
        "/agentworks:agentworks",
        "$agentworks",
        "$agentworks:agentworks",
        "agentworks",
    ],
    "gemini": ["/agentworks"],
    "cursor": ["/agentworks", "agentworks"],
    "droid": ["/agentworks", "agentworks"],
    "kimi": ["/agentworks", "agentworks"],
    "muse": ["/agentworks", "agentworks"],
}
FORMS = [(provider, prefix) for provider in PREFIXES for prefix in PREFIXES[provider]]
PROVIDERS = st.sampled_from(["claude", "codex", "script", "", "gemini"])
PROMPTS = st.one_of(
    ANY_TEXT,
    st.lists(
        st.sampled_from(
            ["/agentworks", "agentworks", "$agentworks", "attach", "detach", "bob"]
        )
        | ANY_TEXT,
        max_size=5,
    ).map(" ".join),
)


@pytest.mark.parametrize(("provider", "prefix"), FORMS)
def test_each_form_reaches_each_verb(provider: str, prefix: str) -> None:
    assert parse(provider, f"{prefix} attach") == AttachCommand(None)
    assert parse(provider, f" \t{prefix}  attach\tbob.x-1 \n") == AttachCommand(
        "bob.x-1"
    )
    assert parse(provider, f"{prefix} detach") == DetachCommand()
    assert parse(provider, f"{prefix} agents") == AgentsCommand()
    assert parse(provider, f"{prefix} agent") == AgentsCommand()


@pytest.mark.parametrize(("provider", "prefix"), FORMS)
def test_an_attach_takes_the_persons_wishes(provider: str, prefix: str) -> None:
    remote = "unix:///run/codex.sock"

    assert parse(
        provider, f"{prefix} attach bob --mid-turn --no-wake --native-remote {remote}"
    ) == AttachCommand("bob", remote, ("mid_turn", "no_wake"))
    assert parse(provider, f"{prefix} attach --usual") == AttachCommand(None, "", ())


@pytest.mark.parametrize(
    "words",
    ["--native-remote", "bob --yes", "--session x", "--confirm", "--mid-turn=1 bob"],
)
def test_an_option_that_is_none_attaches_nothing(words: str) -> None:
    assert isinstance(parse("claude", f"/agentworks attach {words}"), UsageCommand)


@pytest.mark.parametrize(
    ("provider", "prompt"),
    [
        ("claude", "agentworks attach bob"),
        ("claude", "$agentworks attach bob"),
        ("gemini", "agentworks attach"),
        ("claude", "please /agentworks attach bob"),
        ("claude", "/agentworks attach bob\nand then review the diff"),
        ("claude", "/agentworks attach bob\rand more"),
        ("claude", "> /agentworks attach bob"),
        ("claude", "`/agentworks attach bob`"),
        ("claude", "/agentworksattach bob"),
        ("claude", "/agentworks\u200b attach bob"),
        ("claude", "/AgentWorks attach bob"),
        ("claude", "/agentworks attach " + "x" * 400),
        ("codex", "agentworks is down"),
        ("cursor", "agentworks attach reviewer please"),
        ("muse", "agentworks is down"),
        ("agy", "agentworks attach reviewer"),
        ("codex", "agentworks attach reviewer please"),
        ("codex", "agentworks attach does not work, why?"),
        ("codex", "agentworks rocks!\nattach"),
        ("codex", ""),
    ],
)
def test_anything_else_is_not_a_command(provider: str, prompt: str) -> None:
    assert parse(provider, prompt) is None


@pytest.mark.parametrize(
    ("provider", "prompt", "name"),
    [
        ("claude", "/agentworks", "usage_claude"),
        ("codex", "agentworks", "usage_codex"),
        ("claude", "/agentworks atach bob", "usage_unknown_verb"),
        ("claude", "/agentworks attach -bob", "usage_bad_name"),
        ("claude", "/agentworks attach bob --session 1", "usage_two_names"),
        ("claude", "/agentworks detach bob", "usage_detach_name"),
    ],
)
def test_what_is_meant_for_us_and_wrong_is_answered_with_usage(
    provider: str, prompt: str, name: str
) -> None:
    command = parse(provider, prompt)

    assert isinstance(command, UsageCommand)
    assert golden(name, command.text) == command.text


@pytest.mark.parametrize(
    "word", [".", "-x", "b@d", "né", "x" * 65, "a/b", "'bob'", "bob;id", "$(id)"]
)
def test_a_word_that_is_no_name_attaches_nothing(word: str) -> None:
    command = parse("claude", f"/agentworks attach {word}")

    assert isinstance(command, UsageCommand)
    assert command.text.startswith("Nothing was attached: ")


@given(PROVIDERS, PROMPTS)
def test_every_text_has_an_answer(provider: str, prompt: str) -> None:
    command = parse(provider, prompt)

    if isinstance(command, UsageCommand):
        assert hidden_characters(command.text) == set()
    if isinstance(command, AttachCommand) and command.name is not None:
        assert is_name(command.name)


@given(PROVIDERS, PROMPTS)
def test_a_command_is_the_entire_prompt(provider: str, prompt: str) -> None:
    if parse(provider, prompt) is None:
        return

    assert len(prompt.strip().splitlines()) <= 1
    assert prompt.strip().split()[0].endswith("agentworks")


@given(PROVIDERS, PROMPTS.filter(str.strip))
def test_a_command_inside_other_text_is_none(provider: str, words: str) -> None:
    assert parse(provider, f"{words}\n/agentworks attach evil") is None
    assert parse(provider, f"/agentworks attach evil\n{words}") is None


# ---- when it counts ----------------------------------------------------------------


def read(
    hook: HookInput, host_marks_typed: bool = True, is_nested: bool = False
) -> Command | None:
    return typed_command(hook, host_marks_typed=host_marks_typed, is_nested=is_nested)


def test_a_typed_command_counts() -> None:
    assert read(TYPED) == AttachCommand("bob")


def test_text_that_a_peer_wrote_does_not_count() -> None:
    by_a_peer = replace(TYPED, event=HookEvent.PROMPT, person_typed=False)

    assert read(by_a_peer) is None
    assert read(by_a_peer, host_marks_typed=False) == AttachCommand("bob")


def test_a_subagent_types_nothing() -> None:
    assert read(replace(TYPED, is_subagent=True)) is None


def test_a_provider_below_another_provider_attaches_nothing() -> None:
    answer = read(TYPED, is_nested=True)

    assert isinstance(answer, UsageCommand)
    assert golden("refusal_nested", answer.text) == answer.text
    assert read(replace(TYPED, prompt="hello"), is_nested=True) is None


def test_the_text_of_an_offer_is_not_typed() -> None:
    command = typed_command(
        TYPED, host_marks_typed=True, is_nested=False, offered={TYPED.prompt}
    )

    assert command is None


@pytest.mark.parametrize(
    "event", sorted(set(HookEvent) - {HookEvent.PROMPT, HookEvent.COMMAND})
)
def test_no_other_event_carries_a_command(event: HookEvent) -> None:
    assert read(replace(TYPED, event=event)) is None


def test_usage_is_three_lines() -> None:
    assert len(usage("claude").splitlines()) == 3
