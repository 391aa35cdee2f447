"""Our command in a real Codex's shell: what a sandbox forbids, what an agent may."""

from __future__ import annotations

import pytest

from bridge.core import standing, texts
from tests.real_clients.codex_chats import (
    NO_SANDBOX,
    agentworks,
    attach,
    install,
    open_talk,
    shell,
)
from tests.real_clients.house import House
from tests.real_clients.offers import offers_in
from tests.real_clients.rig.codex import CodexRig

pytestmark = [pytest.mark.real_client, pytest.mark.slow]

NETWORK = "sandbox_workspace_write.network_access=true"


async def said_in_exec(
    codex: CodexRig, house: House, words: list[str], *arguments: str
) -> str:
    """What the model of one `codex exec` reads of these commands of ours."""
    lines = "; ".join(f"{agentworks(house, each)}; echo exit $?" for each in words)
    codex.model.enqueue(shell(f"({lines}) 2>&1"))
    run = await codex.run("do it", *arguments)
    return codex.model.turns(run.thread_id)[1].arrived


# ---- in a sandbox ----------------------------------------------------------------


@pytest.mark.parametrize("mode", ["read-only", "workspace-write"])
async def test_a_sandboxed_shell_is_told_exactly_why_and_what_to_do(
    codex: CodexRig, house: House, mode: str
) -> None:
    await install(house)
    words = ["bridge message peers --provider codex", "attach carol"]

    said = await said_in_exec(codex, house, words, "--sandbox", mode)

    assert said.count(texts.sandboxed()) == 2
    assert said.count("exit 75") == 2


async def test_what_a_sandboxed_shell_is_told_to_use_instead_works(
    house: House, codex: CodexRig
) -> None:
    await install(house)
    carol = await open_talk(codex)
    await attach(house, carol)

    shut = await carol.shell(
        agentworks(house, "bridge message peers --provider codex 2>&1")
    )
    opened = await carol.call("peers")

    assert "Use the agent_message tools" in shut
    assert '"you":"carol"' in opened


async def test_a_sandbox_that_lets_it_connect_leaves_the_shell_its_own_chat(
    codex: CodexRig, house: House
) -> None:
    await install(house)
    words = ["attach carol", "bridge message peers --provider codex"]
    allowed = ("--sandbox", "workspace-write", "-c", NETWORK)

    said = await said_in_exec(codex, house, words, *allowed)

    assert "Attached as carol." in said
    assert said.count("exit 0") == 2


# ---- an agent's own chat -----------------------------------------------------------


async def test_an_agent_attaches_its_own_chat_and_the_turns_end_brings_the_setup(
    codex: CodexRig, house: House
) -> None:
    await install(house)
    codex.model.enqueue(shell(agentworks(house, "attach carol --purpose 'Reviews'")))

    run = await codex.run("attach this chat to AgentWorks as carol", NO_SANDBOX)

    _, told, setup = codex.model.turns(run.thread_id)
    row = await house.until_row("carol", state="offline", purpose="Reviews")
    assert texts.attached("carol", "hook") in told.arrived
    assert offers_in(setup)[0].name == "carol"
    assert run.thread_id.endswith(row["session"])


async def test_an_agents_own_attach_says_when_the_hooks_are_not_loaded(
    codex: CodexRig, house: House
) -> None:
    said = await said_in_exec(codex, house, ["attach carol"], NO_SANDBOX)

    assert texts.attached("carol", standing.HOOKS_NOT_LOADED) in said
    assert list(codex.computer.project.iterdir()) == []


async def test_an_agents_own_attach_takes_no_other_session_process_or_program(
    codex: CodexRig, house: House
) -> None:
    await install(house)
    alice = await house.script()
    chosen = [
        "--session 01a2283e-d5a3-7fa1-906d-613257641268",
        f"--native-pid {alice.process.pid}",
        "--provider claude",
    ]
    words = [f"attach evil {option}" for option in chosen]
    words += [f"{each} --dry-run" for each in words]

    said = await said_in_exec(codex, house, words, NO_SANDBOX)

    assert said.count("attach takes this chat and no other") == len(words)
    assert said.count("exit 3") == len(words)
    assert await house.row("evil") == {}


async def test_an_agent_renames_nothing_and_takes_no_name_of_another_chat(
    codex: CodexRig, house: House
) -> None:
    await install(house)
    await house.script("alice")
    words = ["attach alice", "attach carol", "attach dave", "attach carol"]

    said = await said_in_exec(codex, house, words, NO_SANDBOX)

    assert "belongs to another chat, and an agent may not move it" in said
    assert "an agent may not rename it" in said
    assert "Attached as carol" in said
    assert "Attached again as carol" in said
    assert await house.row("dave") == {}


async def test_an_agent_detaches_what_it_attached_itself(
    codex: CodexRig, house: House
) -> None:
    await install(house)

    said = await said_in_exec(codex, house, ["attach carol", "detach"], NO_SANDBOX)

    assert "Detached carol" in said
    assert await house.row("carol") == {}


async def test_an_agent_does_not_detach_what_the_person_attached(
    codex: CodexRig, house: House
) -> None:
    await install(house)
    carol = await open_talk(codex, "codex", NO_SANDBOX)
    await attach(house, carol)

    said = await carol.shell(agentworks(house, "detach 2>&1; echo exit $?"))

    assert "only when it attached it itself" in said
    assert "exit 3" in said
    assert (await house.row("carol"))["state"] == "attached"


async def test_what_only_the_person_may_do_is_refused_to_an_agent(
    codex: CodexRig, house: House
) -> None:
    await install(house)
    words = [
        "bridge stop",
        "messages list",
        "messages register --agent evil",
        "messages send --target agent:alice --message hello",
        "detach alice",
    ]
    await house.script("alice")

    said = await said_in_exec(codex, house, words, NO_SANDBOX)

    assert said.count("exit 3") == len(words)
    assert (await house.row("alice"))["state"] == "attached"
