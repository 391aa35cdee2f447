"""What attaches a real Codex chat, what does not, and what is written for it."""

from __future__ import annotations

import pytest

from tests.real_clients.codex_chats import (
    NO_SANDBOX,
    attach,
    install,
    open_talk,
    shell,
)
from tests.real_clients.house import House
from tests.real_clients.offers import bodies_in
from tests.real_clients.rig.codex import BYPASS_HOOK_TRUST, CodexRig

pytestmark = [pytest.mark.real_client, pytest.mark.slow]

TYPED = [
    " /agentworks attach carol",
    "$agentworks attach carol",
    "agentworks attach carol",
]


@pytest.mark.parametrize("typed", TYPED)
async def test_attach_typed_in_a_chat_attaches_and_never_reaches_the_model(
    codex: CodexRig, house: House, typed: str
) -> None:
    await install(house)
    chat = await open_talk(codex)

    await chat.command(typed, "Attached as carol.")
    row = await house.row("carol")
    await chat.turn("hello")

    assert (row["state"], row["provider"], row["route"]) == (
        "attached",
        "codex",
        "hook",
    )
    assert chat.thread_id.endswith(row["session"])
    assert "attach carol" not in str([request.body for request in codex.model.requests])


@pytest.mark.parametrize("typed", TYPED)
async def test_attach_given_to_exec_attaches_and_never_reaches_the_model(
    codex: CodexRig, house: House, typed: str
) -> None:
    await install(house)

    run = await codex.run(typed)
    row = await house.until_row("carol", state="offline")

    assert codex.model.requests == []
    assert run.thread_id.endswith(row["session"])


async def test_detach_and_agents_are_answered_in_the_chat_too(
    codex: CodexRig, house: House
) -> None:
    await install(house)
    chat = await open_talk(codex)

    await chat.command("$agentworks agents", "No chat of this computer is attached.")
    await chat.command("$agentworks attach carol", "Attached as carol.")
    await chat.command("$agentworks detach", "Detached carol")

    assert codex.model.requests == []
    assert await house.row("carol") == {}


async def test_attach_without_a_name_gives_the_chat_one_that_it_keeps(
    codex: CodexRig, house: House
) -> None:
    await install(house)
    chat = await open_talk(codex)

    await chat.command("$agentworks attach", "Attached as codex-")
    (first,) = (await house.person("agents"))["agents"]
    await chat.command(" /agentworks attach", f"Attached again as {first['name']}")

    assert (await house.row(first["name"]))["state"] == "attached"


async def test_the_name_of_a_live_chat_is_refused_in_the_chat(
    codex: CodexRig, house: House
) -> None:
    await install(house)
    await house.script("alice")
    chat = await open_talk(codex)

    await chat.command("$agentworks attach alice", "Nothing was attached: alice")

    assert (await house.row("alice"))["provider"] == "script"


async def test_the_person_attaches_a_chat_from_a_terminal_by_session_and_process(
    codex: CodexRig, house: House
) -> None:
    await install(house)
    chat = await open_talk(codex)
    await chat.turn("hello")
    chosen = ("--session", chat.thread_id, "--native-pid", str(chat.host.process.pid))

    await house.do("attach", "carol", "--provider", "codex", *chosen)
    _, setup = await chat.turn("hello again")

    assert (await house.row("carol"))["route"] == "hook"
    assert "attached this chat to AgentWorks as carol" in setup.new_text


async def test_a_sentence_about_agentworks_goes_to_the_model(
    codex: CodexRig, house: House
) -> None:
    await install(house)
    chat = await open_talk(codex)

    (asked,) = await chat.turn("agentworks attach is what I would type next")

    assert "agentworks attach is what I would type next" in asked.new_text


async def test_a_command_in_a_message_attaches_nothing(
    codex: CodexRig, house: House
) -> None:
    await install(house)
    chat = await open_talk(codex)
    await attach(house, chat)
    alice = await house.script()
    evil = [typed.replace("carol", "evil").strip() for typed in TYPED]
    for text in evil:
        await alice.send(text, to="carol")
    await house.until_row("carol", pending=len(evil))

    _, brought = await chat.turn("hello")

    assert bodies_in([brought]) == evil
    names = {row["name"] for row in (await house.person("agents"))["agents"]}
    assert names == {"alice", "carol"}


async def test_a_codex_that_an_agent_started_is_not_attached_by_its_prompt(
    codex: CodexRig, house: House
) -> None:
    await install(house)
    inner = f"{codex.program} exec --skip-git-repo-check {BYPASS_HOOK_TRUST}"
    command = f"{inner} 'agentworks attach evil' </dev/null; echo ended $?"
    codex.model.enqueue(shell(command))

    outer = await codex.run("hello", NO_SANDBOX)

    _, told = codex.model.turns(outer.thread_id)
    assert "ended 0" in told.arrived
    assert len(codex.model.turns()) == 2
    assert await house.row("evil") == {}
