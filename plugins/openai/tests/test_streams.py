"""Streams of real servers: splitting, assembling, and recognizing the end."""

import json

import pytest

from modelgauge import Retry
from modelgauge_openai.errors import ChatError
from modelgauge_openai.reply import Reply
from modelgauge_openai.response import sut_response
from modelgauge_openai.sending import Sending

DONE = "data: [DONE]"


def piece(delta, finish=None, **more):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


PAR, IS = piece({"role": "assistant", "content": "Par"}), piece({"content": "is."})


def stream(*chunks, end="\n"):
    """Events as servers write them; a text is a line as it is."""
    lines = [
        chunk if isinstance(chunk, str) else f"data: {json.dumps(chunk, ensure_ascii=False)}"
        for chunk in chunks
    ]
    return "".join(f"{line}{end}{end}" for line in lines)


def read(events, *, asked=True, content_type="text/event-stream"):
    """Return the only completion of a streamed reply."""
    sending = Sending(stream=asked, with_usage=True, may_rename=True, may_drop=False, completions="one_call")
    reply = Reply(200, {"Content-Type": content_type}, events.encode())
    [only] = sut_response(sending.response("https://llm.example", reply), None).completions
    return only


# --- lines ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    "character", ["\u2028", "\u2029", "\x85", "\x1c", "\x1d", "\x1e", "\v", "\f", "\0", "\ufeff"]
)
def test_other_line_ends_are_text(end, character):
    escaped = json.dumps({"content": f"a{character}b"}, ensure_ascii=False)
    raw = json.dumps({"content": "a?b"}).replace("?", character)
    for delta in (escaped, raw):
        chunk = f'data: {{"choices": [{{"delta": {delta}, "finish_reason": "stop"}}]}}'
        assert read(stream(chunk, end=end)).text == f"a{character}b"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_data_of_several_lines_is_one_event(end):
    lines = json.dumps(piece({"content": "Paris."}, "stop"), indent=1).splitlines()
    assert read(end.join(f"data: {line}" for line in lines) + end).text == "Paris."


def test_events_without_empty_lines_between_them():
    assert read(stream(PAR, IS, DONE).replace("\n\n", "\n")).text == "Paris."


def test_carriage_return_alone_ends_no_line_beside_line_feeds():
    chunk = 'data: {"choices": [{"delta": {"content": "a\rb"},\r"finish_reason": "stop"}]}'
    assert read(stream(chunk)).text == "a\rb"


def test_surrogate_pair_may_be_cut_between_two_events():
    halves = [
        'data: {"choices": [{"delta": {"content": "\\ud83d"}}]}',
        'data: {"choices": [{"delta": {"content": "\\ude00"}}]}',
    ]
    assert read(stream(*halves, DONE)).text == "\N{GRINNING FACE}"
    assert read(stream(halves[0], DONE)).text == "\ufffd"


# --- the end ----------------------------------------------------------------------------------------------------------

USAGE = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([PAR, IS, DONE], None),
        ([PAR, piece({"content": "is."}, "stop")], "stop"),
        ([PAR, IS, piece({}, "stop"), USAGE, DONE], "stop"),
        ([piece({"content": "Paris."}, ""), piece({}, ""), DONE], None),
        ([PAR, IS, piece({}, 1)], None),
        ([PAR, piece({"content": "is."}, "stop"), piece({}, ""), piece({}, None), DONE], "stop"),
        ([": comment", "event: x", PAR, ": ping", IS, "data:[DONE]"], None),
    ],
)
def test_stream_is_whole_after_done_or_reason(events, reason):
    done = read(stream(*events))
    assert (done.text, done.finish_reason) == ("Paris.", reason)


TWO = [{"index": number, "delta": {"content": "a"}, "finish_reason": None} for number in (0, 1)]


@pytest.mark.parametrize(
    "events",
    [
        [],
        [PAR],
        [PAR, IS],
        [piece({"content": "Par"}, "")],
        [PAR, USAGE],
        [{"choices": [], "prompt_filter_results": []}],
        [PAR, 'data: {"choices": [{"delta": {"con'],
        [{"choices": TWO}, piece({}, "stop")],
    ],
)
def test_stream_that_is_cut_is_a_failed_attempt(events):
    with pytest.raises(ChatError, match="stream") as raised:
        read(stream(*events))
    assert raised.value.verdict == Retry()


