"""How long to wait before the server is asked again.

Owns full jitter and the server's own Retry-After. Promises a wait between 0 and
CAP_S that differs between attachments, plus the server's floor, which is obeyed
up to RETRY_AFTER_CAP_S; and that nonsense in a header is as good as none.
"""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime

from msgspec import Struct

BASE_S = 0.5
CAP_S = 30.0
# A connection that held this long was good: the next failure starts from BASE_S.
HEALTHY_S = 60.0
RETRY_AFTER_CAP_S = 900.0
# 2 ** 6 * BASE_S is past the cap; more would only make large numbers.
_LARGEST_POWER = 6


class Backoff(Struct, frozen=True):
    """The failures in a row of one stream or sender."""

    failures: int = 0


def failed(
    backoff: Backoff,
    healthy_for_s: float,
    fraction: float,
    retry_after_s: float | None = None,
) -> tuple[Backoff, float]:
    """The next state, and how many seconds to wait.

    `healthy_for_s` is how long the connection that now failed had worked, 0 if it
    never did. `fraction` is random, from 0 up to 1. `retry_after_s` is the
    server's own floor, from `retry_after`.
    """
    before = 0 if healthy_for_s >= HEALTHY_S else backoff.failures
    longest = min(CAP_S, BASE_S * 2 ** min(before, _LARGEST_POWER))
    floor = min(max(retry_after_s or 0.0, 0.0), RETRY_AFTER_CAP_S)
    return Backoff(before + 1), floor + fraction * longest


def retry_after(value: str, at: float, server_date: str = "") -> float | None:
    """Seconds from a Retry-After header, capped; None for nonsense.

    `value` is seconds or an HTTP date. A date counts from `server_date`, the
    Date header of the same answer, since our clock may be wrong; without one
    from `at`, in wall seconds. A date in the past is 0.
    """
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(float(text), RETRY_AFTER_CAP_S)
    until = _moment(text)
    if until is None:
        return None
    now = _moment(server_date)
    wait_s = until - (at if now is None else now)
    return min(max(wait_s, 0.0), RETRY_AFTER_CAP_S)


def _moment(text: str) -> float | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
