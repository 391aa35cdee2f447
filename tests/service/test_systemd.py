"""The unit: what systemd thinks of it, and that it says what was planned."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge import assets
from bridge.errors import EXIT_CONFIG, Refused
from bridge.paths import Paths
from bridge.service.background import KEPT_VARIABLES
from bridge.service.plan import Plan, planned
from bridge.service.refusal import Supervisor
from bridge.service.systemd import UNIT, Systemd, read_plan
from tests.faults.capabilities import need_program

SHIPPED = assets.folder("systemd") / UNIT
PATHS = Paths(Path("/c"), Path("/s"), Path("/c/config.json"))
PLAN = Plan((sys.executable, "-P", "-m", "bridge"), {"AGENTWORKS_STATE": "/s"})
# As systemd 252 counts for root; a smaller number is fine, a larger one is not.
EXPOSURE = 6.6

# What a user unit can be held to without a mount namespace or PrivateUsers.
HARDENING = {
    "UMask=0077",
    "LimitCORE=0",
    "NoNewPrivileges=yes",
    "LockPersonality=yes",
    "RestrictSUIDSGID=yes",
    "RestrictRealtime=yes",
    "RestrictNamespaces=yes",
    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
    "SystemCallFilter=@system-service",
    "SystemCallErrorNumber=EPERM",
    "SystemCallArchitectures=native",
}
LIFE = {
    "Type=notify",
    "NotifyAccess=main",
    "WatchdogSec=60",
    "Restart=on-failure",
    "RestartSec=2",
    "RestartPreventExitStatus=78",
    "StartLimitIntervalSec=60",
    "StartLimitBurst=10",
}
# They hide who asks, or the hosts' own sockets.
NEVER = ("PrivateUsers", "PrivateTmp", "Protect", "PrivateDevices", "ReadOnlyPaths")


@pytest.fixture
def unit(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The unit as it is shipped, or as it is installed for this interpreter."""
    if request.param == "shipped":
        return SHIPPED
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    plan = planned(PATHS, Supervisor.SYSTEMD, ("--server", "a b%$"), environment)
    installed = tmp_path / UNIT
    installed.write_text(Systemd().text(plan, PATHS))
    return installed


BOTH = pytest.mark.parametrize("unit", ["shipped", "installed"], indirect=True)


def analyze(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    need_program("systemd-analyze")
    run = tmp_path / "run"
    run.mkdir(mode=0o700, exist_ok=True)
    return subprocess.run(
        ["systemd-analyze", *words],
        env={"PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": str(run), "HOME": "/root"},
        capture_output=True,
        text=True,
        check=False,
    )


@BOTH
def test_systemd_finds_nothing_to_say_against_the_unit(
    unit: Path, tmp_path: Path
) -> None:
    done = analyze(tmp_path, "verify", "--user", str(unit))

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("RestartSec=2", "RestratSec=2"),
        ("Type=notify", "Type=notifies"),
        ("/usr/bin/env", "/usr/bin/no-such-program"),
        ("NoNewPrivileges=yes", "NoNewPrivileges=perhaps"),
    ],
)
def test_a_typo_or_an_absent_program_in_the_unit_would_be_found(
    tmp_path: Path, right: str, wrong: str
) -> None:
    broken = tmp_path / UNIT
    broken.write_text(SHIPPED.read_text().replace(right, wrong))

    assert analyze(tmp_path, "verify", "--user", str(broken)).stderr


@BOTH
def test_the_exposure_of_the_unit_does_not_rise(unit: Path, tmp_path: Path) -> None:
    done = analyze(
        tmp_path, "security", "--offline=true", "--user", "--no-pager", str(unit)
    )

    found = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)
    assert found is not None, done.stderr
    assert float(found[1]) <= EXPOSURE


@BOTH
def test_the_unit_is_hardened_by_what_works_for_a_user_and_nothing_else(
    unit: Path,
) -> None:
    lines = unit.read_text().splitlines()

    assert set(lines) >= HARDENING | LIFE
    assert not [line for line in lines if line.startswith(NEVER)]


# ---- the words -----------------------------------------------------------------------


def test_the_installed_unit_names_an_absolute_program_and_one_state_folder() -> None:
    secret = {"ANTHROPIC_API_KEY": "cnry", "HTTPS_PROXY": "http://me:pw@proxy"}
    environment = {"PATH": "/bin", "HOME": "/h", "LANG": "C", **secret}
    plan = planned(PATHS, Supervisor.SYSTEMD, (), environment)
    text = Systemd().text(plan, PATHS)

    assert text.count("ExecStart=") == 1
    assert f'ExecStart="{sys.executable}" ' in text
    assert plan.command[-2:] == ("--supervised-by", "systemd")
    assert plan.state == PATHS.state
    assert set(plan.variables) <= KEPT_VARIABLES | {"PYTHONPATH"}
    assert "cnry" not in text
    assert "proxy" not in text
    assert read_plan(text) == plan


words = st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=30)


@given(words.filter(lambda word: "$" not in word), st.lists(words, max_size=5), words)
def test_every_word_comes_out_of_the_unit_as_it_went_in(
    program: str, arguments: list[str], value: str
) -> None:
    plan = Plan((f"/{program}", *arguments), {"AGENTWORKS_STATE": f"/{value}"})

    assert read_plan(Systemd().text(plan, PATHS)) == plan


@pytest.mark.parametrize(
    "word", ["a\nRestart=always", "a\x00", "\x1b[2J", "\x7f", "\udcff"]
)
def test_a_word_that_could_end_its_line_or_is_no_text_is_refused(word: str) -> None:
    for plan in (
        Plan((f"/bin/{word}",), {}),
        Plan(("/bin/x", word), {}),
        Plan(("/bin/x",), {"PATH": word}),
    ):
        with pytest.raises(Refused) as caught:
            Systemd().text(plan, PATHS)
        assert caught.value.exit_code == EXIT_CONFIG


def test_a_program_whose_name_systemd_would_replace_is_refused() -> None:
    with pytest.raises(Refused):
        Systemd().text(Plan(("/opt/$x/python",), {}), PATHS)


def test_a_unit_of_somebody_else_has_no_plan_of_ours(tmp_path: Path) -> None:
    assert read_plan("[Service]\nExecStart=/usr/bin/true\n") is None
    assert read_plan("") is None


@pytest.mark.parametrize("variable", ["/elsewhere", ""])
def test_the_unit_lies_where_systemd_looks_for_it(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("XDG_CONFIG_HOME", variable)

    folder = variable or "/home/me/.config"
    assert Systemd().file == Path(folder) / "systemd/user" / UNIT


def test_a_computer_without_systemctl_has_no_manager_that_answers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert not Systemd().answers()
    assert Systemd().logout_note() == ""


@pytest.mark.parametrize(
    ("answer", "is_told"), [("no", True), ("yes", False), ("", False)]
)
def test_who_has_no_lingering_is_told_what_a_logout_ends(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: str, is_told: bool
) -> None:
    loginctl = tmp_path / "loginctl"
    loginctl.write_text(f"#!/bin/sh\necho {answer}\n")
    loginctl.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    assert ("loginctl enable-linger" in Systemd().logout_note()) is is_told
