"""The file of a page: its blocks of data, and the policy that lets nothing else run."""

import base64
import gzip
import hashlib
import json
import re

import pytest

from modelgauge import PromptWithContext, TestItem, reports, run_test
from modelgauge.cli.main import cli
from modelgauge.data.item_records import TestItemExceptionRecord, TestItemRecord
from modelgauge.engine.run_files.folder import RunFolder
from modelgauge.errors import RecordError
from modelgauge.reports import write_page
from modelgauge.runs.recorded_run import recorded_run
from modelgauge.testing import FakeSUT, FakeTest

HOSTILE = '</script><script>alert("x")</script>\u202e{{ 1 }}'


def _run(tmp_path, number=250, answer="an answer"):
    items = [
        TestItem(
            [PromptWithContext(f"Rules.\n\nQ{place}? {HOSTILE}")],
            context={"target": f"t{place}", "kind": place % 2, "none": None},
        )
        for place in range(number)
    ]
    test = FakeTest(
        "many", items, lambda item: {"right": item.context["kind"] == 1, "size": float(len(item.text))}
    )
    record = run_test(test, FakeSUT("sut", answer), data_dir=tmp_path)
    return recorded_run(RunFolder(tmp_path / "runs" / record.run_id))


def _page(*runs, **options):
    pieces = []
    write_page(runs, pieces.append, **options)
    return "".join(pieces)


def _block(page, name, run=0):
    text = re.search(rf'<script type="text/plain" id="run-{run}-{name}">([^<]*)</script>', page)[1]
    return json.loads(gzip.decompress(base64.b64decode(text)))


def test_every_item_is_in_the_page_as_it_was_recorded(tmp_path):
    run = _run(tmp_path)
    page = _page(run)
    parts = [record for place in range(3) for record in _block(page, f"part-{place}")]
    read = [TestItemRecord.model_validate_json(json.dumps(part)).model_dump_json() for part in parts]
    assert read == [one.model_dump_json() for one in run.items().records()]
    (rows,) = _block(page, "rows")
    texts = _block(page, "texts")
    assert [text[0] for text in texts] == [part["test_item"]["id"] for part in parts]
    assert rows["part"] == 100
    assert rows["common"] == "Rules."
    assert texts[7][1:] == [f"Q7? {HOSTILE}", "an answer", "t7"]
    assert rows["state"]["values"] == ["wrong", "ok"]
    assert rows["state"]["of"][:3] == [0, 1, 0]
    assert rows["measured"]["size"] == [9.0] * 250
    assert rows["facets"]["kind"]["values"] == ["0", "1"]
    assert "target" not in rows["facets"]


def test_lines_of_other_versions_are_read_and_damaged_ones_are_named(tmp_path):
    run = _run(tmp_path, 3)
    journal = run.folder.journal
    one, *rest = journal.read_text(encoding="utf-8").splitlines(keepends=True)
    item = json.loads(one)
    del item["test_item"]["prompts"][0]["prompt"]["text"]
    asks = {"messages": [{"role": "user", "text": "a chat"}]}
    item["test_item"]["prompts"][0] = {"prompt": asks}
    item["interactions"][0] |= {"prompt_index": None, "prompt": {"prompt": {"text": "as in version 1"}}}
    journal.write_text("".join([json.dumps(item, separators=(",", ":")) + "\n", *rest]), encoding="utf-8")
    assert _block(_page(run), "texts")[0][1] == "a chat"
    item["measurements"] = ["not a mapping"]
    journal.write_text("".join([json.dumps(item, separators=(",", ":")) + "\n", *rest]), encoding="utf-8")
    with pytest.raises(RecordError, match=r"items\.jsonl, line 1 .*measurements"):
        _page(run)


def test_a_page_of_the_first_items_says_so(tmp_path, monkeypatch):
    run = _run(tmp_path, 3)
    assert "The page has the first" not in _page(run)
    monkeypatch.setattr("modelgauge.reports.pages.item_data.MOST_ITEMS", 2)
    page = _page(run)
    assert len(_block(page, "texts")) == 2
    assert "Results are of all items. The page has the first 2 of them" in page
    assert "The run has 1 more: modelgauge show " in page


def test_failed_items_are_rows_too(tmp_path):
    run = _run(tmp_path, 3, ValueError("broken"))
    page = _page(run)
    assert _block(page, "rows")[0]["state"] == {"values": ["failed"], "of": [0, 0, 0]}
    assert TestItemExceptionRecord.model_validate(_block(page, "part-0")[0]).message == "broken"
    assert "Nothing was scored." in page


