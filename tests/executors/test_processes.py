"""Runs on several processes: the same records as in one, whatever becomes of the workers."""

from collections import Counter

import pytest

from modelgauge import FunctionSUT, Runner
from modelgauge.config.secrets import SecretStore
from modelgauge.config.settings import load_settings
from modelgauge.errors import InvalidOptionError, UsageError

TESTS_WITH_DATA = """
from pathlib import Path
from modelgauge import LocalData, PromptResponseTest, TestItem, hookimpl

class Lines(PromptResponseTest):
    def get_dependencies(self):
        return {self.uid: LocalData(Path(__file__).with_name(self.uid))}

    def make_test_items(self, dependencies):
        return [TestItem([line]) for line in dependencies[self.uid].read_text().split()]

    def measure_quality(self, item):
        return {"length": len(item.text)}

@hookimpl
def modelgauge_register_tests(register):
    register("left", Lines)
    register("right", Lines)
"""


class Seen:
    """An observer that looks at answers."""

    def __init__(self):
        self.answers = []

    def run_started(self, run):
        pass

    def item_finished(self, run_id, record):
        self.answers.append(record.interactions[0].response.completions[0].completion.text)

    def run_finished(self, record):
        pass


def test_a_run_is_the_same_item_by_item(counting, monkeypatch):
    monkeypatch.undo()  # its workers are interpreters of their own, as those of users are
    alone = counting.run(executor="local", workers=None, caching=False)
    seen = Seen()
    record = counting.run(caching=False, options={"seconds": 0.01}, observers=[seen])
    assert counting.items_of(record) == counting.items_of(alone)
    assert len(seen.answers) == 40
    assert (record.result, record.counts, record.failure) == (alone.result, alone.counts, None)
    assert len({process for process, _ in counting.calls()[40:]}) == 2
    assert counting.rescore(record).result == alone.result


def test_blocked_answers_are_counted_in_run_of_workers_and_in_its_rescore(counting):
    record = counting.run(options={"mood": "blocked"})
    assert (record.counts.scored, record.counts.sut_errors, record.counts.blocked) == (36, 4, 4)
    assert counting.rescore(record).counts.blocked == 4
    assert len(counting.calls()) == 40


def test_each_test_of_a_run_has_its_own_data(counting, tmp_path):
    plugin = tmp_path / "tests_with_data.py"
    plugin.write_text(TESTS_WITH_DATA)
    (tmp_path / "left").write_text("a b")
    (tmp_path / "mine").write_text("c d e")
    settings = load_settings(plugins=[counting.plugin, str(plugin)])
    runner = Runner(
        **{**counting.usual(), "settings": settings}, dependencies={"right:right": tmp_path / "mine"}
    )
    records = runner.run(["left", "right"], counting.name())
    assert [record.counts.scored for record in records] == [2, 3]


def test_an_item_that_kills_its_workers_fails_and_the_others_are_done(counting):
    record = counting.run(options={"kills": "word 3"}, caching=False)
    [failed] = record.test_item_exceptions
    assert failed.test_item.id == "item 3"
    assert "3 workers ended while they worked on this item" in failed.message
    assert record.counts.scored == 39


def test_workers_share_one_cold_cache(counting):
    counting.run("words?number=60&different=12", workers=4, options={"seconds": 0.05})
    asked = [prompt for _, prompt in counting.calls()]
    assert sorted(asked) == sorted(set(asked))
    assert len(asked) == 12
    again = counting.run("words?number=60&different=12", options={"seconds": 0.05})
    assert (again.counts.sut_calls.paid, again.counts.sut_calls.cached) == (0, 60)


def test_a_cap_is_that_of_all_workers(counting):
    record = counting.run(workers=3, max_calls=7, caching=False, options={"seconds": 0.02})
    assert len(counting.calls()) == record.spent.attempts == 7
    assert "The cap of 7 calls is reached" in record.failure.message
    resumed = counting.resume(record, max_calls=100)
    assert (resumed.counts.scored, resumed.failure) == (40, None)
    assert len(counting.calls()) == 40


