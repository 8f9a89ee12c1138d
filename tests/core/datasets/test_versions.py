"""Versions of data sets in a folder: what is saved, who may save when, and what a kill leaves."""

import json
import signal
import subprocess
import threading

import pytest
from children import PATIENCE, start

from modelgauge.data.test_cases import ConversationalGolden, Golden, LLMTestCase, Turn
from modelgauge.datasets.dataset import EvaluationDataset, reference_to
from modelgauge.datasets.versioned import restored
from modelgauge.datasets.versions import Version, VersionsFolder
from modelgauge.errors import (
    ArgumentError,
    DatasetConflictError,
    InvalidOptionError,
    RecordError,
    UnknownNameError,
    UsageError,
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path / "run_data"


def of(*texts):
    return EvaluationDataset([Golden(text, expected_output=text.upper()) for text in texts])


def test_pull_returns_equal_data_sets(folder):
    members = (
        EvaluationDataset(
            [Golden("a", context=["c | d", "[1]"], custom_column_key_values={"x": 1, "y": "z"})],
            test_cases=[LLMTestCase("a", "b", token_cost=0.1, metadata={"k": [1]})],
        ),
        EvaluationDataset([ConversationalGolden("greets", turns=[Turn("user", "hi\u2028\r\nho")])]),
        EvaluationDataset(test_cases=[LLMTestCase("a", "b")]),
    )
    for number, dataset in enumerate(members):
        saved = dataset.push(f"Fragen zu Ä {number}", message="Erste", author="ann")
        made = EvaluationDataset.pull(f"Fragen zu Ä {number}")
        assert (list(made.goldens), list(made.test_cases)) == (
            list(dataset.goldens),
            list(dataset.test_cases),
        )
        assert (saved.number, saved.parent, saved.author, saved.message) == (1, None, "ann", "Erste")
        assert saved.content_hash == made.content_hash == dataset.content_hash
    assert VersionsFolder(folder).aliases() == [f"Fragen zu Ä {number}" for number in range(3)]


def test_each_push_is_a_version_and_all_stay(folder):
    dataset = of("a")
    assert [dataset.push("q").number, dataset.push("q").number] == [1, 1]  # nothing has changed
    dataset.add_golden(Golden("b"))
    second = dataset.push("q", message="One more")
    assert (second.number, second.parent, second.rows) == (2, 1, 2)
    assert [golden.input for golden in EvaluationDataset.pull("q", 1).goldens] == ["a"]
    again = restored("q", 1, author="ben")
    assert (again.number, again.parent, again.message, again.author) == (3, 2, "Version 1 again", "ben")
    assert EvaluationDataset.pull("q").content_hash == of("a").content_hash
    (folder / "datasets" / "<b>").mkdir()
    (folder / "datasets" / "<b>" / "versions.jsonl").touch()
    assert VersionsFolder(folder).aliases() == ["q"]


def test_a_data_set_is_filled_as_in_deepeval_and_says_which_version_it_is():
    of("a").push("q")
    dataset = EvaluationDataset([ConversationalGolden("other")])
    assert dataset.pull(alias="q") is dataset
    reference = reference_to(dataset)
    assert (reference.name, reference.version) == ("q", 1)
    assert "q, version 1, SHA-256" in str(reference)
    dataset.add_golden(Golden("b"))
    assert reference_to(dataset).version is None


def test_nobody_overwrites_what_somebody_else_saved():
    of("a").push("q", author="ann")
    mine, yours = EvaluationDataset.pull("q"), EvaluationDataset.pull("q")
    yours.add_golden(Golden("yours"))
    yours.push("q", author="ben")
    mine.add_golden(Golden("mine"))
    with pytest.raises(
        DatasetConflictError, match=r"'q' has version 2 by ben .* made from version 1\. Nothing"
    ):
        mine.push("q")
    with pytest.raises(DatasetConflictError, match=r"is new\. .* on the command line --parent 2\."):
        of("x").push("q")
    with pytest.raises(DatasetConflictError, match="has no version 7"):
        of("x").push("none", parent=7)
    assert mine.push("q", parent=2).number == 3


def test_of_many_who_push_at_once_one_gets_through(folder):
    of("a").push("q")
    sets, outcomes = [EvaluationDataset.pull("q") for _ in range(8)], []

    def push(number, dataset):
        dataset.add_golden(Golden(str(number)))
        try:
            outcomes.append(dataset.push("q").number)
        except DatasetConflictError:
            outcomes.append(None)

    threads = [threading.Thread(target=push, args=one) for one in enumerate(sets)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes, key=str) == [2, *[None] * 7]
    assert [version.number for version in VersionsFolder(folder).versions("q")] == [1, 2]


SAVING = """
from modelgauge.data.test_cases import Golden
from modelgauge.datasets.dataset import EvaluationDataset
dataset = EvaluationDataset.pull("q")
while True:
    dataset.goldens = [Golden(f"{len(dataset.goldens)} {n} " + "x" * 2000) for n in range(400)]
    dataset.goldens[0].input = str(dataset.pulled[1].number)
    print(dataset.push("q").number, flush=True)
"""


def test_a_process_that_is_killed_while_it_saves_leaves_whole_versions(folder):
    of("a").push("q")
    confirmed = 1
    for lines in (1, 2, 3):
        process = start("-c", SAVING, stderr=subprocess.STDOUT)
        for _ in range(lines):
            confirmed = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
        process.stdout.close()
        store = VersionsFolder(folder)
        there = store.versions("q")
        assert there[-1].number >= confirmed
        for version in there:
            made = EvaluationDataset.pull("q", version.number)
            assert made.content_hash == version.content_hash
    dataset = EvaluationDataset.pull("q")
    dataset.add_golden(Golden("after"))
    assert dataset.push("q").number > there[-1].number


def test_a_file_that_a_kill_left_without_its_line_is_no_version_and_keeps_its_name(folder):
    dataset = of("a")
    dataset.push("q")
    left = folder / "datasets" / "q" / "v0002.jsonl"
    left.write_text("half", encoding="utf-8")
    with (left.parent / "versions.jsonl").open("ab") as file:
        file.write(b'{"number": 2, "con')
    dataset.add_golden(Golden("b"))
    assert dataset.push("q").number == 3
    assert [version.number for version in VersionsFolder(folder).versions("q")] == [1, 3]
    assert left.read_text(encoding="utf-8") == "half"


def test_what_is_damaged_or_missing_is_told_with_what_to_do(folder):
    of("a", "b").push("q")
    for alias in ("", "../q", "a/b", "a\\b", ".", "..", "con", "x" * 61, "a\n", " a", None, 7):
        with pytest.raises(InvalidOptionError, match="cannot be the alias"):
            EvaluationDataset.pull(alias)
    with pytest.raises(UnknownNameError, match=r"no data set 'r'.*There are: q"):
        EvaluationDataset.pull("r")
    with pytest.raises(UnknownNameError, match=r"'q' has no version 2. Its versions are: 1"):
        EvaluationDataset.pull("q", 2)
    with pytest.raises(ArgumentError, match="finalized"):
        of("a").push("q", finalized=True)
    with pytest.raises(UsageError, match="no goldens to save"):
        EvaluationDataset().push("q")
    file = folder / "datasets" / "q" / "v0001.jsonl"
    file.write_bytes(file.read_bytes().splitlines()[0])
    with pytest.raises(RecordError, match="has 1 row, instead of 2"):
        EvaluationDataset.pull("q")
    file.unlink()
    with pytest.raises(RecordError, match="cannot be read"):
        EvaluationDataset.pull("q")
    (folder / "datasets" / "q" / "versions.jsonl").write_text("[]\n", encoding="utf-8")
    with pytest.raises(RecordError, match="not a list of versions"):
        EvaluationDataset.pull("q")


def test_a_line_of_a_newer_modelgauge_is_read(folder):
    of("a").push("q")
    file = folder / "datasets" / "q" / "versions.jsonl"
    line = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**line, "colour": "red"}) + "\n", encoding="utf-8")
    with pytest.warns(UserWarning, match="colour"):
        assert VersionsFolder(folder).version("q") == Version(**line)