def test_only_our_own_script_and_style_may_run(tmp_path):
    page = _page(_run(tmp_path, 3, HOSTILE))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1].replace("&#39;", "'")
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    styles = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert len(scripts) == len(styles) == 1
    for (text,), kind in ((scripts, "script"), (styles, "style")):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert not re.search(r"(?<!&gt;)alert\(", page)  # it stands in the manifest, as text
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)


def test_a_run_without_texts_says_what_came_out_and_nothing_that_was_said(tmp_path):
    page = _page(_run(tmp_path, 3, "confidential"), without_texts=True)
    data = json.dumps([_block(page, name) for name in ("rows", "texts", "part-0")])
    assert "confidential" not in data
    assert "Rules" not in data
    assert _block(page, "rows")[0]["measured"]["right"] == [0.0, 1.0, 0.0]


def test_messages_of_errors_are_left_out_with_the_texts(tmp_path):
    run = _run(tmp_path, 3, ValueError("it said: confidential"))
    assert "confidential" in _page(run)
    page = _page(run, without_texts=True)
    assert "confidential" not in page + json.dumps(_block(page, "part-0"))
    assert "3 failed" in page


def test_the_command_writes_beside_the_run_or_where_it_is_told(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = _run(tmp_path / "data", 3)
    data = ["--data-dir", str(tmp_path / "data")]
    assert cli.main(["report", run.record.run_id, *data], standalone_mode=False) == 0
    assert capsys.readouterr().out.strip() == str(run.folder.path / "report.html")
    assert (
        cli.main(["report", run.record.run_id, *data, "-o", "other.html", "--json"], standalone_mode=False)
        == 0
    )
    shown = json.loads(capsys.readouterr().out)
    assert shown == {"report": "other.html", "bytes": (tmp_path / "other.html").stat().st_size}


def test_a_page_replaces_nothing_of_a_run(tmp_path, capsys):
    run = _run(tmp_path, 3)
    journal = run.folder.journal
    before = journal.read_bytes()
    with pytest.raises(SystemExit) as ended:
        cli.main(["report", run.record.run_id, "--data-dir", str(tmp_path), "-o", str(journal)])
    assert ended.value.code == 2
    assert "--output" in capsys.readouterr().err
    assert journal.read_bytes() == before


def test_a_page_is_written_from_python_to_a_file(tmp_path):
    run = _run(tmp_path, 3)
    for name, given in {"record": run.record, "records": [run.record], "id": run.record.run_id}.items():
        path = tmp_path / f"{name}.html"
        reports.write_page(given, path, data_dir=tmp_path)
        assert len(_block(path.read_text(encoding="utf-8"), "texts")) == 3
    with pytest.raises(RecordError):
        reports.write_page("no such run", tmp_path / "none.html", data_dir=tmp_path)
    assert not (tmp_path / "none.html").exists()


def test_the_parts_of_a_page_can_be_had_from_python(tmp_path):
    record = _run(tmp_path, 3).record
    table = reports.ItemTable()
    assert len(list(table.parts(record))) == 1
    document = [*reports.run_document(record, table)]
    heading, verdict, *_ = document
    assert heading.text == "many on sut"
    assert verdict.text.startswith("1 of 3: right 0.33")
    assert reports.as_html(document).startswith("<header>\n<h1>many on sut</h1>")


def test_secrets_that_are_known_by_now_are_in_no_part_of_a_page(tmp_path):
    secret = "sk-0123456789-secret"
    run = _run(tmp_path, 3, f"my key is {secret}")
    assert secret in json.dumps(_block(_page(run), "part-0"))
    page = _page(run, redact=lambda text: text.replace(secret, "[secret a.b]"))
    shown = page + json.dumps([_block(page, name) for name in ("rows", "texts", "part-0")])
    assert secret not in shown
    assert "my key is [secret a.b]" in shown


@pytest.mark.parametrize(
    ("questions", "common"),
    [
        (["Do you return? Go left.", "Do you return? Go right.", "Do you return? Stay."], "Do you return?"),
        (["What is 1?", "What is 2?", "What is 3?"], ""),
        (["Rules.\n\nQ: a", "Rules.\n\nQ: b", "Rules.\n\nQ: c"], "Rules."),
        (["The same. a", "The same. b"], ""),
    ],
)
def test_what_all_questions_begin_with_stands_once(tmp_path, questions, common):
    record = run_test(FakeTest("t", questions, lambda _: {"x": 1.0}), FakeSUT("s", "a"), data_dir=tmp_path)
    page = _page(recorded_run(RunFolder(tmp_path / "runs" / record.run_id)))
    assert _block(page, "rows")[0]["common"] == common
    assert _block(page, "texts")[0][1] == questions[0].removeprefix(common).strip()
