"""The plist, key by key, and what launchd is told (a stand-in answers here)."""

from __future__ import annotations

import os
import plistlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge import assets
from bridge.errors import EXIT_CONFIG, Refused, Unavailable
from bridge.paths import Paths
from bridge.service.launchd import LABEL, Launchd
from bridge.service.plan import Plan, planned
from bridge.service.refusal import Supervisor

SHIPPED = assets.folder("launchd") / f"{LABEL}.plist"
PATHS = Paths(Path("/c"), Path("/s"), Path("/c/config.json"))
# Every key that launchd knows and that we use, with its type (launchd.plist(5)).
KEYS = {
    "Label": str,
    "ProgramArguments": list,
    "EnvironmentVariables": dict,
    "RunAtLoad": bool,
    "KeepAlive": dict,
    "ThrottleInterval": int,
    "ExitTimeOut": int,
    "Umask": int,
    "SoftResourceLimits": dict,
    "HardResourceLimits": dict,
    "StandardOutPath": str,
    "StandardErrorPath": str,
}
# Says what it was told; knows the job while the file `loaded` is there.
LAUNCHCTL = """#!/bin/sh
echo "$@" >> "$HOME/told"
case "$1" in
bootstrap) echo "$3" > "$HOME/loaded" ;;
bootout) rm "$HOME/loaded" ;;
print)
    case "$2" in */works.agent.bridge) ;; *) exit 0 ;; esac
    [ -e "$HOME/loaded" ] || exit 113
    printf '%s = {\\n\\tactive count = 1\\n\\tpath = %s\\n\\tstate = running\\n' \
        "$2" "$(cat "$HOME/loaded")"
    printf '\\tpid = 4711\\n}\\n' ;;
kickstart) [ ! -e "$HOME/broken" ] || { echo "Could not find service." >&2; exit 3; } ;;
esac
"""


def content(text: str | bytes) -> dict[str, Any]:
    found = plistlib.loads(text.encode() if isinstance(text, str) else text)
    assert isinstance(found, dict)
    return found


def installed() -> dict[str, Any]:
    plan = planned(PATHS, Supervisor.LAUNCHD, (), {"PATH": "/bin", "HOME": "/h"})
    return content(Launchd().text(plan, PATHS))


