"""Which servers may be spoken to, and how."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from bridge.errors import EXIT_CONFIG, Refused
from bridge.upstream.clients import embedded, open_server, remote

PROXY = "http://proxy.invalid:3128"


@pytest.fixture
def proxied() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in ("HTTP_PROXY", "HTTPS_PROXY")}
    os.environ.update(dict.fromkeys(before, PROXY))
    yield
    for name, value in before.items():
        os.environ.pop(name)
        if value is not None:
            os.environ[name] = value


def proxies(client: httpx.AsyncClient) -> list[str]:
    return [pattern.pattern for pattern in client._mounts]


@pytest.mark.parametrize(
    "url",
    [
        "https://agentworks.example",
        "https://agentworks.example/",
        "http://127.0.0.1:8080",
        "http://127.9.9.9",
        "http://[::1]:1",
        "http://localhost:9",
    ],
)
def test_tls_and_this_computer_may_be_spoken_to(url: str) -> None:
    assert remote(url).base_url == url.rstrip("/")


@pytest.mark.parametrize(
    "url",
    [
        "http://agentworks.example",
        "http://127.0.0.1.example",
        "http://localhost.example",
        "http://0.0.0.0",
        "ftp://agentworks.example",
        "agentworks.example",
        "https://",
        "",
        "https://me:secret@agentworks.example",
        "https://agentworks.example/?token=secret",
    ],
)
def test_any_other_address_is_refused_without_being_quoted(url: str) -> None:
    with pytest.raises(Refused) as caught:
        remote(url)
    assert caught.value.exit_code == EXIT_CONFIG
    assert "secret" not in caught.value.sentence()


@pytest.mark.usefixtures("proxied")
async def test_this_computer_is_never_reached_through_a_proxy() -> None:
    for address in (embedded(Path("server.sock")), remote("http://127.0.0.1:1")):
        async with open_server(address) as server:
            assert proxies(server.calls) == []
            assert proxies(server.streams) == []


@pytest.mark.usefixtures("proxied")
async def test_tls_goes_through_the_environments_proxy_as_a_tunnel() -> None:
    async with open_server(remote("https://agentworks.example")) as server:
        assert "https://" in proxies(server.calls)
        assert "https://" in proxies(server.streams)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ALL_PROXY", "socks5://me:cnry-secret@proxy.invalid"),  # needs more software
        ("HTTPS_PROXY", "ftp://me:cnry-secret@proxy.invalid"),
        ("HTTPS_PROXY", "http://me:cnry-secret@proxy:port"),
        ("SSL_CERT_FILE", "/no/such/file"),
        ("SSL_CERT_FILE", "/etc"),
        ("SSL_CERT_FILE", "/etc/hostname"),
    ],
)
async def test_variables_that_cannot_be_used_are_a_sentence_without_their_value(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(Refused) as caught:
        async with open_server(remote("https://agentworks.example")):
            pytest.fail("opened")

    assert caught.value.exit_code == EXIT_CONFIG
    assert name in caught.value.sentence()
    assert "secret" not in caught.value.sentence()
    async with open_server(remote("http://127.0.0.1:1")):
        pass


async def test_the_http_library_does_not_log_addresses() -> None:
    async with open_server(embedded(Path("server.sock"))):
        for name in ("httpx", "httpcore"):
            assert not logging.getLogger(name).isEnabledFor(logging.INFO)
