"""The lines of a journal: what stands in them once, the keys of calls, and lines of version 1."""

import json
from pathlib import Path

import pytest

from modelgauge import PromptWithContext, SUTOptions, TestItem, load_record, rescore, resume
from modelgauge.cache.folder import FolderBackend
from modelgauge.cache.responses import ResponseCache
from modelgauge.data.item_records import item_from_json
from modelgauge.engine.run_files.journal import make_line
from modelgauge.errors import RecordError
from modelgauge.plugins.discovery import Plugins
from modelgauge.runs.record_files import record_as_json
from modelgauge.runs.recorded_run import RecordedRun

VERSION_1 = Path(__file__).parent / "journal_v1.jsonl"
TWICE = [TestItem(["first", PromptWithContext("second", context={"right": "yes"})], id="two")]


@pytest.fixture
def journal(make_test, make_sut, make_annotator, run, run_folder):
    """A run of one item of two prompts: (record, folder, test, sut)."""
    length = make_annotator(lambda prompt, completion: len(completion))
    test = make_test(TWICE, annotators={"length": length}, measure=lambda item: {"n": len(item.interactions)})
    sut = make_sut()
    record = run(test, sut)
    return record, run_folder / "runs" / record.run_id, test, sut


def lines(folder):
    return [json.loads(line) for line in (folder / "items.jsonl").read_text(encoding="utf-8").splitlines()]


def test_a_line_holds_each_prompt_once_and_the_keys_of_its_calls(journal, run_folder):
    _, folder, _, _ = journal
    assert json.loads((folder / "run.json").read_text(encoding="utf-8"))["journal_version"] == 2
    [line] = lines(folder)
    assert [one["prompt_index"] for one in line["interactions"]] == [0, 1]
    assert not any("prompt" in one for one in line["interactions"])
    cache = ResponseCache(FolderBackend(run_folder / "cache"))
    for one in line["interactions"]:
        [completion], [keys] = one["response"]["completions"], one["annotation_keys"]
        assert json.loads(cache.get(one["key"])) == completion["completion"]["text"]
        assert json.loads(cache.get(keys["length"])) == completion["annotations"]["length"]
    cache.close()
    cache.leave()


def test_what_is_not_cached_has_no_key(make_test, make_sut, make_annotator, run, run_folder):
    annotator = make_annotator(lambda prompt, completion: 1)
    record = run(make_test(TWICE, annotators={"one": annotator}), make_sut(), caching=False)
    [line] = lines(run_folder / "runs" / record.run_id)
    assert [one["key"] for one in line["interactions"]] == [None, None]
    assert not any({"annotation_keys", "other_keys"} & one.keys() for one in line["interactions"])


def test_a_line_has_the_keys_of_further_completions_and_of_what_judges_were_answered(
    make_test, make_sut, judged_class, run, run_folder
):
    class Judge(judged_class):
        is_cheap = True  # as metrics are

        def get_suts(self):
            return {"judge": make_sut("sound", uid="judge")}

        async def annotate(self, request):
            return (await self.ask("judge", f"Judge: {request[1]}")).completions[0].text

    one_a_call = make_sut(lambda text: f"answer {len(one_a_call.asked)}")
    one_a_call.completions = "many_calls"
    test = make_test(["two"], annotators={"judged": Judge("judged", None)}, measure=lambda item: {"n": 1})
    record = run(test, one_a_call, sut_options=SUTOptions(num_completions=2))
    [line] = lines(run_folder / "runs" / record.run_id)
    [one] = line["interactions"]
    cache = ResponseCache(FolderBackend(run_folder / "cache"))
    kept = cache.get_many([one["key"], *one["other_keys"]])
    assert {*kept.values()} == {'"answer 1"', '"answer 2"', '"sound"'}
    assert len(cache) == len(one["other_keys"]) + 1
    cache.close()
    cache.leave()


def test_a_judges_answers_have_their_keys_where_the_item_failed(
    make_test, make_sut, judged_class, run, run_folder
):
    class Judge(judged_class):
        is_cheap = True

        def get_suts(self):
            return {"judge": make_sut("no verdict", uid="judge")}

        async def annotate(self, request):
            raise ValueError((await self.ask("judge", "Judge.")).completions[0].text)

    test = make_test(1, annotators={"judged": Judge("judged", None)})
    record = run(test, make_sut(), max_retries=0)
    [line] = lines(run_folder / "runs" / record.run_id)
    assert line["kind"] == "exception"
    assert len(line["interactions"][0]["other_keys"]) == 1


def test_records_and_their_files_have_the_prompts_and_no_keys(journal):
    record, folder, _, _ = journal
    [item] = record.iter_items()
    assert [interaction.prompt for interaction in item.interactions] == list(item.test_item.prompts)
    text = "".join(record_as_json(RecordedRun(load_record(folder))))
    [as_json] = json.loads("".join(record_as_json(RecordedRun(record, folder=None))))["test_item_records"]
    assert json.loads(text)["test_item_records"] == [as_json]
    assert [set(one) for one in as_json["interactions"]] == 2 * [{"prompt", "response", "repeat"}]
    assert [one["prompt"] for one in as_json["interactions"]] == as_json["test_item"]["prompts"]


def test_lines_of_version_1_give_what_they_hold():
    written = VERSION_1.read_text(encoding="utf-8").splitlines()
    for line in written:
        record = item_from_json(line.encode(), "a file")
        assert record.model_dump_json() == line
        assert item_from_json(make_line(record, "a test", str)[1], "a file") == record


def test_a_run_of_version_1_is_resumed_and_rescored(journal, run_folder):
    record, folder, test, sut = journal
    [item] = record.iter_items()
    (folder / "items.jsonl").write_text(f"{item.model_dump_json()}\n", encoding="utf-8")
    (folder / "record.json").unlink()
    assert resume(folder, test=test, sut=sut, plugins=Plugins())[0].result == record.result
    [again] = rescore(record.run_id, run_folder, test=test, plugins=Plugins())
    assert again.result == record.result


def test_a_prompt_that_is_not_that_of_the_item_stands_in_full():
    record = item_from_json(VERSION_1.read_bytes().splitlines()[0], "a file")
    first, *others = record.interactions
    other = record.replaced(interactions=(first.replaced(prompt=PromptWithContext("another")), *others))
    assert item_from_json(make_line(other, "a test", str)[1], "a file") == other


@pytest.mark.parametrize("place", [2, -1, "0", 0.5])
def test_a_place_where_there_is_no_prompt_is_damage(journal, place):
    _, folder, _, _ = journal
    [line] = lines(folder)
    line["interactions"][0]["prompt_index"] = place
    with pytest.raises(RecordError, match=f"a file is not an item record.* the item has no prompt {place!r}"):
        item_from_json(json.dumps(line).encode(), "a file")
