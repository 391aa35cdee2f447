"""Settings and credentials: strict, private, and never quoted."""

from __future__ import annotations

import os
import stat
import traceback
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.config import (
    Credentials,
    ParentLogin,
    Settings,
    load_parent_login,
    load_settings,
    save_settings,
    server_address,
)
from bridge.errors import EXIT_CONFIG, Refused

TOKEN = "cnry-token"
SIGNED_IN = Settings("https://example.org", Credentials(TOKEN, "cnry-refresh", 12.0))


def write(file: Path, content: bytes) -> Path:
    file.write_bytes(content)
    file.chmod(0o600)
    return file


def test_without_a_file_the_server_is_embedded(tmp_path: Path) -> None:
    settings = load_settings(tmp_path / "config.json")

    assert settings == Settings()
    assert settings.is_embedded
    assert os.listdir(tmp_path) == []


def test_settings_survive_the_disk(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    save_settings(file, SIGNED_IN)

    assert load_settings(file) == SIGNED_IN
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_embedded_server_may_be_named_in_the_file(tmp_path: Path) -> None:
    file = write(tmp_path / "config.json", b'{"server": "embedded"}')

    assert load_settings(file) == Settings()
    assert load_settings(file, "embedded") == Settings()


def test_a_bad_address_is_refused_with_every_choice_there_is(tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        load_settings(tmp_path / "config.json", "Embeded")

    for choice in ("https://HOST", "http://localhost:PORT", "unix:///PATH", "embedded"):
        assert choice in refused.value.sentence()


def test_another_server_gets_no_token_of_this_one(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    save_settings(file, SIGNED_IN)

    assert load_settings(file, "https://example.org/") == SIGNED_IN
    assert load_settings(file, "https://evil.example") == Settings(
        "https://evil.example"
    )
    assert load_settings(file, "embedded") == Settings()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"server":5}',
        b'{"serer":"cnry-token"}',
        b'{"cnry-token":1}',
        b'{"credentials":{"refresh_token":"cnry-token"}}',
        b'{"credentials":{"access_token":"cnry-token","extra":1}}',
        b'{"server":"\\ud800 cnry-token"}',
        b'{"server":"\xff cnry-token"}',
        b"[" * 5000,
    ],
)
def test_a_file_that_is_not_settings_is_refused_unquoted(
    tmp_path: Path, content: bytes
) -> None:
    file = write(tmp_path / "config.json", content)

    with pytest.raises(Refused) as caught:
        load_settings(file)

    told = "".join(traceback.format_exception(caught.value)) + caught.value.hint
    assert str(file) in told
    assert "cnry-token" not in told
    assert caught.value.exit_code == EXIT_CONFIG
    assert file.read_bytes() == content


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"wake":"sometimes"}', "wrong kind (wake)"),
        (b'{"credentials":{"access_token":5}}', "(credentials.access_token)"),
        (b'{"wakes":"never"}', "does not know (it knows server, credentials, wake,"),
        (b'{"credentials":{"access_token":"a","b":1}}', "not know (credentials)"),
    ],
)
def test_the_place_of_what_is_wrong_is_named(
    tmp_path: Path, content: bytes, words: str
) -> None:
    with pytest.raises(Refused) as caught:
        load_settings(write(tmp_path / "config.json", content))

    assert words in caught.value.sentence()


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "config.json", b"{}")
    file.chmod(0o640)

    with pytest.raises(Refused, match="other users"):
        load_settings(file)


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "config.json", b" " * 100_000 + b"{}")

    with pytest.raises(Refused, match="larger than"):
        load_settings(file)


def test_the_login_of_a_server_is_read_as_it_left_it(tmp_path: Path) -> None:
    content = b'{"account":"local","connection_id":"oauth-local","token":"cnry-token"}'
    file = tmp_path / "parent.json"
    assert load_parent_login(file) is None

    login = load_parent_login(write(file, content))

    assert login == ParentLogin("local", "oauth-local", "cnry-token")
    assert "cnry" not in repr(login)


@pytest.mark.parametrize(
    "content",
    [b"", b"{cnry-token", b'{"cnry-token":1}', b'{"token":"cnry-token"}', b"[" * 5000],
)
def test_a_file_that_is_no_login_is_refused_unquoted(
    tmp_path: Path, content: bytes
) -> None:
    file = write(tmp_path / "parent.json", content)

    with pytest.raises(Refused) as caught:
        load_parent_login(file)

    assert str(file) in caught.value.sentence()
    assert "cnry-token" not in "".join(traceback.format_exception(caught.value))


def test_no_repr_shows_a_token() -> None:
    assert "cnry" not in repr(SIGNED_IN)
    assert "cnry" not in f"{SIGNED_IN.credentials}"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("https://example.org", "https://example.org"),
        ("https://EXAMPLE.org/", "https://example.org"),
        ("https://example.org:8443/team/", "https://example.org:8443/team"),
        ("http://localhost:8000", "http://localhost:8000"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000"),
        ("http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_an_address_has_one_spelling(text: str, address: str) -> None:
    assert server_address(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        "example.org",
        "ftp://example.org",
        "https://",
        "https://me:secret@example.org",
        "https://example.org/?token=secret",
        "https://example.org/#x",
        "https://example.org:port",
        "http://example.org",
        "http://localhost.example.org",
        "http://10.0.0.1",
        "https://[::1",
    ],
)
def test_an_address_that_would_leak_is_refused(text: str) -> None:
    with pytest.raises(Refused) as caught:
        server_address(text)

    assert caught.value.exit_code == EXIT_CONFIG
    assert "secret" not in caught.value.sentence()


@given(st.text(max_size=80))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    try:
        address = server_address(text)
    except Refused:
        return

    assert server_address(address) == address
