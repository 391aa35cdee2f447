"""Files of a person's project: what is refused, what is kept, what is written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bridge.errors import Refused
from bridge.providers.project_file import (
    BACKUP_SUFFIX,
    LIMIT_BYTES,
    Change,
    PackageFile,
    Plan,
    apply,
    changes,
    read,
    strictly,
)
from bridge.providers.strict_json import NotStrict

NAME = "folder/file.json"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    return tmp_path


def change(project: Path, before: str | None, after: str | None) -> Plan:
    return Plan(changes=(Change(project, NAME, before, after),))


def names(project: Path) -> list[str]:
    return sorted(path.name for path in (project / "folder").iterdir())


# ---- reading -------------------------------------------------------------------


def test_what_is_there_is_read_and_what_is_not_is_none(project: Path) -> None:
    (project / NAME).write_text("grüße\r\n", newline="")

    assert read(project, NAME) == "grüße\r\n"
    assert read(project, "folder/other") is None
    assert read(project, "no/such/file") is None


def test_a_link_in_the_files_place_or_on_the_way_is_refused(project: Path) -> None:
    (project / "elsewhere").mkdir()
    (project / "elsewhere" / "file.json").write_text("{}")
    (project / NAME).symlink_to(project / "elsewhere" / "file.json")
    (project / "linked").symlink_to(project / "elsewhere")

    for name in (NAME, "linked/file.json"):
        with pytest.raises(Refused) as refused:
            read(project, name)
        assert refused.value.code == "file_unusable"
        with pytest.raises(Refused):
            apply(Plan(changes=(Change(project, name, "{}", "[]"),)))
    assert (project / "elsewhere" / "file.json").read_text() == "{}"


def test_a_link_to_nowhere_is_refused_and_not_followed(project: Path) -> None:
    (project / NAME).symlink_to(project / "target")

    with pytest.raises(Refused):
        apply(change(project, None, "{}"))

    assert not (project / "target").exists()


def test_a_fifo_and_a_folder_are_refused_without_waiting(project: Path) -> None:
    os.mkfifo(project / NAME)
    with pytest.raises(Refused, match="not a plain file"):
        read(project, NAME)

    (project / NAME).unlink()
    (project / NAME).mkdir()
    with pytest.raises(Refused):
        read(project, NAME)


def test_a_file_in_a_folders_place_is_refused(project: Path) -> None:
    (project / NAME).write_text("{}")

    with pytest.raises(Refused, match="no folder"):
        read(project, f"{NAME}/deeper.json")


def test_more_than_a_mebibyte_is_refused(project: Path) -> None:
    (project / NAME).write_bytes(b" " * LIMIT_BYTES)
    assert read(project, NAME) is not None

    (project / NAME).write_bytes(b" " * (LIMIT_BYTES + 1))
    with pytest.raises(Refused, match="larger"):
        read(project, NAME)


def test_what_is_not_utf_8_is_refused_with_its_line(project: Path) -> None:
    (project / NAME).write_bytes(b"one\ntwo\xff\n")

    with pytest.raises(Refused, match="line 2"):
        read(project, NAME)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_another_owners_file_or_folder_is_refused(project: Path) -> None:
    (project / NAME).write_text("{}")
    os.chown(project / NAME, 65534, 65534)
    with pytest.raises(Refused, match="another user"):
        read(project, NAME)

    os.chown(project / NAME, 0, 0)
    os.chown(project / "folder", 65534, 65534)
    with pytest.raises(Refused, match="another user"):
        read(project, NAME)


def test_what_is_wrong_inside_a_file_is_named_with_its_line(project: Path) -> None:
    with pytest.raises(Refused) as refused, strictly(project / NAME):
        raise NotStrict(7, "a colon must stand here")

    assert f"{project / NAME}, line 7: a colon must stand here." in (
        refused.value.message
    )


# ---- writing ---------------------------------------------------------------------


def test_a_change_keeps_the_mode_and_a_copy_of_what_was_there(project: Path) -> None:
    (project / NAME).write_text("before")
    (project / NAME).chmod(0o640)

    apply(change(project, "before", "after"))

    copy = project / (NAME + BACKUP_SUFFIX)
    assert (project / NAME).read_text() == "after"
    assert copy.read_text() == "before"
    assert (project / NAME).stat().st_mode & 0o777 == 0o640
    assert copy.stat().st_mode & 0o777 == 0o640
    assert names(project) == ["file.json", "file.json" + BACKUP_SUFFIX]


def test_undoing_a_change_removes_the_copy_that_it_gives_back(project: Path) -> None:
    (project / NAME).write_text("before")
    apply(change(project, "before", "after"))

    apply(change(project, "after", "before"))

    assert (project / NAME).read_text() == "before"
    assert names(project) == ["file.json"]


def test_a_new_file_comes_with_its_folders_and_goes_with_them(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    name = "kept/one/two/file"
    made = Plan(changes=(Change(tmp_path, name, None, "text"),))
    removed = Plan(changes=(Change(tmp_path, name, "text", None),))

    apply(made)
    assert (tmp_path / name).read_text() == "text"

    apply(removed)
    assert not (tmp_path / "kept").exists() or not list((tmp_path / "kept").iterdir())


def test_a_folder_with_other_files_stays(project: Path) -> None:
    (project / NAME).write_text("ours")
    (project / "folder" / "theirs").write_text("theirs")

    apply(change(project, "ours", None))

    assert names(project) == ["theirs"]


def test_a_file_that_changed_since_it_was_shown_is_left_alone(project: Path) -> None:
    for there, before in (("newer", "shown"), (None, "shown"), ("newer", None)):
        (project / NAME).unlink(missing_ok=True)
        if there is not None:
            (project / NAME).write_text(there)

        with pytest.raises(Refused) as refused:
            apply(change(project, before, "after"))

        assert refused.value.code == "file_changed"
        assert read(project, NAME) == there
        assert BACKUP_SUFFIX not in "".join(names(project))


def test_a_failing_write_leaves_the_old_file(project: Path) -> None:
    """A limit on file sizes stands for a full disk."""
    (project / NAME).write_text("before")
    program = (
        "import resource, signal, sys; from pathlib import Path;"
        "from bridge.errors import Refused;"
        "from bridge.providers.project_file import Change, Plan, apply;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100));"
        f"change = Change(Path({str(project)!r}), {NAME!r}, 'before', 'x' * 1000);\n"
        "try: apply(Plan(changes=(change,)))\n"
        "except Refused as error: print(error.code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout == "file_not_written\n"
    assert (project / NAME).read_text() == "before"
    assert set(names(project)) <= {"file.json", "file.json" + BACKUP_SUFFIX}


def test_a_folder_that_cannot_be_written_is_refused(project: Path) -> None:
    plan = Plan(changes=(Change(project / "gone", NAME, None, "x"),))

    with pytest.raises(Refused) as refused:
        apply(plan)

    assert refused.value.code == "file_not_written"


def test_our_own_package_is_private_and_written_only_when_it_differs(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state" / "plugins" / "file"
    plan = Plan(package=(PackageFile(path, b"one"),))

    apply(plan)
    first = path.stat()
    apply(plan)

    assert path.read_bytes() == b"one"
    assert first.st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_ino == first.st_ino

    apply(Plan(package=(PackageFile(path, b"two"),)))
    assert path.read_bytes() == b"two"


# ---- showing ------------------------------------------------------------------------


def test_only_what_differs_is_a_change(project: Path) -> None:
    before: dict[str, str | None] = {"a": "1", "b": None, "c": "3"}
    after: dict[str, str | None] = {"a": "1", "b": "2", "c": None}

    found = changes(project, before, after)

    assert [(each.name, each.before, each.after) for each in found] == [
        ("b", None, "2"),
        ("c", "3", None),
    ]


def test_a_plan_is_shown_as_a_unified_diff(project: Path) -> None:
    plan = change(project, "one\ntwo", "one\nthree\n")

    assert plan.diff() == (
        f"--- {project / NAME}\n+++ {project / NAME}\n@@ -1,2 +1,2 @@\n"
        " one\n-two\n+three\n"
    )
    assert change(project, None, "x\n").diff().startswith("--- /dev/null\n")
    assert "+++ /dev/null\n" in change(project, "x\n", None).diff()


def test_a_diff_drives_no_terminal(project: Path) -> None:
    shown = change(project, None, "a\x1b[2Jb\u202ec\n").diff()

    assert "\x1b" not in shown
    assert "\u202e" not in shown