@pytest.fixture(params=["shipped", "installed"])
def plist(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The file as it is shipped, or as it is installed."""
    return content(SHIPPED.read_bytes()) if request.param == "shipped" else installed()


def test_the_plist_has_every_key_that_is_meant_and_no_other(
    plist: dict[str, Any],
) -> None:
    assert {key: type(value) for key, value in plist.items()} == KEYS


def test_the_plist_starts_at_login_and_again_only_after_a_failure(
    plist: dict[str, Any],
) -> None:
    assert plist["Label"] == LABEL == SHIPPED.stem
    assert plist["RunAtLoad"] is True
    assert plist["KeepAlive"] == {"SuccessfulExit": False}
    assert plist["ThrottleInterval"] >= 10
    assert plist["ExitTimeOut"] == 20
    assert plist["ProgramArguments"][-2:] == ["--supervised-by", "launchd"]


def test_the_plist_keeps_files_private_and_leaves_no_core(
    plist: dict[str, Any],
) -> None:
    assert plist["Umask"] == 0o077
    assert plist["SoftResourceLimits"] == plist["HardResourceLimits"] == {"Core": 0}


def test_every_path_in_the_plist_is_absolute(plist: dict[str, Any]) -> None:
    paths = [
        plist["ProgramArguments"][0],
        plist["StandardOutPath"],
        plist["StandardErrorPath"],
    ]

    assert all(map(os.path.isabs, paths))


def test_the_installed_plist_names_our_program_our_folder_and_our_log() -> None:
    found = installed()

    assert os.access(found["ProgramArguments"][0], os.X_OK)
    assert found["EnvironmentVariables"]["AGENTWORKS_STATE"] == "/s"
    assert found["StandardErrorPath"] == "/s/log/bridge.log"


words = st.text(
    st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="\ufffe\uffff"),
    max_size=30,
)


@given(st.lists(words, min_size=1, max_size=5), words)
def test_every_word_comes_out_of_the_plist_as_it_went_in(
    command: list[str], value: str
) -> None:
    plan = Plan(tuple(command), {"AGENTWORKS_STATE": value})
    found = content(Launchd().text(plan, PATHS))

    assert found["ProgramArguments"] == command
    assert found["EnvironmentVariables"] == {"AGENTWORKS_STATE": value}


@pytest.mark.parametrize("word", ["a\x00", "\x1b[2J", "a\rb", "\udcff", "\uffff"])
def test_a_word_that_no_plist_can_hold_is_refused(word: str) -> None:
    for plan in (
        Plan((f"/bin/{word}",), {}),
        Plan(("/bin/x", word), {}),
        Plan(("/bin/x",), {"PATH": word}),
    ):
        with pytest.raises(Refused) as caught:
            Launchd().text(plan, PATHS)
        assert caught.value.exit_code == EXIT_CONFIG


# ---- what launchd is told ------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose PATH finds the stand-in."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "launchctl").write_text(LAUNCHCTL)
    (programs / "launchctl").chmod(0o700)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    return tmp_path


@pytest.fixture
def launchd(home: Path) -> Launchd:
    """Our file is in its place, and its folders are there."""
    paths = Paths(home / "c", home / "s", home / "c" / "config.json")
    paths.prepare()
    service = Launchd()
    plan = planned(paths, Supervisor.LAUNCHD, (), {"HOME": str(home)})
    service.file.parent.mkdir(parents=True)
    service.file.write_text(service.text(plan, paths))
    assert service.plan() == plan
    return service


def told(home: Path) -> list[str]:
    """What changes something, in order."""
    lines = (home / "told").read_text().splitlines()
    return [line for line in lines if not line.startswith("print")]


def test_a_job_is_loaded_at_its_first_start_and_kicked_at_the_next(
    launchd: Launchd, home: Path
) -> None:
    domain = f"gui/{os.getuid()}"

    assert launchd.answers()
    launchd.load()
    launchd.start()
    assert launchd.standing().pid == 4711
    assert launchd.standing().is_loaded
    launchd.start()
    launchd.stop()
    launchd.stop()

    assert told(home) == [
        f"enable {domain}/{LABEL}",
        f"bootstrap {domain} {launchd.file}",
        f"kickstart {domain}/{LABEL}",
        f"bootout {domain}/{LABEL}",
    ]
    assert not launchd.standing().is_loaded


def test_the_log_is_private_before_launchd_opens_it(
    launchd: Launchd, home: Path
) -> None:
    launchd.load()

    assert (home / "s/log/bridge.log").stat().st_mode & 0o777 == 0o600


def test_an_unloaded_job_is_gone_with_its_file(launchd: Launchd, home: Path) -> None:
    launchd.start()
    launchd.unload()

    assert not launchd.file.exists()
    assert not (home / "loaded").exists()
    assert launchd.plan() is None


def test_what_launchd_says_no_to_is_told_in_its_words(
    launchd: Launchd, home: Path
) -> None:
    launchd.start()
    (home / "broken").touch()

    with pytest.raises(Unavailable, match=r"failed: Could not find service\."):
        launchd.start()


def test_a_job_of_another_file_is_not_ours(launchd: Launchd, home: Path) -> None:
    (home / "loaded").write_text("/elsewhere/works.agent.bridge.plist\n")

    assert not launchd.standing().is_loaded


def test_a_computer_without_launchctl_has_no_manager_that_answers(
    launchd: Launchd, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert not launchd.answers()
    assert launchd.logout_note() == ""
    assert launchd.log_command(5, follow=False) == ()


@pytest.mark.parametrize("text", [b"", b"{}", b"<plist/>"])
def test_a_file_of_somebody_else_has_no_plan_of_ours(
    launchd: Launchd, text: bytes
) -> None:
    launchd.file.write_bytes(text)

    assert launchd.plan() is None