# --- data sets as wholes ---------------------------------------------------------------------------------------------


def test_copy_begins_a_history_of_its_own(folder):
    of("a").push("one")
    of("a", "b").push("one", parent=1)
    made = VersionsFolder(folder).copy("one", "other", author="ann")
    assert (made.number, made.rows, made.parent, made.author) == (1, 2, None, "ann")
    of("c").push("other", parent=1)
    assert EvaluationDataset.pull("one").goldens == of("a", "b").goldens
    same = VersionsFolder(folder).same(of("a", "b").content_hash)
    assert [(alias, version.number) for alias, version in same] == [("one", 2), ("other", 1)]


def test_renamed_and_deleted_data_sets_keep_all_versions(folder):
    store = VersionsFolder(folder)
    of("a").push("one")
    of("a", "b").push("one", parent=1)
    store.rename("one", "zwei Köln")
    assert store.aliases() == ["zwei Köln"]
    assert len(EvaluationDataset.pull("zwei Köln", 1).goldens) == 1
    with pytest.raises(DatasetConflictError, match="under its new name"):
        of("c").push("one", parent=2)
    of("c").push("one")
    assert store.delete("zwei Köln") == "zwei Köln"
    of("d").push("zwei Köln")
    assert store.delete("zwei Köln") == "zwei Köln~2"
    assert store.deleted() == ["zwei Köln", "zwei Köln~2"]
    assert store.undelete("zwei Köln~2") == "zwei Köln"
    with pytest.raises(DatasetConflictError, match="already"):
        store.undelete("zwei Köln")
    store.rename("zwei Köln", "x")
    store.undelete("zwei Köln")
    assert [version.rows for version in store.versions("zwei Köln")] == [1, 2]


def test_no_data_set_takes_the_place_of_another(folder):
    store = VersionsFolder(folder)
    of("a").push("one")
    of("b").push("two")
    for change in (store.rename, store.copy):
        with pytest.raises(DatasetConflictError, match="There is a data set 'two' already"):
            change("one", "two")
        with pytest.raises(UnknownNameError, match="There is no data set 'onee'"):
            change("onee", "three")
        for wrong in ("../x", "", "a/b", "CON", ".lock"):
            with pytest.raises(InvalidOptionError):
                change("one", wrong)
    for name in ("one", "../datasets/one", "", "."):
        with pytest.raises(UnknownNameError, match="in the trash"):
            store.undelete(name)
    assert [EvaluationDataset.pull(alias).goldens[0].input for alias in store.aliases()] == ["a", "b"]


def test_of_those_who_rename_and_save_at_once_nothing_is_lost(folder):
    store, done = VersionsFolder(folder), []
    of("0").push("one")

    def rename(new):
        try:
            store.rename("one", new)
            done.append(new)
        except (UnknownNameError, DatasetConflictError):
            pass

    def save():
        try:
            of("0", "1").push("one", parent=1)
            done.append("saved")
        except DatasetConflictError:
            pass

    threads = [threading.Thread(target=rename, args=(f"new {number % 3}",)) for number in range(9)]
    threads += [threading.Thread(target=save) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    (renamed,) = [name for name in done if name != "saved"]
    assert store.aliases() == [renamed]
    assert len(store.versions(renamed)) == 1 + ("saved" in done)
