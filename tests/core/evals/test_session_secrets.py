"""What the processes of a session tell each other of the secrets that they looked up: names, never values."""

import pytest

from modelgauge.config.secrets import SecretDescription
from modelgauge.evals.session_secrets import SessionSecrets

KEY = SecretDescription("acme", "api_key", "Ask Acme.", ("ACME_KEY",))


@pytest.fixture
def process(tmp_path):
    """A store as another process of the session has it."""
    (tmp_path / "session").mkdir()

    def made():
        return SessionSecrets([tmp_path / "nowhere", tmp_path / "session"], tmp_path / "secrets.toml")

    return made


def left(folder):
    return "".join(file.read_text(encoding="utf-8") for file in folder.glob("session/*.jsonl"))


def test_what_one_process_finds_the_other_learns(process, tmp_path, monkeypatch):
    monkeypatch.setenv("ACME_KEY", "sk-very-secret")
    one, other = process(), process()
    assert [one.find(KEY), one.find(KEY)] == ["sk-very-secret"] * 2
    told = left(tmp_path)
    assert told.count("\n") == 1
    assert "api_key" in told
    assert "sk-very-secret" not in told
    assert other.learn([tmp_path / "nowhere", tmp_path / "session"]) == []
    assert "sk-very-secret" not in other.redactor.redact("It is sk-very-secret.")


def test_what_is_not_found_is_not_told(process, tmp_path):
    assert process().find(KEY) is None
    assert left(tmp_path) == ""


def test_a_secret_that_is_there_no_more_is_told_by_its_name(process, tmp_path, monkeypatch):
    monkeypatch.setenv("ACME_KEY", "sk-very-secret")
    one = process()
    one.find(KEY)
    monkeypatch.delenv("ACME_KEY")
    told = "The value of acme.api_key may stand here, since it could not be looked up again: "
    (note,) = process().learn([tmp_path / "session"])
    assert note == f"{told}it was there for a while only, in another process."
    (tmp_path / "secrets.toml").write_text("[acme", encoding="utf-8")
    (note,) = process().learn([tmp_path / "session"])
    assert note.startswith(told)
    assert "secrets.toml" in note
    assert one.learn([tmp_path / "session"]) == []  # it knows the value
