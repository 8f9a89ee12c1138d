"""Four thousand malformed files: each is read, or refused by an error of ours that says what is wrong.

Tables, settings, secrets, chats, records, journals, manifests and cache rows, as seeded damage leaves them.
"""

import json
import random
import sqlite3
import warnings
from contextlib import closing

import pytest
from mutations import damaged
from tiers import sample

from modelgauge import FunctionSUT, Runner, TestItem, load_record, load_records, resume
from modelgauge.cache.explaining import explain
from modelgauge.cache.folder import FolderBackend
from modelgauge.cache.keys import Entry, KeyMaker, pack
from modelgauge.cache.responses import ResponseCache
from modelgauge.config.secrets import OptionalSecret, SecretDescription, SecretStore
from modelgauge.config.settings import Settings, load_settings
from modelgauge.engine.run_files.folder import all_runs
from modelgauge.errors import ModelGaugeError
from modelgauge.interfaces.test import PromptResponseTest
from modelgauge.plugins.discovery import Plugins
from modelgauge.suts.replay import ReplaySUT
from modelgauge.text.chat import load_chat

TIMES = len(sample(range(400), 40))


class Key(OptionalSecret):
    @classmethod
    def description(cls):
        return SecretDescription(scope="acme", key="key", instructions="Ask.")


class Questions(PromptResponseTest):
    def make_test_items(self, dependencies):
        return [TestItem([f"question {n} é"], context={"n": [n, 0.5, None]}) for n in range(4)]

    def measure_quality(self, item):
        if item.context["n"][0] == 3:
            raise ValueError("unmeasurable")
        return {"right": True, "length": len(item.text)}


