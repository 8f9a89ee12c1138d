"""Data that a test declares `when_used`: fetched when its path is first read, in runs, samples and commands."""

import json
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import pytest

from modelgauge import FunctionSUT, PromptResponseTest, Runner, TestItem, WebData, list_items, resume
from modelgauge.dependencies.store import DependencyStore
from modelgauge.errors import DependencyError, InputFileError
from modelgauge.testing import check_test

CATEGORIES = ("age", "race", "religion")


class ByCategory(PromptResponseTest):
    """Asks the lines of one file of three."""

    def __init__(self, uid, category="age", *, sources, always=None):
        super().__init__(uid)
        self.category, self.sources, self.always = category, sources, always

    def get_dependencies(self):
        always = {} if self.always is None else {"all": self.always}
        return {**always, **self.sources}

    def make_test_items(self, dependencies):
        assert list(dependencies)[-3:] == list(CATEGORIES)
        for line in dependencies[self.category].read_text().split():
            yield TestItem(line, context=line)

    def measure_quality(self, item):
        return {"accuracy": item.text == item.context}


def version_of(category):
    return sha256(f"{category}-1 {category}-2 {category}-3".encode()).hexdigest()


@pytest.fixture
def sources(server, answer_body):
    """The sources of three files on a server; no checksum is declared."""
    return {
        category: WebData(
            server.serve(f"/{category}", answer_body(f"{category}-1 {category}-2 {category}-3".encode())),
            when_used=True,
        )
        for category in CATEGORIES
    }


@pytest.fixture
def fetched(server):
    return lambda: sorted(path for path, _ in server.requests)


def echo(uid="echo"):
    return FunctionSUT(uid, lambda text: text, version=1)


def manifest_of(record, data_dir):
    return json.loads((Path(data_dir) / "runs" / record.run_id / "run.json").read_text(encoding="utf-8"))


def test_only_the_data_that_is_read_is_fetched_and_recorded(sources, fetched, tmp_path):
    (record,) = Runner(tmp_path).run(ByCategory("bbq", "race", sources=sources), echo())
    assert (record.counts.scored, record.failure) == (3, None)
    assert fetched() == ["/race"]
    assert record.dependency_versions == {"race": version_of("race")}
    assert manifest_of(record, tmp_path)["dependency_versions"] == record.dependency_versions


def test_several_suts_and_variants_fetch_once_and_record_their_own(sources, fetched, tmp_path):
    tests = [ByCategory(f"bbq?category={name}", name, sources=sources) for name in ("age", "race")]
    records = Runner(tmp_path).run(tests, [echo("one"), echo("two")])
    assert [[*record.dependency_versions] for record in records] == [["age"], ["age"], ["race"], ["race"]]
    assert fetched() == ["/age", "/race"]


def test_data_that_cannot_be_fetched_stops_its_test_alone(server, sources, answer_body, tmp_path):
    server.serve("/race", answer_body(b"", status=404))
    tests = [ByCategory(name, name, sources=sources) for name in ("race", "age")]
    failed, whole = Runner(tmp_path).run(tests, echo())
    assert whole.counts.scored == 3
    assert (failed.failure.stage, failed.failure.error_type) == ("items", "DownloadError")
    assert "Dependency 'race' of 'race'" in failed.failure.message
    assert "404" in failed.failure.message
    assert (failed.counts.items, failed.dependency_versions) == (0, {})


def test_offline_only_other_data_is_missing_before_the_run(sources, tmp_path):
    always = WebData("http://127.0.0.1:9/all")
    test = ByCategory("bbq", sources=sources, always=always)
    with pytest.raises(DependencyError, match="Dependency 'all' of 'bbq'") as caught:
        Runner(tmp_path, offline=True).run(test, echo())
    assert "age" not in str(caught.value)
    (record,) = Runner(tmp_path, offline=True).run(ByCategory("bbq", sources=sources), echo())
    assert record.failure.error_type == "DependencyMissingError"
    assert "modelgauge dependencies add" in record.failure.message


