"""What a process with secrets asks of the system (tests/faults looks from outside)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ASK = """
import resource, sys
from bridge.service.own_process import shield_own_process
soft, hard = int(sys.argv[1]), resource.getrlimit(resource.RLIMIT_NOFILE)[1]
hard = int(sys.argv[2]) if len(sys.argv) > 2 else hard
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
shield_own_process()
shield_own_process()
for limit in (resource.RLIMIT_CORE, resource.RLIMIT_NOFILE):
    print(*resource.getrlimit(limit))
print(hard)
"""


def shielded(*words: str) -> list[int]:
    """Core's two limits, the descriptors' two, and what the hard one was before."""
    done = subprocess.run(
        [sys.executable, "-c", ASK, *words],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return [int(word) for word in done.stdout.split()]


def test_no_core_is_left() -> None:
    assert shielded("256")[:2] == [0, 0]


@pytest.mark.parametrize("words", [("256",), ("256", "512"), ("512", "512")])
def test_descriptors_are_raised_as_far_as_allowed(words: tuple[str, ...]) -> None:
    _, _, soft, hard, allowed = shielded(*words)

    assert hard == allowed
    assert soft == (8192 if allowed == -1 else min(8192, allowed))
