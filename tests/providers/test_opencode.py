"""opencode: which processes are its own, and whose shell is whose."""

from __future__ import annotations

import pytest

from bridge.core.caller import ProcessFacts
from bridge.errors import Refused
from bridge.providers import discovery, opencode
from tests.providers.captured import process

NATIVE = "/usr/lib/node_modules/opencode-linux-x64/bin/opencode"
SESSION = "ses_dd82ca59effeo0Qy2PLCRxOfUK"


@pytest.mark.parametrize(
    ("facts", "is_opencode"),
    [
        (process(NATIVE), True),
        (process(NATIVE, "opencode", "serve", "--port", "4096"), True),
        (process(NATIVE + " (deleted)", "opencode"), True),
        (process("", "opencode", name="opencode"), True),
        (process("", "opencode", name="node"), False),
        (process("/usr/bin/node", "node", "/usr/bin/opencode"), False),
        (process("/bin/bash", "opencode"), False),
        (process(NATIVE, "rg", "--files"), False),
    ],
)
def test_an_opencode_process_is_the_native_binary_under_its_own_name(
    facts: ProcessFacts, is_opencode: bool
) -> None:
    assert opencode.is_program(facts) is is_opencode
    assert (discovery.program_of(facts) == "opencode") is is_opencode


def test_its_shells_carry_the_chat_by_our_plugins_word() -> None:
    environment = {"OPENCODE": "1", opencode.SESSION: SESSION}
    assert opencode.session_of_environment(environment) == SESSION


@pytest.mark.parametrize("environment", [{"OPENCODE": "1"}, {opencode.SESSION: ""}])
def test_a_shell_without_our_plugin_names_no_chat(environment: dict[str, str]) -> None:
    assert opencode.session_of_environment(environment) is None


def test_a_shell_with_a_chat_that_is_none_is_refused() -> None:
    with pytest.raises(Refused):
        opencode.session_of_environment({opencode.SESSION: "not an id"})


def test_its_tool_servers_carry_no_mark_of_a_shell() -> None:
    child = {"AGENT", "OPENCODE", "OPENCODE_PID"}
    assert not child & opencode.SHELL_MARKS
    assert child & opencode.MARKS
