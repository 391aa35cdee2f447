"""What every test with a real client stands on.

Owns the one decision on missing programs: with CI=true or
AGENTWORKS_REQUIRE_CLIENTS=1 the test fails, otherwise it is skipped with the
reason. A scratch computer stays on disk when its test failed, and the report
says where and shows the tails of its logs.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import pytest

from tests.real_clients.claude_chats import Talk, allow_tools, attach, open_talk
from tests.real_clients.house import House, house_on
from tests.real_clients.rig.claude import ClaudeRig
from tests.real_clients.rig.codex import CodexRig
from tests.real_clients.rig.computer import Computer, computer_in
from tests.real_clients.rig.copilot import CopilotRig
from tests.real_clients.rig.gemini import GeminiRig
from tests.real_clients.rig.opencode import OpencodeRig
from tests.real_clients.rig.pi import PiRig
from tests.real_clients.rig.programs import (
    claude_program,
    clients_folder,
    codex_program,
    copilot_program,
    gemini_program,
    node_program,
    opencode_program,
    pi_program,
    qwen_program,
)
from tests.real_clients.rig.qwen import QwenRig

_TAIL = 1500
_REPORT = pytest.StashKey[pytest.TestReport]()
_FOLDER = pytest.StashKey[Path]()


def must_have_clients(environment: Mapping[str, str]) -> bool:
    """Whether a run with this environment fails where a program is missing."""
    required = environment.get("AGENTWORKS_REQUIRE_CLIENTS") == "1"
    return required or environment.get("CI") == "true"


def _require(program: Path) -> Path:
    """The program, or the end of this test."""
    missing = [name for name in ("tmux", "setsid") if shutil.which(name) is None]
    if not program.exists():
        missing.append(f"{program.name} below {clients_folder()}")
    if not missing:
        return program
    reason = f"not installed: {', '.join(missing)}; run: make clients"
    if must_have_clients(os.environ):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture
def scratch_folder(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A folder with a short name; removed unless the test failed."""
    # Sockets below it must keep within 103 bytes, which tmp_path does not.
    folder = Path(tempfile.mkdtemp(prefix="aw-"))
    request.node.stash[_FOLDER] = folder
    yield folder
    report = request.node.stash.get(_REPORT, None)
    if report is None or not report.failed:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
async def computer(scratch_folder: Path) -> AsyncIterator[Computer]:
    """A scratch computer; everything on it is ended afterwards."""
    async with computer_in(scratch_folder) as computer:
        yield computer


@pytest.fixture
async def house(
    computer: Computer, request: pytest.FixtureRequest
) -> AsyncIterator[House]:
    """The product on the computer, its bridge running, nothing installed.

    Mail comes by hooks alone, unless the test is marked `waking`.
    """
    async with house_on(computer) as house:
        is_waking = request.node.get_closest_marker("waking") is not None
        house.choose(notify="never", **({} if is_waking else {"wake": "never"}))
        await house.start()
        yield house


@pytest.fixture
def claude_binary() -> Path:
    """Claude Code's program, or the decision on its absence."""
    return _require(claude_program())


@pytest.fixture
def codex_binary() -> Path:
    """Codex's program, or the decision on its absence."""
    return _require(codex_program())


@pytest.fixture
async def claude(claude_binary: Path, computer: Computer) -> AsyncIterator[ClaudeRig]:
    """Claude Code on the computer."""
    rig = ClaudeRig(computer, claude_binary)
    try:
        yield rig
    finally:
        await rig.stop()


@pytest.fixture
async def codex(codex_binary: Path, computer: Computer) -> AsyncIterator[CodexRig]:
    """Codex on the computer."""
    rig = CodexRig(computer, codex_binary)
    try:
        yield rig
    finally:
        await rig.stop()


@pytest.fixture
async def pi(computer: Computer) -> AsyncIterator[PiRig]:
    """Pi on the computer."""
    rig = PiRig(computer, _require(node_program()), _require(pi_program()))
    try:
        yield rig
    finally:
        await rig.stop()


@pytest.fixture
async def opencode(computer: Computer) -> AsyncIterator[OpencodeRig]:
    """opencode on the computer."""
    rig = OpencodeRig(computer, _require(opencode_program()))
    try:
        yield rig
    finally:
        await rig.stop()


@pytest.fixture
async def gemini(computer: Computer) -> AsyncIterator[GeminiRig]:
    """Gemini CLI on the computer."""
    _require(node_program())
    rig = GeminiRig(computer, _require(gemini_program()))
    try:
        yield rig
    finally:
        await rig.stop()


@pytest.fixture
async def copilot(computer: Computer) -> AsyncIterator[CopilotRig]:
    """GitHub Copilot CLI on the computer."""
    rig = CopilotRig(computer, _require(copilot_program()))
    try:
        yield rig
    finally:
        await rig.stop()


@pytest.fixture
async def qwen(computer: Computer) -> AsyncIterator[QwenRig]:
    """Qwen Code on the computer."""
    _require(node_program())
    rig = QwenRig(computer, _require(qwen_program()))
    try:
        yield rig
    finally:
        await rig.stop()


@pytest.fixture
async def talk(claude: ClaudeRig, house: House, kind: str) -> Talk:
    """A Claude Code in a project with our hooks, attached to nothing.

    `kind` is the test's own parameter, chat or stream.
    """
    await house.install("claude")
    allow_tools(claude)
    return await open_talk(claude, kind)


@pytest.fixture
async def bob(house: House, talk: Talk) -> Talk:
    """The same, attached as bob, its setup text behind it."""
    await attach(house, talk)
    return talk


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Iterator[None]:
    """Put the tails of the artefacts into a failed test's report."""
    report: pytest.TestReport = yield  # type: ignore[assignment]
    if report.when == "call":
        item.stash[_REPORT] = report
        folder = item.stash.get(_FOLDER, None)
        if report.failed and folder is not None:
            report.sections.append((f"kept in {folder}", _tails(folder)))
    return report  # type: ignore[return-value]


def _tails(folder: Path) -> str:
    shown = []
    for path in sorted((folder / "artefacts").iterdir()):
        text = path.read_text(errors="replace")
        if text.strip():
            shown.append(f"--- {path.name}\n{text[-_TAIL:]}")
    return "\n".join(shown)
