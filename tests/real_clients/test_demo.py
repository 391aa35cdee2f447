"""The demo, started from the shell of a real Claude Code's agent."""

from __future__ import annotations

import json
import shlex
import sys

import pytest

from tests.fakes.model_server import Step
from tests.real_clients.house import ROOT
from tests.real_clients.rig.claude import ClaudeRig

pytestmark = [pytest.mark.real_client, pytest.mark.slow]

DEMO_S = 150.0


@pytest.mark.timeout(DEMO_S + 60)
async def test_the_demo_passes_below_a_real_claude(claude: ClaudeRig) -> None:
    said = claude.computer.folder / "demo.json"
    words = [sys.executable, "-P", "-m", "bridge", "demo", "--json"]
    line = (
        f"echo below $CLAUDECODE; PYTHONPATH={shlex.quote(str(ROOT))}"
        f" {shlex.join(words)} > {shlex.quote(str(said))}; echo exit $?"
    )
    limit_ms = int(DEMO_S * 1000)
    shell = {"command": line, "timeout": limit_ms}
    claude.add_settings({"permissions": {"allow": ["Bash"]}})
    claude.model.enqueue(Step(tool="Bash", arguments=shell))
    stream = await claude.open_stream()

    await stream.ask("show me", DEMO_S)

    (answered,) = claude.model.turns(containing="below 1")
    demo = json.loads(said.read_text())
    assert "exit 0" in "".join(map(str, answered.tool_results))
    assert demo["ok"], demo
    assert len(demo["steps"]) == 13
