"""Files that are imported: what is said of hostile ones, and that an export comes back exactly."""

import json
import re
from http.client import HTTPConnection

import pytest
from children import PATIENCE

from modelgauge.data.responses import ToolCall
from modelgauge.data.test_cases import (
    ConversationalGolden,
    ConversationalTestCase,
    Golden,
    LLMTestCase,
    Turn,
)
from modelgauge.datasets.dataset import EvaluationDataset
from modelgauge_workbench.datasets.importing import LARGEST_FILE

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u202e"


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def workbench(data_dir, serve):
    return serve(data_dir)


@pytest.fixture(scope="module")
def send(workbench):
    """Send a file as the page does; give the status and what is said."""
    token = re.search(r'name="csrf" value="(\w+)"', workbench.ask("/login")[2])[1]

    def of(name, data, **fields):
        parts = [f'name="{key}"\r\n\r\n{value}'.encode() for key, value in {"csrf": token, **fields}.items()]
        parts.append(f'name="file"; filename="{name}"\r\n\r\n'.encode() + data)
        body = (
            b"".join(b"--xXx\r\nContent-Disposition: form-data; " + part + b"\r\n" for part in parts)
            + b"--xXx--\r\n"
        )
        connection = HTTPConnection("127.0.0.1", workbench.port, timeout=PATIENCE)
        try:
            headers = {"Content-Type": "multipart/form-data; boundary=xXx"}
            connection.request("POST", "/datasets/new/import.json", body, headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    return of


def test_what_cannot_be_read_is_said_with_file_and_line(send):
    for name, data, *says in (
        ("a.csv", b"input,input\na,b\n", "a.csv, line 1", "'input' is there twice", "Rename one"),
        ("a.csv", b'input\nfine\n"never closed\n', "a.csv, line 3", "never closed"),
        ("a.csv", b"", "a.csv is empty"),
        ("a.csv", b"input\nfine\n\xff\xfe\n", "a.csv, line 3", "not utf-8", "beside it: cp1252"),
        (
            "a.json",
            b'[{"input": "a"},\n{"input": "b", "input": "c"}]',
            "a.json, line 2",
            "'input' is there twice",
        ),
        ("a.json", b'[{"input": "a"}\n{"input": "b"}]', "a.json, line 2", "',' or ']' is missing"),
        ("a.json", b'[{"input": "a"},\n{"input": "b\0"}]', "a.json, line 2", "NUL"),
        ("a.json", b"[" * 100_000, "a.json, line 1", "nested too deep"),
        ("a.jsonl", "\ufeff{}\n".encode("utf-16-be"), "a.jsonl, line 1", "utf-16"),
        ("a.txt", b"input\na\n", "'a.txt' is not a data set by its name"),
        (
            "a.csv",
            b"x" * (LARGEST_FILE + (1 << 20)),
            "a.csv has 65 MB",
            'modelgauge datasets push "a.csv" "new"',
        ),
    ):
        status, said = send(name, data)
        assert status == 400, name
        for words in says:
            assert words in f"{said['problem']} {said['fix']}", (words, said)


def test_rows_that_cannot_be_used_are_named_and_the_others_kept(send):
    lines = [
        '{"input": "fine"}', "no JSON", '{"input": "a", "input": "b"}', '{"input": 3}', '["input"]',
        '{"input": "a", "tags": 3}', '{"expected_output": "a"}', '{"input": "' + "w" * (8 << 20) + '"}',
        '{"input": "nul\\u0000", "own": {"a": [1]}}',
    ]  # fmt: skip
    status, said = send("a.jsonl", "\ufeff".encode() + "\n".join(lines).encode())
    assert status == 200
    assert [len(row["input"]) for row in said["rows"]] == [4, 8 << 20, 4]
    assert said["rows"][2] == {"input": "nul\0", "custom_column_key_values": {"own": {"a": [1]}}}
    assert said["unread"] == 6
    assert [re.search(r"a\.jsonl, line (\d)", one)[1] for one in said["problems"]] == [
        "2",
        "3",
        "4",
        "5",
        "6",
        "7",
    ]
    assert {one["name"]: one["becomes"] for one in said["columns"]} == {
        "input": "input", "tags": "tags", "expected_output": "expected_output", "own": "",
    }  # fmt: skip

    text = 'Frage;expected_output;token_cost\r\n=1+1;@SUM(1)|x;0,5\r\n-5 °C;"a;b";\r\nshort\r\n'
    status, said = send(
        "ß.csv", text.encode("cp1252"), encoding="cp1252", columns=json.dumps({"Frage": "input"})
    )
    assert status == 200
    assert said["rows"] == [{"input": "-5 °C", "expected_output": "a;b"}]
    assert (said["columns"][0]["name"], said["columns"][0]["becomes"]) == ("Frage", "input")
    assert "line 2, column 'token_cost': '0,5' is not a number" in said["problems"][0]
    assert "line 4 has 1 cell, and the first line names 3 columns" in said["problems"][1]
    assert "2 texts look like formulas, the first in ß.csv, line 2, column 'Frage'" in said["doubts"][-1]

    status, said = send("a.csv", b"input,token_cost\n" + b"x,much\n" * 300)
    assert (said["unread"], len(said["problems"]), said["problems"][-1]) == (
        300,
        201,
        "And 100 more like these.",
    )


def test_columns_with_other_names_become_what_a_person_chooses(send):
    def read(text, **choices):
        status, said = send("a.csv", text, **({"columns": json.dumps(choices)} if choices else {}))
        assert status == 200, said
        return (
            said["rows"],
            {column["name"]: column["becomes"] for column in said["columns"]},
            said["problems"],
        )

    row = {"input": "q", "expected_output": "a"}
    text = b"\xef\xbb\xbfquestion,answer\nq,a\n"
    assert read(text) == ([row], {"question": "input", "answer": "expected_output"}, [])
    assert read(text, question="input", answer="-")[0] == [{"input": "q"}]
    assert read(text, question="expected_output", answer="input")[0] == [
        {"input": "a", "expected_output": "q"}
    ]
    assert read(text, question="input", answer="")[0][0]["custom_column_key_values"] == {"answer": "a"}

    rows, becomes, (problem,) = read(b"frage,antwort\nq,a\n")
    assert (rows, becomes) == ([], {"frage": "", "antwort": ""})
    assert problem.startswith("Choose the column that becomes input")
    assert read(b"frage,antwort\nq,a\n", frage="input", antwort="expected_output")[0] == [row]
    (problem,) = read(text, question="input", answer="input")[2]
    assert problem.startswith("The columns 'question' and 'answer' cannot all become input")

    clash = b"question,input,answer,,<b>\nq,i,a,,x\n"  # a field's own name comes first; a nameless column is empty
    assert read(clash)[1] == {"question": "", "input": "input", "answer": "expected_output", "<b>": ""}
    assert read(clash, question="input", input="-", answer="-", **{"<b>": "-"})[0] == [{"input": "q"}]
    assert read(b"scenario,expected_outcome,answer\ns,o,a\n")[1]["expected_outcome"] == "expected_outcome"
    (problem,) = read(b"question,outcome\nq,o\n", question="input", outcome="expected_outcome")[2]
    assert "no 'expected_outcome'" in problem
    for wrong in ('{"question": "<b>"}', "[1]", "{", "null", '{"question": ["input"]}'):
        assert send("a.csv", text, columns=wrong)[0] == 400


QUESTIONS = [
    Golden(HOSTILE, expected_output="", context=[], tags=["a;b", "c|d", "[x]"], custom_column_key_values={}),
    Golden(
        '=1+1\r\n"quoted"\rline\u2028',
        context=["a|b", ""],
        name=" ",
        custom_column_key_values={"": "x", "input": "y"},
    ),
    Golden("\0\ufeff", custom_column_key_values={"own": "1", "other": "", "metadata": "m"}),
    Golden(
        "n",
        custom_column_key_values={"number": 1.5, "own": None},
        additional_metadata={"a": [1, None, {"b": "\U0001f600"}]},
    ),
    Golden(
        "tools",
        expected_tools=[ToolCall(name="search", input_parameters={"q": "a;b"})],
        context=["[1] a"],
    ),
]
CASES = [
    LLMTestCase("q", actual_output="a", token_cost=0.1, completion_time=1e-9),
    LLMTestCase(HOSTILE, actual_output=""),
]
TURNS = [
    Turn("user", "hi\n"),
    Turn("assistant", HOSTILE, tools_called=[ToolCall(name="t")], retrieval_context=["|"]),
]
TALKS = [
    ConversationalGolden("s", turns=TURNS),
    ConversationalGolden(HOSTILE, expected_outcome=""),
    ConversationalGolden("x"),
]
TALK_CASES = [ConversationalTestCase(turns=TURNS, scenario="s")]


@pytest.mark.parametrize(
    ("goldens", "cases"),
    [(QUESTIONS, []), (QUESTIONS, CASES), (TALKS, []), (TALKS, TALK_CASES)],
    ids=["questions", "with test cases", "conversations", "conversations with test cases"],
)
def test_an_export_that_is_imported_again_is_the_same_data_set(
    workbench, data_dir, send, goldens, cases, request
):
    alias = re.sub(r"[\[\]]", "_", request.node.name)[-50:]
    dataset = EvaluationDataset()
    dataset.goldens, dataset.test_cases = list(goldens), list(cases)
    dataset.push(alias, data_dir=data_dir)
    path = f"/datasets/{alias.replace(' ', '%20')}"
    rows = json.loads(workbench.ask(f"{path}/rows.json")[2])["rows"]
    rows = rows[::-1] + rows[-1:]  # as people order and repeat them: test cases among goldens
    body = json.dumps({"rows": rows, "parent": 1})
    assert workbench.ask(f"{path}/versions.json", "POST", body, Content_Type="application/json")[0] == 201
    for kind in ("csv", "json", "jsonl"):
        connection = HTTPConnection("127.0.0.1", workbench.port, timeout=PATIENCE)
        connection.request("GET", f"{path}/file.{kind}")
        status, said = send(f"x.{kind}", connection.getresponse().read())
        connection.close()
        assert (status, said.get("problems")) == (200, []), said
        assert said["rows"] == rows, kind
