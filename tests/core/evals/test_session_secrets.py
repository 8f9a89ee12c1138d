"""What the processes of a session tell each other of the secrets that they looked up: names, never values."""

from dataclasses import asdict

import pytest

from modelgauge.config.secrets import SecretDescription
from modelgauge.evals.session import SessionSecrets

KEY = SecretDescription("acme", "api_key", "Ask Acme.", ("ACME_KEY",))


@pytest.fixture
def logged():
    return []


@pytest.fixture
def process(tmp_path, logged):
    """A store as another process of the session has it."""
    return lambda: SessionSecrets(tmp_path / "secrets.toml", lambda one: logged.append(asdict(one)))


def test_what_one_process_finds_the_other_learns(process, logged, monkeypatch):
    monkeypatch.setenv("ACME_KEY", "sk-very-secret")
    one, other = process(), process()
    assert [one.find(KEY), one.find(KEY)] == ["sk-very-secret"] * 2
    assert [said["key"] for said in logged] == ["api_key"]
    assert "sk-very-secret" not in str(logged)
    assert other.learn(list(logged)) == []
    assert "sk-very-secret" not in other.redactor.redact("It is sk-very-secret.")


def test_what_is_not_found_is_not_told(process, logged):
    assert process().find(KEY) is None
    assert logged == []


def test_a_secret_that_is_there_no_more_is_told_by_its_name(process, logged, tmp_path, monkeypatch):
    monkeypatch.setenv("ACME_KEY", "sk-very-secret")
    one = process()
    one.find(KEY)
    monkeypatch.delenv("ACME_KEY")
    told = "The value of acme.api_key may stand here, since it could not be looked up again: "
    (note,) = process().learn(logged)
    assert note == f"{told}it was there for a while only, in another process."
    (tmp_path / "secrets.toml").write_text("[acme", encoding="utf-8")
    (note,) = process().learn(logged)
    assert note.startswith(told)
    assert "secrets.toml" in note
    assert one.learn(logged) == []  # it knows the value
