"""What real services answered, word for word: each line of `fixtures/refusals.jsonl` names where it was reported."""

import json
import math
from pathlib import Path

import pytest
from multidict import CIMultiDict

from modelgauge import Fatal, Retry
from modelgauge_openai.errors import refused

URL = "https://llm.example/v1/chat/completions"
FIXTURES = [
    json.loads(line)
    for line in (Path(__file__).parent / "fixtures" / "refusals.jsonl").read_text("utf-8").splitlines()
]
NAMES_THE_OPTION = {
    "model": "Check the name of the model",
    "key_env": "?key_env=VARIABLE",
    "max_tokens_field": "?max_tokens_field=max_completion_tokens",
    "structured_output": "?structured_output=false",
    "day": "This limit is for a day",
}


@pytest.mark.parametrize("fixture", FIXTURES, ids=[one["service"] for one in FIXTURES])
def test_refusals_of_real_services(fixture):
    body = json.dumps(fixture["body"]).encode()
    error = refused(URL, fixture["status"], CIMultiDict(fixture["headers"]), body)
    expected = fixture["expected"]
    assert (error.refused_field == "n") == (expected == "completions")
    if expected == "completions":
        assert not isinstance(error.verdict, Fatal)
    elif expected.startswith("wait"):
        seconds = float(expected[5:]) if expected[5:] else None
        assert error.verdict == Retry(after=seconds, rate_limited=True)
    else:
        stops = Retry(after=math.inf, rate_limited=True) if expected == "day" else Fatal()
        assert error.verdict == stops
        assert NAMES_THE_OPTION[expected] in error.fix


def test_a_limit_for_a_day_says_when_it_is_over():
    [groq] = [one for one in FIXTURES if one["service"] == "Groq, tokens a day"]
    error = refused(URL, 429, CIMultiDict(groq["headers"]), json.dumps(groq["body"]).encode())
    assert "and over at 20" in error.fix
    assert "asks only what failed" in error.fix
