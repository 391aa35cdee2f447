"""What attach wrote into a project or an account goes out by one command, whole."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from bridge.cli.setting_up import PROGRAMS
from tests.journeys.rig.computer import Computer
from tests.journeys.rig.puppets import puppet
from tests.service.rig.serviced import TERMINAL, Typed

OTHERS = {
    ".claude/settings.local.json": '{"model": "opus"}\n',
    ".codex/config.toml": 'model = "other"',
    ".gemini/settings.json": '// mine\n{"theme": "dark",}\n',
    "README.md": "# A project\n",
}


class Project:
    """A project with files of others, and the terminal that is open in it."""

    def __init__(self, folder: Path, do: object) -> None:
        self.folder = folder
        self._do = do
        for name, text in OTHERS.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    async def type(self, *words: str) -> Typed:
        """Type a command in it."""
        assert callable(self._do)
        return Typed(**await self._do("command", words=list(words)))

    def files(self) -> Mapping[str, str]:
        """All of its files."""
        names = [*(Path(name).parts[0] for name in OTHERS), ".agents", ".cursor"]
        names += [".factory", ".github", ".muse", ".opencode", ".pi", ".qwen"]
        names += [".config/muse", ".config/opencode", ".copilot"]
        found = [self.folder / name for name in dict.fromkeys(names)]
        paths = [each for top in found for each in (top, *top.rglob("*"))]
        return {
            str(path.relative_to(self.folder)): path.read_text()
            for path in paths
            if path.is_file()
        }


@pytest.fixture
async def project(computer: Computer) -> AsyncIterator[Project]:
    computer.install()
    # Not the developer's own systemd.
    computer.environment["XDG_RUNTIME_DIR"] = str(computer.home)
    # A puppet works in its home, so that this is the project here.
    async with puppet(computer.environment, TERMINAL) as process:
        made = Project(computer.home, process.do)
        await made.type("up")
        yield made
        await made.type("bridge", "stop")


async def test_the_set_up_of_every_program_goes_and_the_bridge_stays(
    computer: Computer, project: Project
) -> None:
    before = project.files()
    for provider in PROGRAMS:
        done = await project.type("attach", "--provider", provider, "--yes")
        assert done.exit == 0, done.err
    assert len(project.files()) > len(before)

    done = await project.type("bridge", "uninstall", "--project", "--yes", "--json")

    assert done.exit == 0, done.err
    assert project.files() == before
    providers = {each["provider"] for each in done.document["taken_out"]}
    assert providers == set(PROGRAMS) - {"kimi"}  # its hooks are the person's own
    assert "-" in done.err
    assert (computer.state / "bin" / "ask").exists()

    again = await project.type("bridge", "uninstall", "--project", "--yes")
    assert "Nothing of this bridge is in" in again.out


async def test_nothing_goes_unasked_or_where_one_file_cannot_be_edited(
    project: Project,
) -> None:
    await project.type("attach", "--provider", "claude", "--yes")
    there = project.files()

    assert (await project.type("bridge", "uninstall", "--project")).exit == 2
    assert project.files() == there

    (project.folder / ".gemini" / "settings.json").write_text("{\n oops")
    refused = await project.type("bridge", "uninstall", "--project", "--yes")
    assert refused.exit == 1
    assert "settings.json, line 2" in refused.err
    kept = json.loads(project.files()[".claude/settings.local.json"])
    assert "enabledPlugins" in kept


async def test_a_project_has_no_messages_to_purge(project: Project) -> None:
    done = await project.type("bridge", "uninstall", "--project", "--purge", "--yes")

    assert done.exit == 2
    assert "--purge" in done.err


async def test_the_set_up_of_the_whole_account_goes_by_its_own_word(
    computer: Computer, project: Project
) -> None:
    before = project.files()
    for provider in PROGRAMS:
        done = await project.type("attach", "--provider", provider, "--global", "--yes")
        assert done.exit == 0, done.err
    assert json.loads(project.files()[".claude/settings.json"])["enabledPlugins"]
    there = project.files()

    both = await project.type("bridge", "uninstall", "--project", "--global", "--yes")
    assert both.exit == 2
    assert project.files() == there
    done = await project.type("bridge", "uninstall", "--global", "--yes", "--json")

    assert done.exit == 0, done.err
    assert project.files() == before
    providers = {each["provider"] for each in done.document["taken_out"]}
    assert providers == set(PROGRAMS) - {"kimi"}
    assert (computer.state / "bin" / "ask").exists()


async def test_a_file_of_another_program_does_not_keep_the_account_from_being_cleared(
    project: Project,
) -> None:
    before = project.files()
    await project.type("attach", "--provider", "claude", "--global", "--yes")
    (project.folder / ".gemini" / "settings.json").unlink()
    (project.folder / ".gemini" / "settings.json").symlink_to("elsewhere")

    done = await project.type("bridge", "uninstall", "--global", "--yes")

    assert done.exit == 0, done.err
    assert "settings.json is a link" in done.err
    assert set(project.files()) == set(before) - {".gemini/settings.json"}