def answer(text):
    if text.startswith("question 2"):
        raise RuntimeError("no answer")
    return f"an answer to {text}"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a run that was stopped before its last item, with records of all kinds."""
    data_dir = tmp_path_factory.mktemp("runs")
    runner = Runner(data_dir, plugins=Plugins(), settings=Settings(), caching=False)
    runner.run([Questions("questions")], [FunctionSUT("sut", answer, version=1)])
    return all_runs(data_dir)[0].path


def read_replay(suffix):
    def read(folder, data):
        file = folder / f"answers.{suffix}"
        file.write_bytes(data)
        ReplaySUT("replay", str(file))

    return read


def read_settings(folder, data):
    (folder / "modelgauge.toml").write_bytes(data)
    load_settings(folder, env={})


def read_secrets(folder, data):
    file = folder / "secrets.toml"
    file.write_bytes(data)
    file.chmod(0o600)
    SecretStore(env={}, file=file).get(Key)


def read_chat(folder, data):
    file = folder / "chat.json"
    file.write_bytes(data)
    load_chat(file)


def read_record(folder, data):
    file = folder / "record.json"
    file.write_bytes(data)
    for record in load_records(file):
        record.model_dump_json()
        for item in record.iter_items():
            item.model_dump_json()


def read_output(folder, data):
    file = folder / "output.json"
    file.write_bytes(data)
    for record in load_records(file):
        for item in record.iter_items():
            item.model_dump_json()


SETTINGS = b'data_dir = "here"\nconcurrency = 5\ntimeout = 2.5\noffline = true\nplugins = ["a.py", "b"]\n'
SECRETS = '[acme]\nkey = "sk-é\\u00e9"\n[other]\nkey = """\nlong\n"""\n'.encode()
CHAT = json.dumps([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hé"}]).encode()
ROWS = [{"prompt": f"question {n}", "response": f'answer "{n}", é\n'} for n in range(4)]
JSONL = "\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS).encode()
CSV = b'prompt,response\n"question 1","an ""answer"", of\ntwo lines"\nquestion 2,\xc3\xa9\n'

READERS = {
    "replay.jsonl": (read_replay("jsonl"), JSONL),
    "replay.csv": (read_replay("csv"), CSV),
    "modelgauge.toml": (read_settings, SETTINGS),
    "secrets.toml": (read_secrets, SECRETS),
    "chat": (read_chat, CHAT),
}


def survives(read, folder, data, seeds):
    """Read damaged forms of a file; what is raised is ours, and says how it is mended."""
    refused = []
    for seed in seeds:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # unknown fields are told of as warnings
            try:
                read(folder, damaged(data, random.Random(seed)))
            except ModelGaugeError as error:
                refused.append(error)
    assert all(error.problem and error.fix for error in refused)
    return len(refused)


@pytest.mark.parametrize("kind", READERS)
def test_malformed_files_are_refused_in_our_words(tmp_path, kind):
    read, data = READERS[kind]
    read(tmp_path, data)
    assert survives(read, tmp_path, data, range(TIMES)) > TIMES / 20


def test_malformed_records_are_refused_in_our_words(run, tmp_path):
    data = (run / "record.json").read_bytes()
    read_record(tmp_path, data)
    assert survives(read_record, tmp_path, data, range(TIMES)) > TIMES / 4


def test_malformed_output_files_are_refused_in_our_words(run, tmp_path):
    record = load_record(run)
    items = [json.loads(item.model_dump_json()) for item in record.test_item_records]
    failed = [json.loads(item.model_dump_json()) for item in record.test_item_exceptions]
    whole = {
        **json.loads(record.model_dump_json()),
        "test_item_records": items,
        "test_item_exceptions": failed,
    }
    data = json.dumps({"records": [whole, whole]}).encode()
    read_output(tmp_path, data)
    assert survives(read_output, tmp_path, data, range(TIMES)) > TIMES / 4


def test_malformed_journals_are_refused_in_our_words(run, tmp_path):
    data = (run / "items.jsonl").read_bytes()
    (tmp_path / "run.json").write_bytes((run / "run.json").read_bytes())
    (tmp_path / "record.json").write_bytes((run / "record.json").read_bytes())

    def read(folder, journal):
        (folder / "items.jsonl").write_bytes(journal)
        for item in load_record(folder).iter_items():
            item.model_dump_json()

    read(tmp_path, data)
    assert survives(read, tmp_path, data, range(TIMES)) > TIMES / 4


@pytest.mark.parametrize("part", ["run.json", "items.jsonl"])
def test_a_run_with_malformed_files_is_resumed_or_refused(run, tmp_path, part):
    folder = tmp_path / "runs" / run.name
    folder.mkdir(parents=True)
    pieces = {name: (run / name).read_bytes() for name in ("run.json", "items.jsonl")}
    pieces["items.jsonl"] = b"".join(pieces["items.jsonl"].splitlines(keepends=True)[:3])
    test, sut = Questions("questions"), FunctionSUT("sut", answer, version=1)
    ends = []

    def read(_, data):
        for name, content in pieces.items():
            (folder / name).write_bytes(data if name == part else content)
        (folder / "record.json").unlink(missing_ok=True)
        ends.extend(resume(str(folder), tmp_path, test=test, sut=sut, plugins=Plugins(), settings=Settings()))

    read(tmp_path, pieces[part])
    assert ends.pop().counts.items == 4
    refused = survives(read, tmp_path, pieces[part], range(TIMES // 4))
    assert refused + len(ends) == TIMES // 4
    assert all(
        one.counts.items == one.counts.scored + one.counts.failed == 4 for one in ends if not one.failure
    )


def test_malformed_cache_rows_are_never_served(tmp_path):
    source = random.Random(0)
    maker = KeyMaker("sut", {"uid": "sut", "arguments": [1, {"a": "é"}]})
    entries = [Entry(maker.key({"question": n}), json.dumps(f"answer {n} é")) for n in range(TIMES)]
    cache = ResponseCache(FolderBackend(tmp_path / "cache"))
    cache.put_many(entries)
    cache.close()
    with closing(sqlite3.connect(cache.backend.file)) as connection, connection:
        for entry in entries:
            column = source.choice(
                ["value", "value", "value", "key", "raw", "mode", "filename", "expire_time"]
            )
            value = damaged(pack(entry).encode(), source)
            if column != "value":
                value = source.choice([None, 0, -1, 2, 2**40, 0.5, b"\x80\x04", "x", "../../x", b"\xff"])
            elif source.random() < 0.7:
                value = value.decode("utf-8", "replace")
            connection.execute(
                f"UPDATE OR IGNORE Cache SET {column} = ? WHERE key = ?",
                (value, entry.key.digest),
            )
    try:
        for entry in entries:
            assert cache.get(entry.key.digest) in (None, entry.response)
        explain(cache, maker.key("another"))
        cache.verify()
        cache.put_many(entries)
        assert all(cache.get(entry.key.digest) == entry.response for entry in entries)
    finally:
        cache.close()
        cache.leave()
