"""A bundle holds what a run is and used, is the same each time, and unpacked is measured again without a paid call."""

import hashlib
import json
import os
import tarfile
from pathlib import Path

import pytest
from bundled_runs import ASKED, Questions, answer, edit_json, edit_lines

from modelgauge import FunctionSUT, TestItem, load_record, rescore, resume
from modelgauge.bundles.bundling import bundle
from modelgauge.bundles.unbundling import unbundle
from modelgauge.cache.opening import existing_cache
from modelgauge.config.redaction import Redactor
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.errors import BundleError, RecordError, UsageError
from modelgauge.files.lock import lock
from modelgauge.plugins.discovery import Plugins


def names_in(file):
    with tarfile.open(file) as archive:
        return archive.getnames()


def test_the_same_run_gives_the_same_bytes(run, data_dir, bundled, tmp_path):
    bundle([run], data_dir, tmp_path / "again.mgb", Redactor())
    assert (tmp_path / "again.mgb").read_bytes() == bundled.read_bytes()
    assert bundled.read_bytes()[4:8] == bytes(4)  # where gzip has the time
    files = [
        f"runs/{run.run_id}/{name}" for name in ("items.jsonl", "record.json", "run.json", "totals.json")
    ]
    assert names_in(bundled) == ["bundle.json", "cache.jsonl", *files]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.mgb", "data", "run.mgb"]


def test_the_manifest_has_the_hash_of_each_file(bundled):
    with tarfile.open(bundled) as archive:
        manifest = json.load(archive.extractfile("bundle.json"))
        for name, said in manifest["files"].items():
            content = archive.extractfile(name).read()
            assert (len(content), hashlib.sha256(content).hexdigest()) == (said["bytes"], said["sha256"])
    # 4 answers, annotations of 2 different ones, and 4 of the judge; the failed item has none
    assert manifest["cache_rows"] == {"kept": 4 + 2 + 4, "missing": 0, "secret": 0}


def test_what_is_unpacked_is_the_run(run, bundled, tmp_path):
    manifest, signed_by = unbundle(bundled, tmp_path / "received")
    assert manifest.runs == (run.run_id,)
    assert "nothing proves who made it" in signed_by
    received = load_record(tmp_path / "received" / "runs" / run.run_id)
    assert received == load_record(run.path)
    assert list(received.iter_items()) == list(load_record(run.path).iter_items())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "received", "run.mgb"]


def test_what_is_unpacked_is_nobodys_own_run(run, bundled, tmp_path):
    unbundle(bundled, tmp_path / "received")
    path = tmp_path / "received" / "runs" / run.run_id / "run.json"
    assert "signature" in run.read_manifest()
    assert "signature" not in json.loads(path.read_text(encoding="utf-8"))
    edit_json(path, lambda manifest: manifest["inputs"].update(judge="acme/judge"))
    with pytest.raises(RecordError, match=r"is not known to be your own\. It names --judge acme/judge"):
        rescore(path.parent, plugins=Plugins(), test=Questions("questions"))


def test_it_is_measured_again_without_a_paid_call(run, bundled, tmp_path):
    unbundle(bundled, tmp_path / "received")
    ASKED.clear()
    folder = tmp_path / "received" / "runs" / run.run_id
    [again] = rescore(folder, plugins=Plugins(), test=Questions("questions"), max_calls=0)
    assert ASKED == []
    assert again.failure is None
    assert again.result == load_record(run.path).result
    assert again.counts.annotator_calls.cached == 4
    assert again.counts.judge_calls.cached == 4


