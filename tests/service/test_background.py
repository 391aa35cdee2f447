"""What a bridge gets of its starter (cli/test_lifecycle.py starts real ones)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from bridge.service.background import KEPT_VARIABLES, clean_environment, own_command


def test_no_kept_variable_can_hold_a_secret_of_a_coding_agent() -> None:
    words = ("KEY", "TOKEN", "SECRET", "CLAUDE", "CODEX", "ANTHROPIC", "OPENAI")

    assert not [name for name in KEPT_VARIABLES if any(word in name for word in words)]


def test_our_own_code_stays_importable_from_anywhere(tmp_path: Path) -> None:
    command = [*own_command(["--version"])[:4], "--version"]
    answer = subprocess.run(
        command,
        cwd=tmp_path,
        env=clean_environment({"PATH": os.environ["PATH"]}),
        capture_output=True,
        text=True,
        check=False,
    )

    assert answer.stdout.startswith("agentworks, version")
