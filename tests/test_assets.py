"""What is shipped beside the code is found."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from bridge import assets

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("name", ["hooks", "plugins", "systemd", "launchd"])
def test_each_folder_is_found_in_the_checkout(name: str) -> None:
    assert any(assets.folder(name).iterdir())


def test_a_wheel_holds_each_folder_where_it_is_looked_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]

    shipped = {
        ROOT / source: ROOT / target
        for source, target in wheel["force-include"].items()
        if target.startswith("bridge/assets/")
    }

    assert shipped == {
        assets.folder(name): ROOT / "bridge" / "assets" / name
        for name in ("hooks", "plugins", "systemd", "launchd")
    }


def test_an_unknown_folder_is_a_bug() -> None:
    with pytest.raises(KeyError):
        assets.folder("elsewhere")
