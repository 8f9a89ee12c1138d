"""Sheets of labels: what is drawn, that it comes back as it was written, and what is said of files that are wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured_runs import measured_run

from modelgauge import sample_answers
from modelgauge.comparison.judges.label_sheets import COLUMNS, read_ratings, write_sheet
from modelgauge.data.annotations import (
    Interaction,
    SUTCompletionAnnotations,
    SUTResponseAnnotations,
)
from modelgauge.data.item_records import Failure, TestItemRecord
from modelgauge.data.items import TestItem
from modelgauge.data.prompts import ChatMessage, ChatPrompt
from modelgauge.data.responses import SUTCompletion
from modelgauge.errors import InputFileError, InvalidOptionError
from modelgauge.files.tables import read_table

A = measured_run("a", {f"n{i}": float(i % 3 == 0) for i in range(200)})
B = measured_run("b", {f"n{i}": float(i % 2 == 0) for i in range(200)})


def keys(rows):
    return [(row["sut"], row["item_id"]) for row in rows]


# --- drawing ----------------------------------------------------------------------------------------------


def test_a_sample_is_part_of_a_larger_one_and_another_with_another_seed():
    few, more = keys(sample_answers([A, B], 20)), keys(sample_answers([A, B], 61))
    assert set(few) < set(more)
    assert keys(sample_answers([A, B], 20)) == few
    assert set(keys(sample_answers([A, B], 20, seed=1))) != set(few)


def test_each_sut_gives_as_many_answers_and_not_the_same_ones():
    rows = keys(sample_answers([A, B], 50))
    drawn = {sut: [item for of, item in rows if of == sut] for sut in "ab"}
    assert [len(items) for items in drawn.values()] == [25, 25]
    assert set(drawn["a"]) != set(drawn["b"])
    assert drawn["a"] != sorted(drawn["a"], key=lambda item: int(item[1:]))  # shuffled
    assert [sut for sut, _ in rows][:6] != ["a", "b"] * 3


def test_a_small_run_gives_all_that_it_has_and_the_others_more():
    small = measured_run("small", {"x": 1.0, "y": 0.0, "failed": None})
    rows = keys(sample_answers([A, small], 50))
    assert sorted(item for sut, item in rows if sut == "small") == ["x", "y"]
    assert len(rows) == 50
    assert len(sample_answers(small, 50)) == 2


def test_every_item_is_as_likely_to_be_drawn():
    counts = dict.fromkeys((f"n{i}" for i in range(200)), 0)
    for seed in range(400):
        for _, item in keys(sample_answers(A, 50, seed=seed)):
            counts[item] += 1
    # 400 draws with a chance of 1/4: chi² with 199 degrees of freedom, less what sampling without replacement saves.
    spread = sum((count - 100) ** 2 / 75 for count in counts.values())
    assert 140 < spread < 270


def test_the_judge_is_not_in_the_sheet():
    (row,) = sample_answers(measured_run("a", {"x": 1.0}), 1)
    assert row == {
        "item_id": "x",
        "sut": "a",
        "prompt": "question x",
        "answer": "answer x",
        "rater": None,
        "label": None,
    }


def _item(prompts, answers, **fields):
    """An item whose answers are given for each repeat: the texts of the completions to each prompt."""
    item = TestItem(prompts, id="x")
    interactions = [
        Interaction(
            prompt=prompt,
            response=SUTResponseAnnotations(
                completions=[SUTCompletionAnnotations(completion=SUTCompletion(text)) for text in texts]
            ),
            repeat=repeat,
        )
        for repeat, of_repeat in enumerate(answers)
        for prompt, texts in zip(item.prompts, of_repeat, strict=True)
    ]
    return TestItemRecord(index=0, test_item=item, interactions=interactions, **fields)


def _drawn(item):
    (row,) = sample_answers(measured_run("a", {}).with_items(lambda: [item]), 1)
    return row["prompt"], row["answer"]


def test_several_prompts_and_completions_are_numbered_and_chats_have_roles():
    chat = ChatPrompt([ChatMessage(role="user", text="Hi"), ChatMessage(role="assistant", text="Hello")])
    item = _item([chat, "Why?"], [[["one", "two"], ["three"]]], measurements={"right": 1.0})
    assert _drawn(item) == ("[1] [user] Hi\n[assistant] Hello\n\n[2] Why?", "[1] one\n\n[2] two\n\n[3] three")


def test_of_an_item_with_repeats_the_first_measured_answer_is_drawn():
    failure = Failure(repeat=0, stage="annotator", source_uid="j", error_type="E", message="m", traceback="")
    repeats = [[["first"]], [["second"]], [["third"]]]
    measured = {"measurements": {"right": 0.5}, "repeat_measurements": [{"right": 1.0}, {"right": 0.0}]}
    assert _drawn(_item(["Why?"], repeats, **measured, failed_repeats=[failure])) == ("Why?", "second")
    assert _drawn(_item(["Why?"], repeats[:2], **measured)) == ("Why?", "first")


@pytest.mark.parametrize(
    ("runs", "n", "words"),
    [
        ([A, A], 5, "both of a, and a sheet"),
        ([A], 0, "The number of answers is 0"),
        ([A], "x", "The number of answers is 'x'"),
        (5, 1, "A run is 5"),
        ([], 5, "No run is named"),
        ([measured_run("a", {"x": None})], 5, "No answer of these runs was judged"),
    ],
)
def test_what_cannot_be_drawn_is_refused(runs, n, words):
    with pytest.raises(InvalidOptionError, match=words):
        sample_answers(runs, n)


# --- files ------------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)


@given(prompt=TEXT, answer=TEXT, item=TEXT.filter(lambda text: text.strip()))
def test_a_sheet_comes_back_as_it_was_written(tmp_path_factory, prompt, answer, item):
    path = tmp_path_factory.mktemp("sheets") / "labels.csv"
    row = {"item_id": item, "sut": "a", "prompt": prompt, "answer": answer, "rater": None, "label": None}
    write_sheet(path, [row])
    table = read_table(path, "csv")
    assert table.columns == COLUMNS
    assert [row.values for row in table.rows] == [row]
    assert [rating[1:5] for rating in read_ratings(path)] == [(item, "a", "labels", None)]


def test_a_sheet_is_never_overwritten(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("labels of a week", encoding="utf-8")
    with pytest.raises(InputFileError, match=r"labels\.csv already exists, and may contain labels"):
        write_sheet(path, sample_answers(A, 1))
    assert path.read_text(encoding="utf-8") == "labels of a week"
    with pytest.raises(InputFileError, match="cannot be written: No such file or directory"):
        write_sheet(tmp_path / "nowhere" / "labels.csv", sample_answers(A, 1))


def test_sheets_of_several_raters_are_read_with_the_names_of_their_files(tmp_path):
    for name, rater in (("ann", ""), ("ben", "Benjamin")):
        text = f"item_id,sut,rater,label\nx,a,{rater}, yes \ny,a,{rater},\n"
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    ratings = read_ratings([tmp_path / "ann.csv", tmp_path / "ben.csv"])
    assert [(rating.item_id, rating.rater, rating.label) for rating in ratings] == [
        ("x", "ann", "yes"),
        ("y", "ann", None),
        ("x", "Benjamin", "yes"),
        ("y", "Benjamin", None),
    ]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_what_spreadsheets_write_is_read(tmp_path, delimiter, encoding):
    path = tmp_path / "labels.csv"
    rows = [["item_id", "sut", "label"], ["é", "a", "1"]]
    path.write_text("\r\n".join(delimiter.join(row) for row in rows), encoding=encoding)
    read = read_ratings(path, "utf-16" if encoding == "utf-16" else "utf-8")
    assert [one[1:5] for one in read] == [("é", "a", "labels", "1")]


def test_rows_in_memory_are_read():
    ratings = read_ratings([{"item_id": "x", "label": True}, {"item_id": "y", "label": 0.5, "rater": "ann"}])
    assert [rating[1:5] for rating in ratings] == [("x", None, "people", True), ("y", None, "ann", 0.5)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id,label\nx,1\n", r"line 1: there is no column 'item_id'\. The columns are: 'id', 'label'"),
        ("item_id,sut\nx,a\n", "there is no column 'label'"),
        ("item_id,label\nx,1,2\ny\n", r"line 2 has 3 cells.*\n.*line 3 has 1 cell"),
        ("", r"is empty"),
        ('item_id,label\nx,"1\n', "never closed"),
    ],
)
def test_a_file_that_is_no_sheet_is_refused_with_its_line(tmp_path, text, words):
    path = tmp_path / "labels.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputFileError, match=f"labels.csv.*{words}"):
        read_ratings(path)
