"""`attach`: what is shown, agreed to and asked of the daemon."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import FakeDaemon, Run, typed

ATTACHED = {
    "name": "bob",
    "attachment_id": "att-1",
    "provider": "script",
    "session_id": "s-1",
    "state": "attached",
    "route": "hook",
    "notes": ["A note."],
}
SESSION = {"provider": "claude", "session_id": "s-1", "pid": 7}
SETTINGS = Path(".claude") / "settings.local.json"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def person(daemon: FakeDaemon, project: Path) -> FakeDaemon:
    daemon.replies["prepare"] = {
        "caller": "person",
        "sessions": [SESSION | {"folder": str(project)}],
    }
    daemon.replies["attach"] = ATTACHED
    return daemon


# ---- below a coding agent -----------------------------------------------------------


def test_an_agent_attaches_its_own_chat_and_sets_nothing_up(
    run: Run, daemon: FakeDaemon, project: Path
) -> None:
    daemon.replies["prepare"] = {"caller": "own", "sessions": [SESSION]}
    daemon.replies["attach"] = ATTACHED

    ran = run("attach", "bob", "--purpose", "Review")

    assert daemon.asked[-1] == {
        "verb": "attach",
        "name": "bob",
        "purpose": "Review",
        "folder": str(project),
    }
    assert "Attached as bob" in ran.out
    assert "A note." in ran.out
    assert list(project.iterdir()) == []


def test_what_an_agent_may_not_choose_reaches_the_daemon_which_refuses_it(
    run: Run, daemon: FakeDaemon
) -> None:
    daemon.replies["prepare"] = {"caller": "own", "sessions": [SESSION]}
    daemon.refuse("attach", "own_session_only", 3)

    ran = run("attach", "bob", "--session", "another", "--native-pid", "9", "--yes")

    assert ran.exit_code == 3
    assert daemon.asked[-1]["session_id"] == "another"
    assert daemon.asked[-1]["native_pid"] == 9
    assert "confirm" not in daemon.asked[-1]


def test_what_an_agent_may_not_choose_is_refused_to_a_dry_run_too(
    run: Run, daemon: FakeDaemon
) -> None:
    daemon.refuse("prepare", "own_session_only", 3)

    ran = run("attach", "bob", "--session", "another", "--native-pid", "9", "--dry-run")

    assert ran.exit_code == 3
    assert daemon.asked[-1]["session_id"] == "another"
    assert daemon.asked[-1]["native_pid"] == 9


def test_wishes_of_an_agent_reach_the_daemon_which_refuses_them(
    run: Run, daemon: FakeDaemon
) -> None:
    daemon.replies["prepare"] = {"caller": "own", "sessions": [SESSION]}
    daemon.refuse("attach", "person_only", 3)

    ran = run("attach", "--native-remote", "unix:///x", "--usual")

    assert ran.exit_code == 3
    assert daemon.asked[-1]["native_remote"] == "unix:///x"
    assert daemon.asked[-1]["wants"] == []


def test_an_agent_that_asks_for_the_whole_account_is_refused_before_anything(
    run: Run, daemon: FakeDaemon, home: Path
) -> None:
    daemon.refuse("prepare", "person_only", 3)

    ran = run("attach", "bob", "--provider", "claude", "--global", "--yes")

    assert ran.exit_code == 3
    assert daemon.asked[-1]["is_account_wide"] is True
    assert not (home / ".claude").exists()


# ---- the person ---------------------------------------------------------------------


def test_a_script_is_attached_by_its_process_without_a_question(
    run: Run, person: FakeDaemon, project: Path
) -> None:
    person.replies["prepare"]["sessions"] = []

    ran = run("attach", "bob", "--provider", "script", "--native-pid", "7", "--json")

    assert ran.document()["attached"][0]["name"] == "bob"
    assert person.asked[-1] == {
        "verb": "attach",
        "name": "bob",
        "provider": "script",
        "native_pid": 7,
        "folder": str(project),
        "confirm": True,
    }
    assert list(project.iterdir()) == []


def test_a_named_session_is_attached_once_its_project_is_set_up(
    run: Run, person: FakeDaemon, project: Path
) -> None:
    ran = run("attach", "bob", "--session", "s-1", "--yes")

    assert ran.exit_code == 0, ran.err
    assert f"Setting up claude in {project}" in ran.err
    assert "+" in ran.err
    assert json.loads((project / SETTINGS).read_text())["enabledPlugins"]
    assert person.asked[-1]["session_id"] == "s-1"
    assert person.asked[-1]["provider"] == "claude"
    assert "/reload-plugins" in ran.out

    again = run("attach", "bob", "--session", "s-1")
    assert again.exit_code == 0
    assert "Setting up" not in again.err


def test_installing_puts_working_programs_into_place(
    run: Run, person: FakeDaemon, home: Path
) -> None:
    run("attach", "bob", "--session", "s-1", "--yes")

    found = list(home.rglob("bin/ask"))
    assert len(found) == 1
    version = subprocess.run(
        [found[0], "--version"], capture_output=True, text=True, check=True
    )
    assert version.stdout.startswith("ask AW1")


def test_without_a_yes_nothing_is_written_or_attached(
    run: Run,
    person: FakeDaemon,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with typed(monkeypatch, "n\n"):
        ran = run("attach", "bob", "--session", "s-1")

    assert ran.exit_code == 1
    assert "You said no" in ran.err
    assert list(project.iterdir()) == []
    assert [request["verb"] for request in person.asked] == ["prepare"]


def test_without_a_terminal_a_yes_must_be_given_beforehand(
    run: Run, person: FakeDaemon, project: Path
) -> None:
    ran = run("attach", "bob", "--session", "s-1")

    assert ran.exit_code == 2
    assert "--yes" in ran.err
    assert list(project.iterdir()) == []


def test_a_dry_run_shows_and_does_nothing(
    run: Run, person: FakeDaemon, project: Path
) -> None:
    ran = run("attach", "bob", "--dry-run")

    assert ran.exit_code == 0
    assert str(SETTINGS) in ran.err
    assert "Would attach claude s-1" in ran.out
    assert list(project.iterdir()) == []
    assert [request["verb"] for request in person.asked] == ["prepare"]


def test_a_dry_run_leaves_the_chats_of_other_folders_out(
    run: Run, person: FakeDaemon, tmp_path: Path, project: Path
) -> None:
    elsewhere = {"session_id": "s-2", "folder": str(tmp_path / "elsewhere")}
    person.replies["prepare"]["sessions"].append(SESSION | elsewhere)

    ran = run("attach", "--dry-run")

    assert "Would attach claude s-1" in ran.out
    assert "elsewhere" not in ran.out + ran.err


@pytest.mark.parametrize(
    ("provider", "words"),
    [("script", "--native-pid PID"), ("nano", "no provider “nano”")],
)
def test_what_has_no_project_to_set_up_is_refused(
    run: Run, person: FakeDaemon, provider: str, words: str
) -> None:
    person.replies["prepare"]["sessions"] = []

    ran = run("attach", "bob", "--provider", provider)

    assert ran.exit_code == 2
    assert words in ran.err
    assert ran.out == ""


def test_the_person_chooses_among_live_chats(
    run: Run,
    person: FakeDaemon,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    person.replies["prepare"]["sessions"] = [
        {"provider": "script", "session_id": f"s-{number}", "pid": number}
        for number in (1, 2, 3)
    ]

    with typed(monkeypatch, "2\n"):
        ran = run("attach", "bob")

    assert ran.exit_code == 0, ran.err
    assert [r["session_id"] for r in person.asked if r["verb"] == "attach"] == ["s-2"]


def test_all_needs_the_exact_count(
    run: Run,
    person: FakeDaemon,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    person.replies["prepare"]["sessions"] = [
        {"provider": "script", "session_id": f"s-{number}", "pid": number}
        for number in (1, 2, 3)
    ]

    with typed(monkeypatch, "all\nall 2\nall 3\n"):
        run("attach")

    asked = [r["session_id"] for r in person.asked if r["verb"] == "attach"]
    assert asked == ["s-1", "s-2", "s-3"]


def test_three_useless_answers_do_nothing(
    run: Run, person: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    person.replies["prepare"]["sessions"] = [
        {"provider": "script", "session_id": f"s-{number}", "pid": number}
        for number in (1, 2)
    ]

    with typed(monkeypatch, "x\n0\n3\n"):
        ran = run("attach", "bob")

    assert ran.exit_code == 2
    assert [request["verb"] for request in person.asked] == ["prepare"]


def test_without_a_live_chat_the_project_is_set_up_and_the_chat_command_told(
    run: Run, person: FakeDaemon, project: Path
) -> None:
    person.replies["prepare"]["sessions"] = []

    ran = run("attach", "bob", "--provider", "claude", "--yes")

    assert ran.exit_code == 0, ran.err
    assert (project / SETTINGS).exists()
    assert "/agentworks attach bob" in ran.out
    assert [request["verb"] for request in person.asked] == ["prepare"]


def test_a_yes_takes_the_only_chat_of_this_folder(
    run: Run, person: FakeDaemon, project: Path
) -> None:
    person.replies["prepare"]["sessions"] += [
        {"provider": "claude", "session_id": "s-2", "pid": 8, "folder": "/elsewhere"}
    ]

    ran = run("attach", "bob", "--yes")

    assert ran.exit_code == 0, ran.err
    assert [r["session_id"] for r in person.asked if r["verb"] == "attach"] == ["s-1"]


def test_the_persons_wishes_go_with_the_attach(run: Run, person: FakeDaemon) -> None:
    ran = run("attach", "bob", "--session", "s-1", "--yes", "--no-wake", "--at-prompt")

    assert ran.exit_code == 0, ran.err
    assert person.asked[-1]["wants"] == ["at_prompt", "no_wake"]


def test_what_a_wake_runs_under_is_said_before_anything_is_attached(
    run: Run, person: FakeDaemon
) -> None:
    person.replies["prepare"]["sessions"][0]["wake"] = "Messages may start turns."
    person.refuse("attach", "name_held", 4)

    ran = run("attach", "bob", "--session", "s-1", "--yes")
    quiet = run("attach", "bob", "--session", "s-1", "--yes", "--no-wake")

    assert "Messages may start turns." in ran.err
    assert "Messages may start turns." not in quiet.err


def test_a_pane_is_named_with_the_server_of_this_terminal(
    run: Run, person: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMUX", "/tmp/tmux-7/default,123,0")

    ran = run("attach", "bob", "--session", "s-1", "--yes", "--tmux", "%3")

    assert ran.exit_code == 0, ran.err
    assert person.asked[-1]["tmux_pane"] == "%3"
    assert person.asked[-1]["tmux_socket"] == "/tmp/tmux-7/default"


def test_a_named_way_says_whose_chat_it_is(run: Run, person: FakeDaemon) -> None:
    person.replies["prepare"]["sessions"] = []
    remote = "desktop+unix:///home/ada/.codex/ipc/ipc.sock"

    ran = run(
        "attach", "bob", "--session", "s-9", "--native-remote", remote,
        "--native-pid", "7", "--yes",
    )  # fmt: skip

    assert ran.exit_code == 0, ran.err
    assert person.asked[0]["native_remote"] == remote
    assert person.asked[-1]["provider"] == "codex"
    assert person.asked[-1]["native_remote"] == remote


def test_a_yes_never_chooses_a_chat_of_another_folder(
    run: Run, person: FakeDaemon, project: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    person.replies["prepare"]["sessions"] = [SESSION | {"folder": str(elsewhere)}]

    ran = run("attach", "bob", "--provider", "claude", "--yes")

    assert ran.exit_code == 0, ran.err
    assert [request["verb"] for request in person.asked] == ["prepare"]
    assert list(elsewhere.iterdir()) == []
    assert (project / SETTINGS).exists()
    assert "/agentworks attach bob" in ran.out


def test_chats_of_other_folders_do_not_keep_this_one_from_being_set_up(
    run: Run,
    person: FakeDaemon,
    project: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    person.replies["prepare"]["sessions"] = [SESSION | {"folder": str(elsewhere)}]

    with typed(monkeypatch, "2\ny\n"):
        ran = run("attach", "--provider", "claude")

    assert ran.exit_code == 0, ran.err
    assert "2  none of these: only set up" in ran.err
    assert [request["verb"] for request in person.asked] == ["prepare"]
    assert list(elsewhere.iterdir()) == []
    assert (project / SETTINGS).exists()


def test_a_wish_goes_to_the_chat_that_has_the_name(
    run: Run, person: FakeDaemon, project: Path
) -> None:
    other = SESSION | {"session_id": "s-2", "folder": str(project)}
    named = SESSION | {"folder": str(project), "attached_as": "bob"}
    person.replies["prepare"]["sessions"] = [other, named]

    ran = run("attach", "bob", "--no-wake", "--yes")

    assert ran.exit_code == 0, ran.err
    asked = [request for request in person.asked if request["verb"] == "attach"]
    assert [request["session_id"] for request in asked] == ["s-1"]
    assert "Attached again as bob" in ran.out


def test_without_a_provider_on_path_it_is_to_be_named(
    run: Run, person: FakeDaemon, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    person.replies["prepare"]["sessions"] = []
    monkeypatch.setenv("PATH", str(tmp_path))

    ran = run("attach")

    assert ran.exit_code == 1
    assert "--provider claude" in ran.err


def test_a_file_that_does_not_parse_is_refused_with_its_line(
    run: Run, person: FakeDaemon, project: Path
) -> None:
    (project / ".claude").mkdir()
    (project / SETTINGS).write_text('{\n  "a": 1,\n}\n')

    ran = run("attach", "bob", "--session", "s-1", "--yes")

    assert ran.exit_code == 1
    assert "line 3" in ran.err
    assert [request["verb"] for request in person.asked] == ["prepare"]


# ---- the whole account --------------------------------------------------------------


def test_the_whole_account_is_set_up_where_it_was_chosen_and_the_project_is_not(
    run: Run, person: FakeDaemon, home: Path, project: Path
) -> None:
    ran = run("attach", "bob", "--provider", "claude", "--global", "--yes")

    assert ran.exit_code == 0, ran.err
    assert f"Setting up claude for all your projects, in {home}:" in ran.err
    assert "+" in ran.err
    settings = home / ".claude" / "settings.json"
    assert json.loads(settings.read_text())["enabledPlugins"]
    assert list(project.iterdir()) == []
    assert [request["verb"] for request in person.asked] == ["prepare", "attach"]
    assert "commits" not in ran.out + ran.err


def test_a_dry_run_shows_the_whole_account_and_writes_nothing(
    run: Run, person: FakeDaemon, home: Path, project: Path
) -> None:
    person.replies["prepare"]["sessions"] = []

    ran = run("attach", "--provider", "codex", "--global", "--dry-run")

    assert ran.exit_code == 0, ran.err
    assert str(home / ".codex" / "hooks.json") in ran.err
    assert not (home / ".codex").exists()
    assert list(project.iterdir()) == []


def test_without_a_yes_the_whole_account_stays_as_it_is(
    run: Run, person: FakeDaemon, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("attach", "bob", "--session", "s-1", "--global")
    with typed(monkeypatch, "n\n"):
        ran = run(*words)

    assert ran.exit_code != 0
    assert "said no" in ran.err
    assert not (home / ".claude").exists()
    assert [request["verb"] for request in person.asked] == ["prepare"]


def test_a_chosen_chat_names_the_provider_of_the_whole_account(
    run: Run, person: FakeDaemon, home: Path
) -> None:
    ran = run("attach", "bob", "--session", "s-1", "--global", "--yes")

    assert ran.exit_code == 0, ran.err
    assert (home / ".claude" / "settings.json").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "attach --global --provider claude"),
        (("--provider", "script"), "in all projects of “script”"),
        (("--provider", "amp"), "in all projects of “amp”"),
    ],
)
def test_an_account_is_set_up_for_a_known_provider_alone(
    run: Run, person: FakeDaemon, home: Path, words: tuple[str, ...], said: str
) -> None:
    person.replies["prepare"]["sessions"] = []

    ran = run("attach", *words, "--global", "--yes")

    assert ran.exit_code == 2
    assert said in ran.err
    assert not [path for path in home.iterdir() if path.name == ".claude"]


def test_a_codex_that_looks_elsewhere_is_not_set_up(
    run: Run, person: FakeDaemon, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person.replies["prepare"]["sessions"] = []
    monkeypatch.setenv("CODEX_HOME", "/elsewhere")

    ran = run("attach", "--provider", "codex", "--global", "--yes")

    assert ran.exit_code == 1
    assert "CODEX_HOME" in ran.err
    assert not (home / ".codex").exists()


def test_without_a_live_chat_any_project_will_do(
    run: Run, person: FakeDaemon, home: Path
) -> None:
    person.replies["prepare"]["sessions"] = []

    ran = run("attach", "bob", "--provider", "gemini", "--global", "--yes")

    assert ran.exit_code == 0, ran.err
    assert "start one in any of your projects" in ran.out
    assert (home / ".gemini" / "settings.json").exists()
