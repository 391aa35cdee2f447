"""What is written for a real Codex, beside other people's hooks, and what never is."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.providers import codex_install, project_file
from tests.real_clients.codex_chats import install, open_talk
from tests.real_clients.house import ROOT, House
from tests.real_clients.offers import times_seen
from tests.real_clients.rig.codex import CodexRig
from tests.real_clients.rig.probes import Probe

pytestmark = [pytest.mark.real_client, pytest.mark.slow]

TEMPLATES = ROOT / "packaging" / "plugins"
# As people write them: other keys, other spaces, no newline at the end.
CONFIG = '# ours\n[mcp_servers.other]\ncommand = "true"  # does nothing'


@pytest.fixture
async def theirs(codex: CodexRig) -> Probe:
    """A hook of somebody else in the project, which the person has trusted."""
    probe = Probe(codex.computer.folder / "probe")
    codex.write_hooks({"Stop": [probe.hook("theirs")]})
    (codex.computer.project / ".codex" / "config.toml").write_text(CONFIG)
    chat = await codex.open_chat("review", review=True)
    await chat.quit()
    return probe


async def test_installing_leaves_the_trust_of_other_hooks_and_takes_none_for_ours(
    codex: CodexRig, house: House, theirs: Probe
) -> None:
    before = persons_files(codex)

    await install(house)
    after = persons_files(codex)
    await codex.run("agentworks attach carol", trust_hooks=False)

    (untrusted,) = codex.model.turns()
    assert after == before
    assert "agentworks attach carol" in untrusted.new_text
    assert len(theirs.notes("theirs")) == 1
    assert await house.row("carol") == {}


async def test_once_the_person_trusts_our_hooks_a_typed_attach_is_answered(
    codex: CodexRig, house: House, theirs: Probe
) -> None:
    await install(house)

    chat = await open_talk(codex, "chat", review=True)
    await chat.command("$agentworks attach carol", "Attached as carol.")

    assert codex.model.turns() == []
    assert (await house.row("carol"))["state"] == "attached"


async def test_removing_gives_every_file_back_and_leaves_other_hooks_trusted(
    codex: CodexRig, house: House, theirs: Probe
) -> None:
    before = files_in(codex.computer.project)
    await house.install("codex")
    installed = files_in(codex.computer.project)

    plan = codex_install.removal(codex.computer.project, house.state, TEMPLATES)
    project_file.apply(plan)
    await codex.run("hello", trust_hooks=False)

    assert installed.keys() > before.keys()
    assert files_in(codex.computer.project) == before
    assert len(theirs.notes("theirs")) == 1


async def test_hooks_that_are_installed_twice_say_everything_once(
    codex: CodexRig, house: House
) -> None:
    await install(house)
    hooks = codex.computer.project / ".codex" / "hooks.json"
    (codex.codex_home / "hooks.json").write_bytes(hooks.read_bytes())
    chat = await open_talk(codex)
    await chat.command("$agentworks attach carol", "Attached as carol.")
    shown = chat.host.pane.text()
    await chat.turn("good morning")
    alice = await house.script()
    sent = [f"mail {number}" for number in range(3)]
    for text in sent:
        await alice.send(text, to="carol")
        await house.until_row("carol", pending=1)
        await chat.turn("next")

    assert shown.count("Attached") == 1
    assert chat.bodies == sent
    assert times_seen(chat.requests, "may not have reached you") == 0


def persons_files(codex: CodexRig) -> dict[str, bytes]:
    """What the person says to Codex: its settings, trust among them."""
    return {path.name: path.read_bytes() for path in codex.codex_home.glob("*.toml")}


def files_in(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by its path in it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
