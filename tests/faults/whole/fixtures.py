"""What the tests of the machines stand on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.whole.host import Codex, codex_process


@pytest.fixture(scope="session")
def codex(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Codex]:
    """One Codex for all scripts."""
    with codex_process(tmp_path_factory.mktemp("codex")) as started:
        yield started
