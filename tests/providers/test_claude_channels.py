"""What is pushed goes only where the program was started to take it."""

from __future__ import annotations

import pytest

from bridge.providers.claude_channels import FLAG, takes_ours


@pytest.mark.parametrize(
    "words",
    [
        (FLAG, "server:agentworks-live"),
        (FLAG, "server:other", "plugin:agentworks@agentworks", "-p"),
        ("--channels", "plugin:agentworks@agentworks"),
        ("--model", "x", f"{FLAG}=server:agentworks-live"),
    ],
)
def test_a_program_that_was_started_to_take_our_channel_takes_it(
    words: tuple[str, ...],
) -> None:
    assert takes_ours(("claude", *words))


@pytest.mark.parametrize(
    "words",
    [
        (),
        (FLAG,),
        (FLAG, "server:other"),
        ("server:agentworks-live",),
        (FLAG, "server:other", "-p", "server:agentworks-live"),
        ("--append-system-prompt", "plugin:agentworks@agentworks"),
    ],
)
def test_any_other_program_is_pushed_nothing(words: tuple[str, ...]) -> None:
    assert not takes_ours(("claude", *words))
