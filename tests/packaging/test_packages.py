"""The packages in the tree: one name, one version, every part that they name."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridge.providers import packages

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = ROOT / "packaging" / "plugins"
MARKETPLACES = sorted(PLUGINS.rglob("marketplace.json"))
MANIFESTS = sorted(PLUGINS.rglob(".*-plugin/plugin.json"))


def names(paths: list[Path]) -> list[str]:
    return [path.relative_to(PLUGINS).as_posix() for path in paths]


def document(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from texts_in(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from texts_in(each)


def root_of(manifest: Path) -> Path:
    """The folder that a marketplace or plugin manifest speaks of."""
    folder = manifest.parent
    while folder.name.startswith(".") or folder.parent.name.startswith("."):
        folder = folder.parent
    return folder


def test_claude_and_codex_have_both_kinds_of_manifest() -> None:
    for provider in ("claude", "codex"):
        for found in (MARKETPLACES, MANIFESTS):
            assert [name for name in names(found) if name.startswith(provider)]


@pytest.mark.parametrize("path", MARKETPLACES, ids=names(MARKETPLACES))
def test_a_marketplace_and_its_one_plugin_are_both_called_agentworks(
    path: Path,
) -> None:
    marketplace = document(path)
    (plugin,) = marketplace["plugins"]
    source = plugin["source"]
    place = source["path"] if isinstance(source, dict) else source

    assert marketplace["name"] == plugin["name"] == "agentworks"
    assert list((root_of(path) / place).glob(".*-plugin/plugin.json"))


@pytest.mark.parametrize("path", MANIFESTS, ids=names(MANIFESTS))
def test_a_plugin_has_our_name_and_the_products_version(path: Path) -> None:
    manifest = document(path)
    product = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert manifest["name"] == "agentworks"
    assert manifest["version"] == product["version"]


@pytest.mark.parametrize("path", MANIFESTS, ids=names(MANIFESTS))
def test_a_plugin_has_every_part_that_its_manifest_names(path: Path) -> None:
    parts = [text for text in texts_in(document(path)) if text.startswith("./")]
    parts += [text for text in texts_in(document(path)) if text.endswith(".md")]

    assert [part for part in parts if not (root_of(path) / part).exists()] == []
    assert (root_of(path) / "skills" / "agent-messages" / "SKILL.md").exists()


def test_pis_package_has_our_name_version_and_every_part() -> None:
    manifest = document(PLUGINS / "pi" / "package.json")
    product = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    parts = [text for text in texts_in(manifest["pi"]) if text.startswith("./")]

    assert (manifest["name"], manifest["version"]) == ("agentworks", product["version"])
    assert [part for part in parts if not (PLUGINS / "pi" / part).exists()] == []


@pytest.mark.parametrize("provider", sorted(packages.WHOLE))
def test_a_whole_package_waits_for_nothing_to_be_filled_in(
    provider: str, tmp_path: Path
) -> None:
    files = list(packages.of(provider, tmp_path, PLUGINS))
    folder = tmp_path / "plugins" / provider

    assert folder / "skills" / "agent-messages" / "SKILL.md" in [
        file.path for file in files
    ]
    for file in files:
        assert file.path.is_relative_to(folder)
        assert re.search(rb"@[A-Z]+@", file.content) is None, file.path
    assert any(str(tmp_path).encode() in file.content for file in files)


def test_a_provider_without_a_package_of_its_own_has_none(tmp_path: Path) -> None:
    assert list(packages.of("claude", tmp_path, PLUGINS)) == []


def test_nobody_offers_to_answer_for_the_person() -> None:
    """A channel that declares it is sent the host's own questions of permission."""
    asked = b"claude/channel/permission"
    shipped = [ROOT / name for name in ("bridge", "hooks", "packaging/plugins")]
    files = [path for folder in shipped for path in folder.rglob("*") if path.is_file()]

    assert len(files) > 100
    assert [path for path in files if asked in path.read_bytes()] == []


def test_the_manual_allows_the_names_that_the_packages_have() -> None:
    manual = (ROOT / "packaging" / "manual" / "organisations.md").read_text()
    _, _, rest = manual.partition("```json\n")
    allowed = json.loads(rest.partition("```")[0])
    (marketplace,) = [path for path in MARKETPLACES if "claude" in names([path])[0]]
    (plugin,) = document(marketplace)["plugins"]

    assert allowed["channelsEnabled"] is True
    assert allowed["allowedChannelPlugins"] == [
        {"marketplace": document(marketplace)["name"], "plugin": plugin["name"]}
    ]
