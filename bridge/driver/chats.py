"""Which live chat the person means, by its id, its process or its native way.

Promises that a chat is chosen by what its own process says or by what its hooks
said, both verified now, and never by a name, a folder or an age.
"""

from __future__ import annotations

import os
import re

import trio
from msgspec import Struct

from bridge.core import remotes
from bridge.core.caller import ProcessFacts
from bridge.core.records import ProcessKey
from bridge.driver.bridge import Bridge
from bridge.errors import EXIT_USAGE, Refused
from bridge.local import requests
from bridge.providers import claude_registration, discovery, process
from bridge.providers.known import provider_named

_REGISTRATION = re.compile(r"/sessions/([1-9][0-9]{0,9})\.json")


class Chosen(Struct, frozen=True):
    """One exact chat: provider, session, and the process that has it open."""

    provider: str
    session_id: str
    key: ProcessKey


async def live(bridge: Bridge) -> list[discovery.LiveSession]:
    """Every open chat that says so, and every one whose hooks were heard.

    Hundreds of processes are read beside the hooks.
    """

    def look() -> list[discovery.LiveSession]:
        return discovery.live_sessions(
            process.pids_of_user(), process.facts_of, process.marks_of
        )

    found = await trio.to_thread.run_sync(look)
    speak = {process.key_of(each.process) for each in found}
    heard = [chat for chat in bridge.hooked if chat[0] not in speak]
    heard.sort(key=lambda chat: (chat[0].pid, chat[1]))
    return [*found, *filter(None, (_heard(bridge, *chat) for chat in heard))]


def _heard(
    bridge: Bridge, key: ProcessKey, session_id: str
) -> discovery.LiveSession | None:
    """A chat whose hooks were heard, if its process still is what it was."""
    facts = process.facts_of(key.pid)
    if facts is None or process.key_of(facts) != key:
        return None
    provider = discovery.program_of(facts)
    if provider is None:
        return None
    if provider_named(provider).HAS_ONE_CHAT and bridge.heard.get(key) != session_id:
        return None  # it has left that chat
    folder = bridge.folders.get((key, session_id), "")
    return discovery.LiveSession(provider, session_id, facts, folder)


async def chosen(bridge: Bridge, request: requests.Attach) -> Chosen:
    """The chat that this attach means; raises Refused."""
    remote = checked_remote(request.native_remote, request.provider)
    provider = request.provider or (remote.provider if remote else "claude")
    provider_named(provider)
    if remote is not None and not request.session_id:
        raise _refused_remote(
            "it needs the chat's own id as well",
            "Give it with --session UUID.",
        )
    if remote is not None and remote.scheme == "claude+session":
        return _by_registration(remote, request)
    if request.native_pid:
        return _by_pid(provider, request)
    return await _by_session(bridge, provider, request.session_id)


# ---- a way that the person named -----------------------------------------------------


def checked_remote(uri: str, provider: str = "") -> remotes.Remote | None:
    """The way that a URI names, None for no URI; raises Refused with the reason."""
    if not uri:
        return None
    try:
        remote = remotes.parsed(uri)
    except ValueError as error:
        raise _refused_remote(
            str(error),
            "Give claude+session:///…/sessions/PID.json, unix:///SOCKET or "
            "desktop+unix:///SOCKET.",
        ) from error
    if provider not in ("", remote.provider):
        raise _refused_remote(
            f"it leads to {remote.provider}, not to {provider}",
            f"Leave --provider out, or give --provider {remote.provider}.",
        )
    return remote


def checked_pane(socket: str, pane: str) -> str:
    """The pane as wishes keep it, empty for none; raises Refused with the reason."""
    if not pane:
        return ""
    try:
        return remotes.pane_want(socket, pane)
    except ValueError as error:
        raise Refused(
            "bad_pane",
            f"The pane named with --tmux was not taken: {error}. Nothing was attached.",
            "In that pane: tmux display-message -p '#{pane_id}'",
            exit_code=EXIT_USAGE,
        ) from error