def test_a_stopped_run_goes_on_with_the_data_that_it_used(server, sources, answer_body, tmp_path):
    runner = Runner(tmp_path, max_calls=1, concurrency=1)
    (stopped,) = runner.run(ByCategory("bbq", sources=sources), echo())
    assert stopped.counts.scored < 3
    assert manifest_of(stopped, tmp_path)["dependency_versions"] == {"age": version_of("age")}
    other = tmp_path / "other.txt"
    other.write_text("something else")
    store = DependencyStore(tmp_path / "dependencies")
    store.add("bbq", "age", sources["age"], other)  # newer than what the run used
    (record,) = resume(
        stopped.run_id, data_dir=tmp_path, test=ByCategory("bbq", sources=sources), sut=echo(), max_calls=9
    )
    assert (record.counts.scored, record.failure) == (3, None)
    assert record.dependency_versions == {"age": version_of("age")}


def test_a_file_that_the_user_gives_is_checked_before_the_run(sources, fetched, tmp_path):
    test = ByCategory("bbq", sources=sources)
    with pytest.raises(InputFileError, match=r"'race' of 'bbq' is to be .*nowhere, which is not there"):
        Runner(tmp_path, dependencies={"race": tmp_path / "nowhere"}).run(test, echo())
    (tmp_path / "mine.txt").write_text("mine")
    (record,) = Runner(tmp_path, dependencies={"age": tmp_path / "mine.txt"}).run(test, echo())
    assert (record.counts.scored, fetched()) == (1, [])


def test_items_can_be_listed_and_checked_with_the_data_that_they_use(sources, fetched, tmp_path):
    listed = list_items(ByCategory("bbq", "religion", sources=sources), data_dir=tmp_path)
    assert len([*listed]) == 3
    assert fetched() == ["/religion"]
    findings = {
        category: {
            finding.rule: finding.status
            for finding in check_test(
                ByCategory("bbq", category, sources=sources), data_dir=tmp_path
            ).findings
        }
        for category in ("religion", "race")
    }
    assert (findings["religion"]["items"], findings["race"]["items"]) == ("ok", "not applicable")
    assert "error" not in findings["race"].values()


def test_listing_keys_fetches_nothing(sources, fetched, tmp_path):
    paths = DependencyStore(tmp_path).paths("bbq", sources)
    assert (len(paths), [*paths], [*paths.keys()]) == (3, [*CATEGORIES], [*CATEGORIES])
    assert "age" in paths
    assert "other" not in paths
    assert "fetched when used" in repr(paths)
    assert paths.get("other") is None
    with pytest.raises(KeyError, match="other"):
        paths["other"]
    assert (fetched(), paths.versions) == ([], {})
    assert paths.get("race").read_text().startswith("race-1")
    assert fetched() == ["/race"]
    assert {key: path.read_text()[:4] for key, path in paths.items()} == {
        "age": "age-",
        "race": "race",
        "religion": "reli",
    }
    assert fetched() == ["/age", "/race", "/religion"]
    assert paths.versions == {category: version_of(category) for category in CATEGORIES}


def test_threads_that_read_a_path_at_once_fetch_once(sources, fetched, tmp_path):
    store = DependencyStore(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        found = {*pool.map(lambda _: store.paths("bbq", sources)["age"], range(8))}
    assert (len(found), fetched()) == (1, ["/age"])


def test_when_used_does_not_change_stored_data(memory, tmp_path):
    store = DependencyStore(tmp_path)
    before = store.resolve("bbq", "age", memory(b"a"))
    marked = memory(b"a", when_used=True)
    assert store.paths("bbq", {"age": marked})["age"] == before.path
    assert marked.fetched == 0
    assert repr(WebData("http://x.org/a", when_used=True)) == repr(WebData("http://x.org/a"))
