"""The ways in which authors call the kit: a report, single objects, and parametrised tests under pytest."""

import json
import subprocess
import sys
import unittest

import pytest

import modelgauge.testing
from modelgauge import PromptResponseSUT, RequiredSecret, SecretDescription, SUTCompletion, SUTResponse
from modelgauge.errors import UnknownNameError, UsageError
from modelgauge.testing import (
    FakeAnnotator,
    FakeSUT,
    FakeTest,
    Report,
    Status,
    check_annotator,
    check_plugin,
    check_sut,
    check_test,
    conformance,
    list_rules,
)

PROVIDER = """
from modelgauge import PromptResponseSUT, SUTCompletion, SUTResponse, hookimpl
from modelgauge.errors import InputFileError

class Model(PromptResponseSUT[str, str]):
    def __init__(self, uid, model, size=1):
        super().__init__(uid)
        if model not in ("tiny", "large"):
            raise InputFileError(f"There is no model {model!r}.", fix="Choose tiny or large.")
    def translate_text_prompt(self, prompt): return prompt.text
    def evaluate(self, request) -> str: return request
    def translate_response(self, request, response): return SUTResponse(completions=[SUTCompletion(response)])

@hookimpl
def modelgauge_register_suts(register):
    register.provider("acme", Model)
    register("needy", Model)
"""


class Key(RequiredSecret):
    @classmethod
    def description(cls):
        return SecretDescription("conformance", "key", "Made up.")


class Leaky(PromptResponseSUT[str, str]):
    def __init__(self, uid, key):
        super().__init__(uid)
        self.key = key

    def translate_text_prompt(self, prompt):
        return f"{prompt.text} {self.key.value}"

    def evaluate(self, request) -> str:
        return request

    def translate_response(self, request, response):
        return SUTResponse(completions=[SUTCompletion(response)])


def test_public_names_are_loaded_on_use():
    assert modelgauge.testing.__all__ == sorted(modelgauge.testing.__all__)
    assert all(getattr(modelgauge.testing, name) for name in modelgauge.testing.__all__)
    assert dir(modelgauge.testing) == modelgauge.testing.__all__
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = modelgauge.testing.no_such_name


def test_the_kit_itself_never_imports_pytest():
    code = (
        "import sys, modelgauge.testing as kit; [getattr(kit, name) for name in kit.__all__]; "
        "print('pytest' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_rules_have_ids_and_promises_of_their_own():
    rules = list_rules()
    assert len({identifier for identifier, _, _ in rules}) == len(rules)
    assert all(promise.endswith(".") and kinds for _, promise, kinds in rules)


def test_an_unknown_plugin_is_told_with_the_nearest_name():
    with pytest.raises(UnknownNameError, match="demo_suts"):
        check_plugin("demo_sutz")


@pytest.mark.parametrize(
    "name", ["modelgauge-plugin-demo-annotators", "Modelgauge_Plugin.Demo-Annotators", "demo_annotators"]
)
def test_a_plugin_is_found_by_distribution_and_by_entry_point(name):
    cases = conformance(name)["argvalues"]
    assert {case.subject.name for case in cases} == {
        "modelgauge-plugin-demo-annotators",
        "demo_starts_with_y",
        "demo_word_list",
    }


def test_a_report_lists_every_rule_for_every_uid_and_is_json():
    report = check_plugin("demo_annotators")
    for uid in ("demo_starts_with_y", "demo_word_list"):
        found = {finding.rule for finding in report.findings if finding.subject == uid}
        assert found == {identifier for identifier, _, kinds in list_rules() if "annotator" in kinds}
    data = json.loads(json.dumps(report.to_json()))
    assert data["passed"] is True
    fields = {"rule", "promise", "kind", "subject", "status", "message", "fix", "where"}
    assert data["findings"][0].keys() == fields
    assert {one["status"] for one in data["findings"]} == {"ok", "not applicable"}
    assert str(report).endswith(f"demo_annotators: {report.summary()}.")


def test_a_broken_promise_fails_with_the_fix():
    report = check_sut(Leaky("leaky", Key("a-secret-of-the-author")))
    assert {problem.rule for problem in report.problems} == {"secrets"}
    with pytest.raises(AssertionError, match=r"leaky: secrets: problem: .*\.value only where it is sent"):
        report.raise_for_problems()
    assert "a-secret-of-the-author" not in str(report)


class Babbling(Leaky):
    def translate_text_prompt(self, prompt):
        raise ValueError(f"refused: {self.key.value}")


def test_findings_are_free_of_secrets():
    report = check_sut(Babbling("babbling", Key("a-secret-of-the-author")))
    assert {problem.rule for problem in report.problems} >= {"secrets", "requests"}
    assert "refused: [secret conformance.key]" in str(report)
    assert "a-secret-of-the-author" not in str(report)


def test_objects_of_another_kind_are_refused():
    with pytest.raises(UsageError, match="not a PromptResponseSUT"):
        check_sut(FakeTest("t", ["a"]))
    with pytest.raises(UsageError, match="not a CompletionAnnotator"):
        check_annotator(FakeAnnotator)


def test_annotators_of_a_test_can_be_replaced(tmp_path):
    test = FakeTest(
        "t",
        ["a", "b"],
        annotators={"tone": "an_expensive_judge"},
        measure=lambda item: {"friendly": item.annotation("tone")},
    )
    report = check_test(test, annotators={"tone": FakeAnnotator("fake", 1)}, data_dir=tmp_path)
    assert {problem.rule for problem in report.problems} == {"annotators"}  # its own is not installed here
    (measured,) = [finding for finding in report.findings if finding.rule == "measure-total"]
    assert measured.status is Status.ok


def test_without_an_example_a_choosy_provider_cannot_be_checked_further(check_source):
    checked = check_source(PROVIDER)
    assert checked.broken("acme/example-model") == checked.broken("needy") == set()
    assert "--example" in checked.only("acme/example-model", "made", Status.not_applicable).message
    assert "needs model" in checked.only("needy", "made", Status.not_applicable).message


def test_examples_are_checked_in_its_place(check_source):
    checked = check_source(PROVIDER, examples=["acme/tiny", "acme/large?size=3", "needy?model=tiny"])
    assert checked.report.passed
    for name in ("acme/tiny", "acme/large?size=3", "needy?model=tiny"):
        assert checked.only(name, "requests", Status.ok)


def test_an_example_of_another_plugin_is_refused(check_source):
    with pytest.raises(UsageError, match="openai/small"):
        check_source(PROVIDER, examples=["openai/small"])


def test_cases_pass_and_skip():
    cases = {case.id: case for case in conformance("demo_annotators")["argvalues"]}
    cases["annotator-demo_starts_with_y-cacheable"].check()
    with pytest.raises(unittest.SkipTest, match="no secret"):
        cases["annotator-demo_starts_with_y-secrets"].check()


def test_a_report_without_problems_raises_nothing():
    Report("nothing", []).raise_for_problems()
    check_sut(FakeSUT("s")).raise_for_problems()
