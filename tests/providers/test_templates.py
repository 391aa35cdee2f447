"""The lines that hosts run, byte for byte: one that changes is un-trusted."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.errors import EXIT_CONFIG, Refused
from bridge.providers import claude, claude_install, codex_install, templates

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / "packaging" / "plugins"
GOLDEN = Path(__file__).parent / "golden" / "hook_lines.txt"
STATE = Path("/home/o'neil/.local/state/agentworks")


def claude_groups(state_dir: Path) -> Iterator[tuple[str, Any]]:
    path = state_dir / "plugins/claude/plugins/agentworks/hooks/hooks.json"
    for file in claude_install.package(state_dir, TEMPLATES):
        if file.path == path:
            for event, groups in json.loads(file.content)["hooks"].items():
                yield from ((event, group) for group in groups)


def codex_groups(state_dir: Path) -> Iterator[tuple[str, Any]]:
    return codex_install.groups(TEMPLATES / "codex", templates.places(state_dir))


def lines(state_dir: Path) -> list[str]:
    """Every installed hook as `<provider> <event> <timeout> <matcher> <line>`."""
    shown = []
    for provider, groups in (("claude", claude_groups), ("codex", codex_groups)):
        for event, group in groups(state_dir):
            (hook,) = group["hooks"]
            assert hook["type"] == "command"
            words = (provider, event, hook["timeout"], group.get("matcher", "-"))
            shown.append(" ".join(map(str, (*words, hook["command"]))))
    return shown


def test_the_installed_lines_are_these_byte_for_byte() -> None:
    text = "\n".join(lines(STATE)) + "\n"
    if os.environ.get("AGENTWORKS_WRITE_GOLDEN") == "1":
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(text)

    assert text == GOLDEN.read_text()


def test_each_line_follows_the_wire_contract() -> None:
    ask = templates.quoted(f"{STATE}/bin/ask")
    block = templates.quoted(claude.FALLBACK_BLOCK)
    for line in lines(STATE):
        provider, event, _, _, command = line.split(" ", 4)
        expected = f"[ -x {ask} ] || exit 0; exec {ask} hook {provider} {event}"
        if event == "UserPromptExpansion":
            expected = (
                f"[ -x {ask} ] || {{ printf %s {block}; exit 0; }}; "
                f"exec {ask} hook claude UserPromptExpansion --else {block}"
            )

        assert command == expected


def test_the_constant_block_is_a_block_that_says_what_to_do() -> None:
    block = json.loads(claude.FALLBACK_BLOCK)

    assert block["decision"] == "block"
    assert "agentworks up" in block["reason"]
    assert claude.FALLBACK_BLOCK.isascii()


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_a_quoted_word_is_one_word_to_the_shell(word: str) -> None:
    shown = subprocess.run(
        ["/bin/sh", "-c", f"printf '%s|' {templates.quoted(word)} end"],
        capture_output=True,
        check=True,
    )

    assert shown.stdout == f"{word}|end|".encode()


def run_line(line: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", line],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        env={},
    )


@pytest.mark.parametrize("name", ["state", 'it\'s $HOME `x` "y" ; a@ASK@'])
def test_every_line_runs_the_client_with_its_words(tmp_path: Path, name: str) -> None:
    ask = tmp_path / name / "bin" / "ask"
    ask.parent.mkdir(parents=True)
    ask.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    ask.chmod(0o700)
    for line in lines(tmp_path / name):
        provider, event, _, matcher, command = line.split(" ", 4)
        done = run_line(command, tmp_path)
        expected = f"hook|{provider}|{event}|"
        if matcher != "-":
            expected += f"--else|{claude.FALLBACK_BLOCK}|"

        assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")


def test_without_the_client_every_line_is_silent_but_the_commands(
    tmp_path: Path,
) -> None:
    for line in lines(tmp_path / "gone"):
        _, _, _, matcher, command = line.split(" ", 4)
        done = run_line(command, tmp_path)
        expected = "" if matcher == "-" else claude.FALLBACK_BLOCK

        assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")


@pytest.mark.parametrize("path", ["relative", "/new\nline", "/esc\x1b", "/lone\udcff"])
def test_a_state_folder_that_no_line_can_name_is_refused(path: str) -> None:
    with pytest.raises(Refused) as refused:
        templates.places(Path(path))

    assert refused.value.exit_code == EXIT_CONFIG
