"""A folder whose sockets have names short enough for any system."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Ours alone, as programs make the folders of their sockets."""
    folder = Path(tempfile.mkdtemp(prefix="aw-"))
    yield folder
    shutil.rmtree(folder)
