"""Installing into a project for Pi and for opencode, and taking it out again."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings

from bridge.errors import Refused
from bridge.providers import opencode_install, pi_install, project_file
from bridge.providers.opencode_install import COMMAND, PLUGIN
from bridge.providers.pi_install import EXTENSION, SERVERS, SKILL
from bridge.providers.project_file import Plan
from tests.providers.documents import OBJECTS, texts

TEMPLATES = Path(__file__).resolve().parents[2] / "packaging" / "plugins"
BOTH = pytest.mark.parametrize("installer", [pi_install, opencode_install])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / 'it\'s "state"'
    folder.mkdir(mode=0o700)
    return folder


def plan(installer: ModuleType, project: Path, state: Path) -> Plan:
    made = installer.plan(project, state, TEMPLATES)
    assert isinstance(made, Plan)
    return made


def files(folder: Path) -> set[str]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)) for path in found}


def write(project: Path, name: str, text: str) -> None:
    path = project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


@pytest.mark.parametrize(
    ("installer", "ours"),
    [(pi_install, {EXTENSION, SERVERS, SKILL}), (opencode_install, {PLUGIN, COMMAND})],
)
def test_a_new_project_gets_our_files_and_loses_them_again(
    project: Path, state: Path, installer: ModuleType, ours: set[str]
) -> None:
    assert installer.plan(project, state, TEMPLATES).changes
    project_file.apply(plan(installer, project, state))

    assert files(project) == ours
    assert not installer.plan(project, state, TEMPLATES).changes

    project_file.apply(installer.removal(project, state, TEMPLATES))
    assert list(project.iterdir()) == []


@BOTH
def test_the_extension_lies_in_our_own_folder_and_the_project_names_it(
    project: Path, state: Path, installer: ModuleType
) -> None:
    project_file.apply(plan(installer, project, state))

    name = installer.__name__.rpartition(".")[2].removesuffix("_install")
    assert files(state / "plugins") == {"adapter.mjs", f"{name}/agentworks.mjs"}
    first = EXTENSION if installer is pi_install else PLUGIN
    literal = json.dumps(str(state / "plugins"))
    assert f"pathToFileURL({literal} + " in (project / first).read_text()


def test_pi_is_told_of_the_tools_and_shows_them_directly(
    project: Path, state: Path
) -> None:
    project_file.apply(plan(pi_install, project, state))

    servers = json.loads((project / SERVERS).read_text())["mcpServers"]
    pipe = str(state / "bin" / "pipe")
    assert servers == {
        "agentworks": {"command": pipe, "args": ["mcp", "pi"], "exposure": "direct"}
    }


def test_what_the_person_chose_for_our_server_stays(project: Path, state: Path) -> None:
    project_file.apply(plan(pi_install, project, state))
    file = project / SERVERS
    file.write_text(file.read_text().replace('"direct"', '"codemode"'))

    assert not pi_install.plan(project, state, TEMPLATES).changes
    project_file.apply(pi_install.removal(project, state, TEMPLATES))
    assert not file.exists()


@pytest.mark.parametrize(
    ("installer", "name", "text"),
    [
        (pi_install, EXTENSION, "export default () => {};\n"),
        (pi_install, SKILL, "---\nname: theirs\n---\n"),
        (pi_install, SERVERS, '{"mcpServers": {"agentworks": {"command": "theirs"}}}'),
        (opencode_install, PLUGIN, "export const Theirs = async () => ({});\n"),
        (opencode_install, COMMAND, "Do something.\n"),
    ],
)
def test_a_file_or_entry_of_others_with_our_name_is_kept(
    project: Path, state: Path, installer: ModuleType, name: str, text: str
) -> None:
    write(project, name, text)
    with pytest.raises(Refused) as refused:
        plan(installer, project, state)
    assert refused.value.code == "name_taken"

    project_file.apply(installer.removal(project, state, TEMPLATES))
    assert (project / name).read_text() == text


def test_servers_that_cannot_be_read_are_refused_with_the_line(
    project: Path, state: Path
) -> None:
    write(project, SERVERS, '{\n  "mcpServers": {,}\n}\n')
    with pytest.raises(Refused) as refused:
        plan(pi_install, project, state)
    assert "line 2" in refused.value.message


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=texts(OBJECTS))
def test_taking_it_out_gives_the_servers_of_others_back(
    project: Path, state: Path, text: str
) -> None:
    write(project, SERVERS, text)
    with suppress(Refused):  # where it has another shape, or an entry of our name
        project_file.apply(plan(pi_install, project, state))
    project_file.apply(pi_install.removal(project, state, TEMPLATES))
    assert (project / SERVERS).read_bytes() == text.encode()