def test_a_run_that_uses_the_cache_alone_sends_nothing(counting):
    counting.run(max_test_items=10)
    asked = counting.calls()
    record = counting.run(only_cached=True)
    assert counting.calls() == asked
    assert (record.counts.scored, record.counts.sut_errors) == (10, 30)
    assert {failed.error_type for failed in record.test_item_exceptions} == {"NotCachedError"}


def test_a_cap_of_dollars_is_exceeded_by_calls_under_way_at_most(counting):
    record = counting.run(
        "words?number=200", workers=3, max_cost=0.25, concurrency=6, options={"price": 0.01, "seconds": 0.01}
    )
    assert 25 <= len(counting.calls()) <= 25 + 6
    assert record.spent.cost_usd == pytest.approx(0.01 * len(counting.calls()))
    assert "$0.25 is reached" in record.failure.message


def test_the_places_for_calls_are_those_of_all_workers_and_a_rate_limit_is_waited_out(counting):
    options = {"seconds": 0.02, "mood": "limited"}
    record = counting.run("words?number=24", workers=3, concurrency=2, options=options)
    assert (record.counts.scored, record.counts.failed) == (24, 0)
    assert counting.most_at_once() == 2


def test_a_slow_worker_delays_nobody(counting):
    counting.run("words?number=200", concurrency=4, options={"slow": 2, "seconds": 0.01})
    by_process = Counter(process for process, _ in counting.calls())
    assert min(by_process.values()) <= 8
    assert sum(by_process.values()) == 200


def test_what_cannot_be_done_by_workers_is_refused_before_anything_is_asked(counting, monkeypatch):
    with pytest.raises(UsageError, match=r"'mine' was passed as an object.*--plugin FILE"):
        counting.run(sut=FunctionSUT("mine", lambda text: "x", version=1))
    with pytest.raises(
        InvalidOptionError, match=r"There is no executor 'procesess'. Did you mean 'processes'"
    ):
        counting.run(executor="procesess")
    with pytest.raises(InvalidOptionError, match=r"takes no number of workers.*--executor processes"):
        counting.run(executor="local")
    with pytest.raises(InvalidOptionError, match=r"does not take these options.*processes\?OPTION=VALUE"):
        counting.run(executor="processes?gpus=1")
    monkeypatch.setenv("COUNTED_PLUGIN_BREAKS", "1")
    with pytest.raises(UsageError, match=r"cannot take part: .*this plugin does not like workers"):
        counting.run()
    assert counting.calls() == []
    assert list((counting.folder / "runs").iterdir()) == []
    monkeypatch.undo()
    record = counting.run(options={"mood": "unopened"})
    assert "could not be opened: OSError: there is no model here" in record.failure.message
    assert record.counts.items == 0


def test_worker_opens_plainly_before_its_first_call_only(counting):
    heavy = f"heavy?folder={counting.folder}"
    assert counting.run(sut=heavy).counts.scored == counting.run(sut=heavy).counts.sut_calls.cached
    opened = counting.calls("open")
    assert len(opened) == len({process for process, _ in opened}) <= 2
    record = counting.run(sut=f"{heavy}&mood=unopened")
    assert "could not be opened: OSError: there is no model here" in record.failure.message
    assert record.counts.scored == record.counts.failed == 0


def test_secrets_are_handed_down_and_redacted_and_lines_are_shown_once(counting, capfd, monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    secrets = SecretStore(env={"COUNTED_KEY": "a-secret-of-mine-42"})
    with pytest.warns(UserWarning, match=r"the model is old") as warned:
        counting.run(secrets=secrets, workers=3, options={"mood": "noisy"})
    assert len([one for one in warned if "the model is old" in str(one.message)]) == 1
    assert capfd.readouterr().err.count("loaded") == 1
    record = counting.run(secrets=secrets, options={"mood": "leaky"})
    journal = (record.folder / "items.jsonl").read_text(encoding="utf-8")
    assert "a-secret-of-mine-42" not in journal.lower()
    assert "[secret counted.key]" in journal