def test_a_stopped_run_goes_on_with_the_answers_of_the_bundle(make_run, data_dir, tmp_path):
    run = make_run()
    done = {"q0", "q1"}
    edit_lines(run, lambda lines: [line for line in lines if line["test_item"]["id"] in done])
    (run.path / "record.json").unlink()
    bundle([run], data_dir, tmp_path / "run.mgb", Redactor())
    unbundle(tmp_path / "run.mgb", tmp_path / "received")
    ASKED.clear()
    folder, sut = tmp_path / "received" / "runs" / run.run_id, FunctionSUT("sut", answer, version=1)
    [record] = resume(folder, plugins=Plugins(), test=Questions("questions"), sut=sut, max_retries=0)
    assert record.counts.scored + record.counts.failed == 5
    asked = {f"q{text[-1]}" for text in ASKED if text.startswith("question")}
    assert asked == {f"q{number}" for number in range(5)} - done
    assert not any(text.startswith("length of") for text in ASKED)  # the bundle has those


def digests_in(folder):
    with existing_cache(str(folder), folder) as cache:
        return {entry.key.digest for entry in cache.entries()}


def test_foreign_rows_never_enter_the_users_cache(make_run, tmp_path, monkeypatch):
    """Also where the settings name one."""
    own = tmp_path / "own"
    monkeypatch.setenv("MODELGAUGE_CACHE", str(own))
    run = make_run()
    bundle([run], tmp_path, tmp_path / "run.mgb", Redactor(), cache=str(own))
    used = digests_in(own)
    with existing_cache(str(own), own) as cache:
        cache.clear()
    unbundle(tmp_path / "run.mgb", tmp_path / "received")
    folder = tmp_path / "received" / "runs" / run.run_id
    [again] = rescore(folder, plugins=Plugins(), test=Questions("questions"), max_calls=0)
    assert again.failure is None
    assert digests_in(own) == set()
    assert digests_in(tmp_path / "received" / "cache") == used


def test_a_run_that_came_in_a_bundle_takes_no_rows_of_the_users_cache_along(bundled, run, data_dir, tmp_path):
    """Its author may have named the keys of anything that the user asked."""
    unbundle(bundled, tmp_path / "received")
    received = RunFolder(tmp_path / "received" / "runs" / run.run_id)
    for path in (tmp_path / "received" / "cache").iterdir():
        path.unlink()
    manifest = bundle([received], data_dir, tmp_path / "on.mgb", Redactor(), cache=str(data_dir / "cache"))
    assert (manifest.cache_rows.kept, manifest.cache_rows.missing) == (0, 10)


def test_a_file_of_a_run_that_is_a_link_is_not_followed(run, data_dir, tmp_path):
    (tmp_path / "private").write_text('{"private": 1}', encoding="utf-8")
    for name in ("totals.json", "record.json", "items.jsonl", "run.json"):
        held = (run.path / name).read_bytes()
        (run.path / name).unlink()
        (run.path / name).symlink_to(tmp_path / "private")
        with pytest.raises(RecordError):
            bundle([run], data_dir, tmp_path / "run.mgb", Redactor())
        (run.path / name).unlink()
        (run.path / name).write_bytes(held)


def test_all_runs_of_a_command_are_in_one_bundle_with_shared_rows_once(make_run, data_dir, tmp_path):
    runs = [make_run(), make_run()]
    manifest = bundle(runs, data_dir, tmp_path / "two.mgb", Redactor())
    assert manifest.runs == tuple(sorted(run.run_id for run in runs))
    assert manifest.cache_rows.kept == 10
    unbundle(tmp_path / "two.mgb", tmp_path / "received")
    assert {path.name for path in (tmp_path / "received" / "runs").iterdir()} == set(manifest.runs)


def test_a_run_whose_cache_is_gone_is_bundled_without_rows(run, data_dir, tmp_path):
    for path in (data_dir / "cache").iterdir():
        path.unlink()
    manifest = bundle([run], data_dir, tmp_path / "run.mgb", Redactor())
    assert (manifest.cache_rows.kept, manifest.cache_rows.missing) == (0, 10)
    unbundle(tmp_path / "run.mgb", tmp_path / "received")


def test_a_torn_line_stays_out(run, data_dir, tmp_path):
    whole = run.journal.read_bytes()
    run.journal.write_bytes(whole + b'{"kind":"item"')
    bundle([run], data_dir, tmp_path / "run.mgb", Redactor())
    unbundle(tmp_path / "run.mgb", tmp_path / "received")
    assert (tmp_path / "received" / "runs" / run.run_id / "items.jsonl").read_bytes() == whole