def check_own(remote: remotes.Remote, session_id: str, facts: ProcessFacts) -> None:
    """This way can lead to this chat in this very process; raises Refused.

    A socket is verified by its route, each time it is used.
    """
    if remote.scheme == "claude+session":
        _check_registered(remote, session_id, facts)


def _by_registration(remote: remotes.Remote, request: requests.Attach) -> Chosen:
    """The live process whose own registration is exactly this file."""
    match = _REGISTRATION.search(remote.path)
    if match is None or match.end() != len(remote.path):
        raise _refused_remote(
            "it does not end in /sessions/PID.json",
            "It is the file in which Claude Code registers the chat's process.",
        )
    facts = _own_process(int(match.group(1)))
    if request.native_pid not in (0, facts.pid):
        raise _refused_remote("--native-pid names another process", "Leave it out.")
    _check_registered(remote, request.session_id, facts)
    return Chosen(remote.provider, request.session_id, process.key_of(facts))


def _check_registered(
    remote: remotes.Remote, session_id: str, facts: ProcessFacts
) -> None:
    if discovery.program_of(facts) != remote.provider:
        raise _other_program(facts, remote.provider)
    try:
        environment = process.marks_of(facts.pid)
        inbox = claude_registration.inbox_of(facts, environment, session_id)
    except Refused as error:
        raise Refused(
            "bad_native_remote",
            f"{error.message} Nothing was attached.",
            "Choose the chat from the list: agentworks attach",
            exit_code=EXIT_USAGE,
        ) from error
    if os.path.realpath(inbox.file) != os.path.realpath(remote.path):
        raise _refused_remote("that process registers in another file", "")


def _refused_remote(why: str, hint: str) -> Refused:
    return Refused(
        "bad_native_remote",
        f"The way named with --native-remote was not taken, since {why}. Nothing was "
        "attached.",
        hint,
        exit_code=EXIT_USAGE,
    )


# ---- a process, a session ------------------------------------------------------------


def _own_process(pid: int) -> ProcessFacts:
    facts = process.facts_of(pid)
    if facts is None or facts.uid != os.geteuid():
        raise Refused(
            "no_such_process",
            f"There is no process {pid} of yours, so nothing was attached.",
            "Check the number: ps -u $USER",
        )
    return facts


def _by_pid(provider: str, request: requests.Attach) -> Chosen:
    facts = _own_process(request.native_pid)
    key = process.key_of(facts)
    if provider == "script":
        return Chosen(provider, key.text(), key)
    if discovery.program_of(facts) != provider:
        raise _other_program(facts, provider)
    found = discovery.live_session(facts, process.marks_of)
    session_id = request.session_id or (found.session_id if found else "")
    if not session_id or (found is not None and found.session_id != session_id):
        raise _no_session(provider)
    return Chosen(provider, session_id, key)


async def _by_session(bridge: Bridge, provider: str, session_id: str) -> Chosen:
    for each in await live(bridge):
        if each.provider == provider and each.session_id == session_id:
            return Chosen(provider, session_id, process.key_of(each.process))
    known = bridge.roster.known(provider, session_id)
    if known is not None and process.is_alive(known.record.process_key):
        return Chosen(provider, session_id, known.record.process_key)
    raise _no_session(provider)


def _other_program(facts: ProcessFacts, provider: str) -> Refused:
    return Refused(
        "other_program",
        f"Process {facts.pid} ({facts.name}) is not {provider}, so nothing was "
        "attached.",
        "Give the pid of the program itself, or use --provider script.",
    )


def _no_session(provider: str) -> Refused:
    return Refused(
        "no_such_session",
        f"No live {provider} chat with that session was found, so nothing was "
        "attached.",
        "List them: agentworks attach; or type the attach command in the chat.",
    )
