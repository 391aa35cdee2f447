"""Pi: which processes are Pi's, and whose shell is whose."""

from __future__ import annotations

import pytest

from bridge.core.caller import ProcessFacts
from bridge.errors import Refused
from bridge.providers import discovery, pi
from tests.providers.captured import process

NODE = "/usr/lib/node22/bin/node"
# It writes its title over its command line, which leaves empty words behind it.
TITLED = ("pi", *[""] * 40)


@pytest.mark.parametrize(
    ("facts", "is_pi"),
    [
        (process(NODE, *TITLED, name="pi"), True),
        (process("/opt/bun", *TITLED, name="pi"), True),
        (process("/opt/pi/pi", "pi"), True),
        (process("", "pi", name="pi"), True),
        (process("", "pi", name="node"), False),
        (process(NODE, "node", "/opt/pi/dist/bundle/cli.js"), False),
        (process(NODE, "/home/user/pi", "-x"), False),
        (process("/bin/bash", "pi"), False),
        (process("/usr/bin/python3", "pi"), False),
        (process(NODE, "", "pi"), False),
    ],
)
def test_a_pi_process_is_known_by_its_program_and_its_one_word(
    facts: ProcessFacts, is_pi: bool
) -> None:
    assert pi.is_program(facts) is is_pi
    assert (discovery.program_of(facts) == "pi") is is_pi


def test_a_process_without_a_command_line_is_not_pi() -> None:
    facts = ProcessFacts(1, 0, 1, "pi", 0, NODE, ())
    assert not pi.is_program(facts)


def test_its_shells_carry_the_session() -> None:
    environment = {"PI_SESSION_ID": "01a227d0-f175-75db-984c-7c564eefa29d"}
    assert pi.session_of_environment(environment) == environment["PI_SESSION_ID"]
    assert pi.session_of_environment({"PI_CODING_AGENT": "true"}) is None


def test_a_shell_with_a_session_that_is_none_is_refused() -> None:
    with pytest.raises(Refused):
        pi.session_of_environment({"PI_SESSION_ID": "not an id"})


def test_its_tool_servers_carry_no_mark_of_a_shell() -> None:
    child = {"AI_AGENT", "PI_CODING_AGENT"}
    assert not child & pi.SHELL_MARKS
    assert child & pi.MARKS