def test_a_run_that_is_going_on_is_refused(run, data_dir, tmp_path):
    held = lock(run.journal)
    with pytest.raises(BundleError, match=f"The run {run.run_id} is still in progress"):
        bundle([run], data_dir, tmp_path / "run.mgb", Redactor())
    held.close()


def test_two_runs_of_one_name_are_refused(run, data_dir, tmp_path):
    with pytest.raises(BundleError, match=f"Two of the runs have the id {run.run_id}"):
        bundle([run, RunFolder(run.path)], data_dir, tmp_path / "run.mgb", Redactor())


def test_only_a_plain_file_is_replaced(run, data_dir, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for output in (Path(os.devnull), tmp_path / "link", tmp_path):
        with pytest.raises(UsageError, match="is not a plain file"):
            bundle([run], data_dir, output, Redactor())


def test_a_folder_that_exists_is_left_alone(bundled, tmp_path):
    (tmp_path / "received").mkdir()
    with pytest.raises(UsageError, match="received exists already"):
        unbundle(bundled, tmp_path / "received")
    assert list((tmp_path / "received").iterdir()) == []


def test_a_folder_in_which_nothing_can_be_written_is_named(bundled, tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match=r"file cannot be written to: .* Give a folder in one of your own"):
        unbundle(bundled, tmp_path / "file" / "received")


# --- secrets and texts -----------------------------------------------------------------------------------------------


def test_a_run_that_holds_a_secret_is_not_bundled(run, data_dir, tmp_path):
    secret = Redactor()
    secret.add("acme.key", "question 2 and more")
    edit_lines(run, lambda lines: lines[1]["test_item"].update(context={"x": "question 2 and more"}))
    with pytest.raises(BundleError, match=r"items.jsonl, line 2: the secret acme.key stands there"):
        bundle([run], data_dir, tmp_path / "run.mgb", secret)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_rows_with_a_secret_are_left_out(run, data_dir, tmp_path):
    secret = Redactor()
    secret.add("acme.key", "Is 'yes' sound for")  # stands in a row of the judge, and in no file of the run
    manifest = bundle([run], data_dir, tmp_path / "run.mgb", secret)
    assert (manifest.cache_rows.kept, manifest.cache_rows.secret) == (9, 1)
    with tarfile.open(tmp_path / "run.mgb") as archive:
        assert b"Is 'yes' sound for" not in archive.extractfile("cache.jsonl").read()


class Talkative(Questions):
    def make_test_items(self, dependencies):
        yield TestItem(["a private question", "a private question"], context="a private context", id="q0")
        yield TestItem(["question 3"], id="q1")

    def measure_quality(self, item):
        return {"right": 1.0}


def test_without_texts_no_text_is_in_the_bundle(make_run, data_dir, tmp_path):
    run = make_run(Talkative("talkative"))
    manifest = bundle([run], data_dir, tmp_path / "run.mgb", Redactor(), redact=True)
    assert manifest.redacted
    unbundle(tmp_path / "run.mgb", tmp_path / "received")
    everything = b"".join(path.read_bytes() for path in (tmp_path / "received").rglob("*") if path.is_file())
    for text in (b"private", b"question 3", b"sound", b'"no"', b"Traceback"):
        assert text not in everything
    assert not (tmp_path / "received" / "cache").exists()
    received = load_record(tmp_path / "received" / "runs" / run.run_id)
    assert received.result == load_record(run.path).result
    first, second = received.test_item_records[0].test_item.prompts
    assert first == second  # that they are equal can still be told
    [again] = rescore(received.run_id, tmp_path / "received", plugins=Plugins(), test=Talkative("talkative"))
    assert [failure.error_type for failure in again.test_item_exceptions] == [
        "RedactedAnswerError",
        "ValueError",
    ]
