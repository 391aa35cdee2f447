"""`bridge uninstall`: the bridge ends here, and nothing of it can be used.

Promises that the person hears what goes and what stays before anything does,
that a stopped bridge is what is taken apart, that messages go only with --purge,
that with --project nothing but the project in the folder at hand changes, and with
--global nothing but what attach --global wrote into the person's own files.
"""

from __future__ import annotations

import os
from pathlib import Path

import click
import msgspec

from bridge.cli import managed
from bridge.cli.asker import require_person
from bridge.cli.choosing import agree
from bridge.cli.invocation import Invocation, verb
from bridge.cli.present import advise, document, say
from bridge.cli.setting_up import take_out
from bridge.clock import SystemClock
from bridge.core.visible import one_line
from bridge.errors import BridgeError, Refused
from bridge.local.instance import Instance
from bridge.paths import Paths, make_private_folder
from bridge.providers.scope import Scope, home_of
from bridge.server.undelivered import undelivered
from bridge.service import remains
from bridge.service.found import installed
from bridge.store.waiting import waiting


@verb("uninstall")
@click.option("--purge", is_flag=True, help="Remove messages, logs and programs too.")
@click.option(
    "--project",
    "is_project",
    is_flag=True,
    help="Only take what attach wrote out of the project in this folder.",
)
@click.option(
    "--global",
    "is_global",
    is_flag=True,
    help="Only take what attach --global wrote out of your own files.",
)
@click.option("--yes", is_flag=True, help="Agree to what is shown.")
def uninstall(
    invocation: Invocation,
    purge: bool,
    is_project: bool,
    is_global: bool,
    yes: bool,
) -> None:
    """Stop the bridge and leave no service or login of it.

    Sockets and lock go too. Messages are kept, and come after the next attach.
    With --purge they are removed; it says first how many no agent acknowledged.
    With --project or --global the bridge stays, and the set-up of this project, or
    of your whole account, is taken out.
    """
    require_person("the removal")
    if is_project or is_global:
        if purge or (is_project and is_global):
            raise click.UsageError(
                "--project and --global go alone: --purge is for the bridge itself."
            )
        _from_place(invocation, Scope.ACCOUNT if is_global else Scope.PROJECT, yes)
        return
    paths = invocation.paths
    for line in _announced(paths, purge):
        click.echo(one_line(line, limit=4_000), err=True)
    if not yes and not agree("Do this?", "--yes"):
        raise Refused("declined", "You said no, so nothing was stopped or removed.")
    managed.stop(paths, SystemClock())
    gone = (*_without_service(paths), *_without_remains(paths, purge))
    if invocation.as_json:
        document({"removed": list(gone), "purged": purge})
        return
    for place in gone:
        say(f"Removed {one_line(str(place), limit=4_000)}")
    is_kept = not purge and paths.journal.exists()
    kept = f" The journal is kept: {paths.journal}" if is_kept else ""
    advise(f"The bridge is uninstalled.{kept}")


def _from_place(invocation: Invocation, scope: Scope, yes: bool) -> None:
    folder = Path.cwd() if scope is Scope.PROJECT else home_of(os.environ)
    done = take_out(invocation, folder, yes, scope)
    if invocation.as_json:
        document({"taken_out": msgspec.to_builtins(done)})
        return
    for each in done:
        say(f"Took {each.provider} out of {one_line(each.folder, limit=4_000)}")
        for note in each.notes:
            advise(note)
    if not done:
        say(f"Nothing of this bridge is in {one_line(str(folder), limit=4_000)}")


def _announced(paths: Paths, purge: bool) -> list[str]:
    lines = ["This stops the bridge and removes its service, sockets and logins."]
    lines.append(
        "Chats are detached until you attach them again; hooks and plugins in projects"
        " stay, and do nothing; `agentworks bridge uninstall --project` takes them out"
        " of the project that it is typed in, --global out of your own files."
    )
    if purge:
        lines.append(
            f"It also removes all that the bridge keeps in {paths.state}."
            f" {_lost(paths)}"
        )
        lines.append(
            "A project of Codex then starts with a warning, until the agentworks block"
            " is taken out of its .codex/config.toml. A Claude Code chat that is open"
            " now shows a failed hook at each turn, until it is opened anew."
        )
    return lines


def _lost(paths: Paths) -> str:
    """What nobody can read any more after a purge, counted."""
    here, there = waiting(paths.journal), undelivered(paths.server / "server.sqlite3")
    if here is None or there is None:
        return "How many messages that loses cannot be read."
    unread = max(here.pending, there)
    if not unread and not here.unsent:
        return "No message waits there."
    return (
        f"That loses for good {unread} message{'' if unread == 1 else 's'} that no"
        f" agent has acknowledged, and {here.unsent} never sent."
    )


def _without_service(paths: Paths) -> tuple[str, ...]:
    service = installed(paths)
    if service is None:
        return ()
    try:
        service.unload()
    except BridgeError:
        # Its manager does not answer: without the file it starts nothing any more.
        service.file.unlink(missing_ok=True)
    return (str(service.file),)


def _without_remains(paths: Paths, purge: bool) -> tuple[str, ...]:
    if not paths.state.is_dir():
        return ()
    was_there = paths.run.is_dir()
    make_private_folder(paths.run)  # its lock is needed, and goes with it
    # Race: whoever starts one now waits at the lock, finds its file gone and is
    # held off by the lock of the state folder
    # (test_no_second_bridge_comes_in_while_the_lock_file_is_gone).
    with Instance.claim(paths):
        gone = (remains.remove_all if purge else remains.remove_access)(paths)
        os.chdir("/")
    return tuple(place for place in gone if was_there or place != str(paths.run))
