"""The cache for repeating a run: the one that it used, unless the caller gives another."""

import json
import shutil
from contextlib import nullcontext

import click
import pytest

from modelgauge import FunctionSUT, rescore, resume, run_test
from modelgauge.cli import run_cache
from modelgauge.cli.app import App
from modelgauge.config.settings import load_settings
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.errors import CacheError, RecordError
from modelgauge.rerun.again import plan_resume
from modelgauge.rerun.original import OriginalRun
from modelgauge.testing import FakeAnnotator, FakeTest

URL = "postgresql://team@127.0.0.1:1/modelgauge"


@pytest.fixture
def stopped(tmp_path, monkeypatch):
    """`stopped(cache=…)`: a run with two of four records, all of whose calls are paid."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    asked = []
    judge = FakeAnnotator("judge", 1)
    test = FakeTest("four", ["a", "b", "c", "d"], lambda _: {"m": 1}, {"judge": judge})
    sut = FunctionSUT("sut", lambda text: asked.append(text) or text, version=1)

    def make(**options):
        record = run_test(test, sut, data_dir=tmp_path / "data", **options)
        folder = RunFolder(tmp_path / "data" / "runs" / record.run_id)
        lines = folder.journal.read_bytes().splitlines(keepends=True)
        folder.journal.write_bytes(b"".join(lines[:2]))
        (folder.path / "record.json").unlink()
        asked.clear()
        return folder, {"test": test, "sut": sut}, asked

    return make


def test_resume_its_plan_and_rescore_use_the_cache_of_the_run(stopped, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder, objects, asked = stopped(cache="shared")
    assert folder.read_manifest()["options"]["cache"] == str(tmp_path / "shared")
    monkeypatch.chdir("/")
    monkeypatch.setenv("MODELGAUGE_CACHE", str(tmp_path / "of the settings"))
    [plan] = plan_resume(folder.path, **objects)
    assert (plan.sut_calls.paid, plan.sut_calls.cached, plan.annotator_calls.paid) == (0, 2, 0)
    [record] = rescore(folder.path, test=objects["test"])
    assert (record.counts.annotator_calls.paid, record.counts.annotator_calls.cached) == (0, 2)
    [record] = resume(folder.path, **objects)
    assert (asked, record.counts.scored) == ([], 4)
    assert not (tmp_path / "data" / "cache").exists()


def test_cache_of_the_data_folder_goes_before_that_of_the_settings(stopped, tmp_path, monkeypatch):
    folder, objects, asked = stopped()
    monkeypatch.setenv("MODELGAUGE_CACHE", str(tmp_path / "of the settings"))
    resume(folder.path, **objects)
    assert asked == []


def test_given_cache_goes_before_that_of_the_run(stopped, tmp_path):
    folder, objects, asked = stopped(cache=str(tmp_path / "shared"))
    resume(folder.path, cache=str(tmp_path / "other"), **objects)
    assert len(asked) == 2
    assert (tmp_path / "other" / "cache.db").exists()


def test_cache_that_is_gone_stops_everything_before_a_call(stopped, tmp_path):
    folder, objects, asked = stopped(cache=str(tmp_path / "shared"))
    shutil.move(tmp_path / "shared", tmp_path / "moved")
    for again in (plan_resume, resume):
        with pytest.raises(CacheError, match=r"used the cache in .*shared, which is missing"):
            again(folder.path, **objects)
    assert (asked, (tmp_path / "shared").exists()) == ([], False)
    resume(folder.path, cache=str(tmp_path / "moved"), **objects)
    assert asked == []


def test_run_without_caching_needs_no_cache(stopped, tmp_path):
    folder, objects, asked = stopped(cache=str(tmp_path / "shared"), caching=False)
    resume(folder.path, **objects)
    assert len(asked) == 2


def test_cache_url_of_unsigned_run_is_not_used(stopped, tmp_path):
    folder, objects, _ = stopped()
    manifest = folder.read_manifest()
    manifest["options"]["cache"] = URL
    (folder.path / "run.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(RecordError, match=f"--cache {URL}"):
        rescore(folder.path, test=objects["test"])


# --- passwords ----------------------------------------------------------------------------------------------


def refusing(passwords):
    """Opens no cache: its server refuses URLs without a password, or with a wrong one."""

    def existing_cache(url, _data_dir):
        passwords.append(url)
        if ":right%2F@" in url:
            return nullcontext()
        raise CacheError("The cache cannot be reached: password authentication failed.", fix="Correct it.")

    return existing_cache


@pytest.fixture
def of_url(stopped):
    folder, _, _ = stopped()
    manifest = folder.read_manifest()
    manifest["options"]["cache"] = URL
    folder.write_manifest(manifest, str)
    return folder


def test_password_is_asked_for_at_a_terminal(of_url, monkeypatch):
    tried, answers = [], iter(["wrong", "right/"])
    monkeypatch.setattr("modelgauge.cache.opening.existing_cache", refusing(tried))
    monkeypatch.setattr(click, "prompt", lambda *_, **__: next(answers))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert run_cache.cache_of_runs(App(), [of_url]) == URL.replace("team@", "team:right%2F@")
    assert len(tried) == 3


def test_nobody_is_asked_for_a_password_without_a_terminal(of_url, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert run_cache.cache_of_runs(App(), [of_url]) is None


def test_password_of_the_settings_is_used_for_the_same_url(of_url, monkeypatch):
    with_password = URL.replace("team@", "team:secret@")
    original = OriginalRun(of_url)
    monkeypatch.setenv("MODELGAUGE_CACHE", with_password)
    assert original.cache(load_settings()) == {"cache": with_password}
    monkeypatch.setenv("MODELGAUGE_CACHE", with_password.replace("team", "other"))
    assert original.cache(load_settings()) == {"cache": URL}
