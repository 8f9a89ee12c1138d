"""URLs and proxies."""

import pytest

from modelgauge.errors import InvalidOptionError
from modelgauge_openai.address import OFFICIAL, endpoint_url, is_official, models_url, proxy_for


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        (OFFICIAL, "https://api.openai.com/v1/chat/completions"),
        ("http://localhost:8000/v1/", "http://localhost:8000/v1/chat/completions"),
        ("http://[::1]:8000", "http://[::1]:8000/chat/completions"),
    ],
)
def test_where_requests_are_posted(base_url, url):
    assert endpoint_url(base_url) == url


@pytest.mark.parametrize(
    "base_url",
    [
        "",
        "localhost:8000/v1",
        "ftp://host/v1",
        "http:///v1",
        "http://host:port/v1",
        "http://host:99999/v1",
        "http://[::1/v1",
        "http://host/v1?key=canary",
        "http://host/v1#canary",
        "https://user:canary@host/v1",
        "https://canary@host/v1",
        "http://host/v1/chat/completions",
        "http://host/v1/chat/completions/",
    ],
)
def test_what_is_no_base_url(base_url):
    with pytest.raises(InvalidOptionError, match=r"base_url=http://localhost:8000/v1$") as raised:
        endpoint_url(base_url)
    assert "canary" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "official"),
    [
        (OFFICIAL, True),
        ("https://eu.api.openai.com/v1", True),
        ("https://api.openai.com.evil.example/v1", False),
        ("https://notapi.openai.com/v1", False),
        ("http://localhost/api.openai.com", False),
    ],
)
def test_whose_server_it_is(url, official):
    assert is_official(url) == official


@pytest.fixture
def proxied(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("https_proxy", "http://proxy.example:3129")
    monkeypatch.setenv("no_proxy", "internal.example")


@pytest.mark.usefixtures("proxied")
@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("http://host.example/v1", "http://proxy.example:3128"),
        ("https://host.example/v1", "http://proxy.example:3129"),
        ("https://internal.example/v1", None),
        ("http://127.0.0.1:8000/v1", None),
        ("http://[::1]:8000/v1", None),
        ("http://localhost:8000/v1", None),
    ],
)
def test_the_proxy_of_the_environment(url, proxy):
    assert proxy_for(url) == proxy


def test_where_models_are_listed():
    url = endpoint_url("https://x.openai.azure.com/openai/v1", {"api-version": "2024-10-21"})
    assert models_url(url) == "https://x.openai.azure.com/openai/v1/models?api-version=2024-10-21"