@pytest.mark.parametrize(
    "content_type", ["text/event-stream; charset=utf-8", "application/json", "text/plain", ""]
)
def test_stream_that_nobody_asked_for_is_read(content_type):
    for first in ([], [": ping"], ["event: message"], ["id: 1"]):
        events = stream(*first, PAR, IS, DONE)
        assert read(events, asked=False, content_type=content_type).text == "Paris."


# --- tool calls -------------------------------------------------------------------------------------------------------


def call(name=None, arguments=None, **fields):
    given = {"name": name, "arguments": arguments}
    return {**fields, "function": {key: value for key, value in given.items() if value is not None}}


A, B = '{"path":"a"}', '{"path":"b"}'
WRITE, READ = ("write", {"path": "a"}), ("read", {"path": "b"})


def tools(*pieces):
    done = read(stream(*(piece({"tool_calls": [each]}) for each in pieces), piece({}, "tool_calls")))
    return [(made.name, made.input_parameters) for made in done.tool_calls]


@pytest.mark.parametrize("index", [{"index": 0}, {"index": None}, {}])
@pytest.mark.parametrize("ids", [("a", "b"), (None, None), ("", "")])
def test_two_calls_under_one_index_or_none_are_two(index, ids):
    first, second = ({**index, "id": each} for each in ids)
    assert tools(call("write", A, **first), call("read", B, **second)) == [WRITE, READ]
    assert tools(call("write", A, **first), call("write", A, **second)) == [WRITE, WRITE]


@pytest.mark.parametrize("index", [{"index": 0}, {"index": None}, {}])
def test_pieces_of_two_calls_go_by_id_or_follow_their_call(index):
    parts = [call("write", '{"path"', **index, id="a"), call(None, ':"a"}', **index)]
    assert tools(*parts, call("read", "", **index, id="b"), call(None, B, **index)) == [WRITE, READ]
    mixed = [call("write", "", **index, id="a"), call("read", "", **index, id="b")]
    assert tools(*mixed, call(None, A, **index, id="a"), call(None, B, **index, id="b")) == [WRITE, READ]


def test_pieces_go_by_index_where_all_ids_are_equal_or_new():
    equal = [call("write", "", index=0, id="x"), call("read", "", index=1, id="x")]
    assert tools(*equal, call(None, A, index=0), call(None, B, index=1, id="x")) == [WRITE, READ]
    assert tools(call("write", '{"path"', index=0, id="1"), call(None, ':"a"}', index=0, id="2")) == [WRITE]


def test_name_that_is_repeated_or_cut_is_one_name():
    assert tools(call("write", '{"path"', index=0), call("write", ':"a"}', index=0)) == [WRITE]
    assert tools(call("write", A, index=0), call("write", "", index=0)) == [WRITE]
    assert tools(call("wr", index=0), call("ite", index=0), call(None, A, index=0)) == [WRITE]


def test_calls_in_one_event_and_arguments_that_are_objects():
    whole = [call("write", {"path": "a"}, index=0, id="a"), call("read", {"path": "b"}, index=0, id="b")]
    done = read(stream(piece({"tool_calls": whole}, "stop")))
    assert [(made.name, made.input_parameters) for made in done.tool_calls] == [WRITE, READ]


@pytest.mark.parametrize("odd", [{"0": {}}, "f", [3], [None, "f"], [{"function": "f"}], 1])
def test_odd_tool_calls_and_logprobs_cost_no_streamed_text(odd):
    chunks = [
        piece({"content": "Paris.", "tool_calls": odd}),
        piece({"tool_calls": [call("read", B, index=0)]}),
    ]
    chunks[0]["choices"][0]["logprobs"] = odd
    done = read(stream(*chunks, piece({}, "stop")))
    assert done.text == "Paris."
    assert READ in [(made.name, made.input_parameters) for made in done.tool_calls]


def test_parts_of_content_and_texts_are_joined_in_order():
    chunks = [
        piece({"content": [{"type": "text", "text": "Pa"}]}),
        piece({"content": "ri"}),
        piece({"content": {"text": "s"}}),
    ]
    assert read(stream(*chunks, DONE)).text == "Paris"


def test_log_probabilities_are_joined():
    chunks = [piece({"content": "Paris"}), piece({}, "stop")]
    token = {"token": "Paris", "top_logprobs": [{"token": "Paris", "logprob": -0.5}]}
    for chunk, logprobs in zip(chunks, ({"content": [token]}, {"content": [token]}), strict=True):
        chunk["choices"][0]["logprobs"] = logprobs
    assert (
        len(read(stream(*chunks, piece({}) | {"choices": [{"logprobs": {"content": None}}]})).top_logprobs)
        == 2
    )
