"""Gemini CLI, Qwen Code and Copilot CLI in a project, and out of it again."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings

from bridge.errors import Refused
from bridge.providers import copilot_install, gemini_install, project_file, qwen_install
from tests.providers.documents import OBJECTS, texts
from tests.providers.loose_documents import loose_texts

TEMPLATES = Path(__file__).resolve().parents[2] / "packaging" / "plugins"
STATE = Path("/home/o'neil/.local/state/agentworks")
ASK = "'/home/o'\\''neil/.local/state/agentworks/bin/ask'"
FILES = {
    gemini_install: [gemini_install.SETTINGS, gemini_install.COMMAND],
    qwen_install: [qwen_install.SETTINGS, qwen_install.COMMAND],
    copilot_install: [
        copilot_install.HOOKS,
        copilot_install.SERVERS,
        copilot_install.SKILL,
    ],
}
SETTINGS = {
    gemini_install: gemini_install.SETTINGS,
    qwen_install: qwen_install.SETTINGS,
}
EVERY = pytest.mark.parametrize("installer", list(FILES))
BOTH = pytest.mark.parametrize("installer", list(SETTINGS))
ONCE = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40
)


def install(installer: ModuleType, project: Path) -> None:
    project_file.apply(installer.plan(project, STATE, TEMPLATES))


def remove(installer: ModuleType, project: Path) -> None:
    project_file.apply(installer.removal(project, STATE, TEMPLATES))


def write(project: Path, name: str, text: str) -> Path:
    path = project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


@EVERY
def test_a_new_project_gets_these_files_and_loses_them_again(
    tmp_path: Path, installer: ModuleType
) -> None:
    assert installer.plan(tmp_path, STATE, TEMPLATES).changes

    install(installer, tmp_path)

    there = (path for path in tmp_path.rglob("*") if path.is_file())
    names = sorted(str(path.relative_to(tmp_path)) for path in there)
    assert names == sorted(FILES[installer])
    assert not installer.plan(tmp_path, STATE, TEMPLATES).changes
    remove(installer, tmp_path)
    assert list(tmp_path.iterdir()) == []


@EVERY
def test_the_lines_and_their_timeouts_are_these(
    tmp_path: Path, installer: ModuleType
) -> None:
    """Gemini counts milliseconds, the others seconds."""
    install(installer, tmp_path)
    document = json.loads((tmp_path / FILES[installer][0]).read_text())

    shown = []
    for event, groups in document["hooks"].items():
        (group,) = groups
        (hook,) = group.get("hooks", [group])
        assert hook["type"] == "command"
        shown.append((event, hook.get("timeout", hook.get("timeoutSec"))))
        provider = installer.__name__.rpartition(".")[2].removesuffix("_install")
        assert hook.get("command", hook.get("bash")) == (
            f"[ -x {ASK} ] || exit 0; exec {ASK} hook {provider} {event}"
        )
    assert (
        shown
        == {
            gemini_install: [
                ("SessionStart", 10_000),
                ("BeforeAgent", 20_000),
                ("AfterAgent", 10_000),
                ("SessionEnd", 3_000),
            ],
            qwen_install: [
                ("SessionStart", 10),
                ("UserPromptSubmit", 20),
                ("Stop", 10),
                ("SessionEnd", 3),
            ],
            copilot_install: [
                ("sessionStart", 10),
                ("userPromptSubmitted", 20),
                ("agentStop", 10),
                ("sessionEnd", 3),
            ],
        }[installer]
    )


@BOTH
@ONCE
@given(text=texts(OBJECTS) | loose_texts())
def test_what_others_wrote_there_survives_and_comes_back_byte_for_byte(
    tmp_path: Path, installer: ModuleType, text: str
) -> None:
    path = write(tmp_path, SETTINGS[installer], text)
    try:
        planned = installer.plan(tmp_path, STATE, TEMPLATES)
    except Refused as refused:
        assert refused.code in ("file_not_strict", "name_taken")  # noqa: PT017
        return
    project_file.apply(planned)

    assert installer.plan(tmp_path, STATE, TEMPLATES).changes == ()
    remove(installer, tmp_path)
    assert path.read_bytes() == text.encode()


@BOTH
def test_comments_stay_where_they_are(tmp_path: Path, installer: ModuleType) -> None:
    text = '{\n  // mine\n  "model": {"name": "x"}, // why\n}\n'
    path = write(tmp_path, SETTINGS[installer], text)

    install(installer, tmp_path)

    assert path.read_text().startswith(text[:-3])
    remove(installer, tmp_path)
    assert path.read_text() == text


@BOTH
def test_a_tool_server_of_our_name_is_left_alone(
    tmp_path: Path, installer: ModuleType
) -> None:
    theirs = json.dumps({"mcpServers": {"agentworks": {"command": "theirs"}}})
    write(tmp_path, SETTINGS[installer], theirs)

    with pytest.raises(Refused) as refused:
        installer.plan(tmp_path, STATE, TEMPLATES)

    assert refused.value.code == "name_taken"
    assert installer.removal(tmp_path, STATE, TEMPLATES).changes == ()


@BOTH
def test_the_persons_trust_in_our_tools_stays_and_goes_with_them(
    tmp_path: Path, installer: ModuleType
) -> None:
    install(installer, tmp_path)
    path = tmp_path / SETTINGS[installer]
    document = json.loads(path.read_text())
    document["mcpServers"]["agentworks"]["trust"] = True
    path.write_text(json.dumps(document, indent=2) + "\n")

    assert not installer.plan(tmp_path, STATE, TEMPLATES).changes
    remove(installer, tmp_path)
    assert not path.exists()


@pytest.mark.parametrize("name", FILES[copilot_install])
def test_copilot_files_of_others_are_left_alone(tmp_path: Path, name: str) -> None:
    text = '{"mcpServers": {"agentworks": {"command": "theirs"}}}'
    path = write(tmp_path, name, text)

    with pytest.raises(Refused) as refused:
        copilot_install.plan(tmp_path, STATE, TEMPLATES)

    assert refused.value.code == "name_taken"
    remove(copilot_install, tmp_path)
    assert path.read_text() == text


def test_tool_servers_of_others_stay_beside_copilots(tmp_path: Path) -> None:
    text = '{"mcpServers": {"lint": {"command": "lint"}}}'
    path = write(tmp_path, copilot_install.SERVERS, text)

    install(copilot_install, tmp_path)

    assert list(json.loads(path.read_text())["mcpServers"]) == ["lint", "agentworks"]
    remove(copilot_install, tmp_path)
    assert path.read_text() == text


@EVERY
def test_a_file_that_does_not_parse_is_refused_with_its_line(
    tmp_path: Path, installer: ModuleType
) -> None:
    name = SETTINGS.get(installer, copilot_install.SERVERS)
    path = write(tmp_path, name, '{\n"mcpServers": {},,\n}')

    with pytest.raises(Refused, match="line 2") as refused:
        installer.plan(tmp_path, STATE, TEMPLATES)

    assert refused.value.code == "file_not_strict"
    assert path.read_text() == '{\n"mcpServers": {},,\n}'
