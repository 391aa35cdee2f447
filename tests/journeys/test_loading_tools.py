"""The first tools of a host: the bridge loads much for them and serves on."""

from __future__ import annotations

from pathlib import Path

import trio

from tests.hooks.conftest import HOOKS, with_first_line
from tests.hooks.host import INITIALIZE, host_of
from tests.journeys.rig.computer import ROOT, Computer
from tests.real_clients.rig.waiting import wait_until

# Comes with Python's start: loading the tools begins, and waits for a word.
_SLOW = """\
import sys, time
from pathlib import Path

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "bridge.tools.server":
            Path("{began}").touch()
            while not Path("{goes_on}").exists():
                time.sleep(0.01)

sys.meta_path.insert(0, Slow())
"""


async def test_hooks_are_answered_while_the_tools_are_loaded(
    computer: Computer, tmp_path: Path
) -> None:
    began, goes_on = tmp_path / "began", tmp_path / "goes_on"
    slow = tmp_path / "sitecustomize.py"
    slow.write_text(_SLOW.format(began=began, goes_on=goes_on))
    computer.environment["PYTHONPATH"] = f"{tmp_path}:{ROOT}"
    await computer.start_bridge()
    agent = await computer.attached("bob")
    pipe = computer.paths.bin / "pipe"
    with_first_line(HOOKS / "pipe.py", pipe)

    async with host_of(pipe) as host:
        await host.say(INITIALIZE)
        await wait_until(began.exists, "the loading of the tools")
        printed = await agent.mail()
        goes_on.touch()
        with trio.fail_after(30):
            answered = await host.hear_line()

    assert "AgentWorks [" in printed
    assert b'"serverInfo"' in answered
