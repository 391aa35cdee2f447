"""Which service manager runs this person's bridge, or could.

Promises that a service of another state folder is never taken for this one's.
"""

from __future__ import annotations

import sys

from bridge.paths import Paths
from bridge.service.plan import Service
from bridge.service.systemd import Systemd


def manager() -> Service:
    """This system's kind of service manager, whether it is there or not."""
    if sys.platform == "darwin":
        from bridge.service.launchd import Launchd

        return Launchd()
    return Systemd()


def installed(paths: Paths) -> Service | None:
    """The manager with a service of ours for this state folder, if there is one."""
    service = manager()
    if not service.file.exists():
        return None
    plan = service.plan()
    return service if plan is not None and plan.state == paths.state else None
