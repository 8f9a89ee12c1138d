"""`--log-level`: standard logging goes to stderr while a command runs, and is left as it was."""

import logging
import os
import sys

import pytest

from modelgauge.cli.streams import logging_to_stderr, reserved_stdout

LEAKY = """
import logging
import modelgauge as mg


class Key(mg.RequiredSecret):
    @classmethod
    def description(cls):
        return mg.SecretDescription("acme", "key", "Ask acme.", env=("ACME_TOKEN",))


class Leaky(mg.PromptResponseSUT[str, str]):
    def __init__(self, uid, key):
        super().__init__(uid)
        self.key = key.value

    def translate_text_prompt(self, prompt):
        return prompt.text

    def evaluate(self, request):
        logging.getLogger("leaky").debug("asked with %s", self.key)
        logging.getLogger("leaky").warning("\\x1b[2Jmy key is %s", self.key)
        return "yes"

    def translate_response(self, request, response):
        return mg.SUTResponse(completions=[mg.SUTCompletion(text=response)])


@mg.hookimpl
def modelgauge_register_suts(register):
    register("leaky", Leaky, mg.InjectSecret(Key))
"""


def test_runs_and_failures_are_logged_where_they_are_asked_for(run):
    args = ("run-test", "--sut", "flaky", "--test", "numbers", "--max-retries", "0", "--json")
    quiet = run(*args)
    assert "INFO" not in quiet.err
    told = run("--log-level", "info", *args, "--no-caching")
    assert "numbers on flaky" in told.err
    assert "item n3 failed at flaky: ValueError: cannot answer 3" in told.err
    assert f"Run {told.json['records'][0]['run_id']} ended after " in told.err
    assert told.json["records"]


@pytest.mark.parametrize("level", ["debug", "WARNING"])
def test_what_plugins_log_comes_without_secrets_and_control_characters(run, here, monkeypatch, level):
    monkeypatch.setenv("ACME_TOKEN", "canary-0123456789")
    (here / "leaky.py").write_text(LEAKY, encoding="utf-8")
    ended = run(
        "run-test", "--plugin", "leaky.py", "--sut", "leaky", "--test", "judged", "--log-level", level
    )
    assert ended.code == 0
    assert "WARNING leaky: \\x1b[2Jmy key is [secret acme.key]" in ended.err
    assert ("DEBUG leaky: asked with [secret acme.key]" in ended.err) == (level == "debug")
    assert "canary" not in ended.err


def test_errors_only(run, here, monkeypatch):
    monkeypatch.setenv("ACME_TOKEN", "canary-0123456789")
    (here / "leaky.py").write_text(LEAKY, encoding="utf-8")
    ended = run(
        "run-test", "--plugin", "leaky.py", "--sut", "leaky", "--test", "judged", "--log-level", "error"
    )
    assert ended.err == ""


def test_logging_is_left_as_it_was(run):
    root = logging.getLogger()
    before = list(root.handlers), root.level
    run("--log-level", "debug", "list")
    assert (list(root.handlers), root.level) == before


def test_the_password_of_a_misspelt_proxy_is_in_no_file_and_on_no_terminal(run, tmp_path, monkeypatch):
    plugin = tmp_path / "proxied.py"
    plugin.write_text(
        "import os, logging\n"
        "import modelgauge as mg\n"
        "def ask(text):\n"
        "    logging.getLogger('client').warning('proxy %s', os.environ['HTTPS_PROXY'])\n"
        "    raise ValueError('InvalidURL: ' + os.environ['HTTPS_PROXY'])\n"
        "@mg.hookimpl\n"
        "def modelgauge_register_suts(register):\n"
        "    register('proxied', mg.FunctionSUT, ask)\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("HTTPS_PROXY", "user:passw0rd@host:notaport")
    ended = run("run-test", "--test", "numbers", "--sut", "proxied", "--plugin", str(plugin), "-m", "1")
    assert "InvalidURL: user:[secret HTTPS_PROXY]@host:notaport" in " ".join(ended.out.split())
    shown = run("run-test", "--test", "http://me:an0ther-one@host", "--sut", "proxied")
    assert "http://[secret of a URL]@host" in " ".join(shown.err.split())
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path != plugin]
    assert not any(
        b"passw0rd" in one or b"an0ther" in one
        for one in [*written, (ended.out + ended.err + shown.out + shown.err).encode()]
    )


def test_a_message_that_cannot_be_written_ends_nothing(capsys):
    def note(text):
        raise OSError("no terminal")

    with logging_to_stderr(note):
        logging.getLogger("client").warning("hello")
    assert "OSError: no terminal" in capsys.readouterr().err


def test_stdout_is_put_aside_by_its_number_and_put_back(tmp_path, monkeypatch):
    with (tmp_path / "out").open("w") as out, (tmp_path / "err").open("w") as err:
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        sys.stdout.write("before\n")
        with reserved_stdout() as kept:
            sys.stdout.write("printed\n")
            sys.stdout.flush()
            os.write(out.fileno(), b"by number\n")
            kept.write("kept\n")
        assert sys.stdout is out
        os.write(out.fileno(), b"after\n")
    assert (tmp_path / "out").read_text() == "before\nkept\nafter\n"
    assert (tmp_path / "err").read_text() == "printed\nby number\n"
