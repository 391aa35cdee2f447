"""Setting a project up for a provider, or taking that out: shown, agreed to, written.

The same for all projects of the person, where they choose that. Promises that they
see provider, folder and every changed line before anything is written there, also
when --yes answered the question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

import click
from msgspec import Struct

from bridge import assets
from bridge.cli.choosing import agree
from bridge.cli.invocation import Invocation
from bridge.core.visible import one_line
from bridge.errors import Refused
from bridge.providers import (
    agy_install,
    claude_install,
    codex_install,
    copilot_install,
    cursor_install,
    droid_install,
    gemini_install,
    kimi_install,
    mid_turn,
    muse_install,
    opencode_install,
    packages,
    pi_install,
    qwen_install,
)
from bridge.providers.project_file import Plan, apply, write_package
from bridge.providers.scope import Scope
from bridge.service.programs import install_programs

PROGRAMS: Mapping[str, str] = {
    "agy": "agy",
    "claude": "claude",
    "codex": "codex",
    "copilot": "copilot",
    "cursor": "cursor-agent",
    "droid": "droid",
    "gemini": "gemini",
    "kimi": "kimi",
    "muse": "muse",
    "opencode": "opencode",
    "pi": "pi",
    "qwen": "qwen",
}
"""The providers that are set up in a project, and their program on PATH."""

_INSTALLERS: Mapping[str, ModuleType] = {
    "agy": agy_install,
    "claude": claude_install,
    "codex": codex_install,
    "copilot": copilot_install,
    "cursor": cursor_install,
    "droid": droid_install,
    "gemini": gemini_install,
    "kimi": kimi_install,
    "muse": muse_install,
    "opencode": opencode_install,
    "pi": pi_install,
    "qwen": qwen_install,
}
# No file in a project is theirs, and the person's own are never written.
_BY_PERSON = frozenset({"kimi"})


class SetUp(Struct, frozen=True):
    """One provider in one project; `changed` are the files that were written."""

    provider: str
    folder: str
    changed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def set_up(
    invocation: Invocation,
    projects: Sequence[tuple[str, Path]],
    is_agreed: bool,
    is_trial: bool,
    is_mid_turn: bool = False,
    scope: Scope = Scope.PROJECT,
) -> tuple[SetUp, ...]:
    """Set up each (provider, folder) once; raises Refused when the person says no.

    `is_trial` only shows; `is_mid_turn` adds the hook that is asked after each tool
    call. A provider without hooks in projects needs nothing. For the whole account
    the folder is the person's home.
    """
    wanted = [each for each in dict.fromkeys(projects) if each[0] in _INSTALLERS]
    if wanted and not is_trial:
        install_programs(invocation.paths)
    return tuple(
        _set_up_one(
            invocation, provider, folder, is_agreed, is_trial, is_mid_turn, scope
        )
        for provider, folder in wanted
    )


def _set_up_one(
    invocation: Invocation,
    provider: str,
    folder: Path,
    is_agreed: bool,
    is_trial: bool,
    is_mid_turn: bool,
    scope: Scope,
) -> SetUp:
    state, plugins = invocation.paths.state, assets.folder("plugins")
    where = f"{provider} {_shown(folder, scope)}"
    plan = _INSTALLERS[provider].plan(folder, state, plugins, scope)
    done = [_carried_out(where, plan, is_agreed, is_trial)]
    if is_mid_turn:
        plan = mid_turn.plan(provider, folder, state, scope)
        done.append(_carried_out(where, plan, is_agreed, is_trial))
    if not is_trial:
        write_package(tuple(packages.of(provider, state, plugins)))
    changed = [change.name for plan in done for change in plan.changes]
    # Where only the person can set it up, nothing is changed and all is to be said.
    is_theirs = not any(plan.changes for plan in done) and provider in _BY_PERSON
    notes = [note for plan in done if plan.changes or is_theirs for note in plan.notes]
    return SetUp(provider, str(folder), tuple(dict.fromkeys(changed)), tuple(notes))


def _shown(folder: Path, scope: Scope) -> str:
    place = f"in {one_line(str(folder))}"
    return f"for all your projects, {place}" if scope is Scope.ACCOUNT else place


def _carried_out(where: str, plan: Plan, is_agreed: bool, is_trial: bool) -> Plan:
    """The plan, after the person saw it, agreed to it, and it was written."""
    if plan.changes:
        click.echo(f"Setting up {where}:", err=True)
        click.echo(plan.diff(), err=True)
        if not is_trial and not is_agreed and not agree("Write this?", "--yes"):
            raise Refused(
                "declined",
                "You said no, so nothing was written and nothing was attached.",
            )
    if not is_trial:
        apply(plan)
    return plan


def take_out(
    invocation: Invocation,
    folder: Path,
    is_agreed: bool,
    scope: Scope = Scope.PROJECT,
) -> tuple[SetUp, ...]:
    """Take what `set_up` wrote out of this place, for every provider.

    Raises Refused when the person says no, and in a project for a file that cannot
    be edited; then nothing was written. In the whole account, where such a file may
    be another program's affair, it is only named.
    """
    plans = {}
    for provider in _INSTALLERS:
        try:
            plan = _removal(invocation, provider, folder, scope)
        except Refused as error:
            if scope is Scope.PROJECT:
                raise
            click.echo(one_line(error.message, limit=4_000), err=True)
            continue
        if plan.changes:
            plans[provider] = plan
    for provider, plan in plans.items():
        click.echo(f"Taking {provider} out {_shown(folder, scope)}:", err=True)
        click.echo(plan.diff(), err=True)
    if plans and not is_agreed and not agree("Write this?", "--yes"):
        raise Refused("declined", "You said no, so nothing was written.")
    return tuple(_taken_out(provider, folder, plans[provider]) for provider in plans)


def _removal(invocation: Invocation, provider: str, folder: Path, scope: Scope) -> Plan:
    state, plugins = invocation.paths.state, assets.folder("plugins")
    plan: Plan = _INSTALLERS[provider].removal(folder, state, plugins, scope)
    return plan


def _taken_out(provider: str, folder: Path, plan: Plan) -> SetUp:
    apply(plan)
    changed = tuple(change.name for change in plan.changes)
    return SetUp(provider, str(folder), changed, plan.notes)
