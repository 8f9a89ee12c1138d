"""What is registered, and what registering costs."""

import subprocess
import sys

from modelgauge import PromptResponseTest, WebData
from modelgauge.plugins.discovery import discover
from modelgauge_standard_tests.sources import BBH_TASKS


def _registered_uids():
    return [
        entry.uid for entry in discover().tests if entry.distribution == "modelgauge-plugin-standard-tests"
    ]


def test_every_task_has_a_uid():
    assert len(BBH_TASKS) == 27
    assert sorted(_registered_uids()) == sorted([*(f"bbh_{task}" for task in BBH_TASKS), "gsm8k"])
    bbh = [entry.uid for entry in discover().tests.groups["bbh"]]
    assert sorted(bbh) == sorted(f"bbh_{task}" for task in BBH_TASKS)


def test_every_uid_makes_a_test_whose_data_is_pinned_and_licensed():
    tests = [discover().tests.make(uid) for uid in _registered_uids()]
    assert all(isinstance(test, PromptResponseTest) for test in tests)
    data = [one for test in tests for one in test.get_dependencies().values()]
    assert all(isinstance(one, WebData) and one.sha256 for one in data)
    assert {one.license for one in data} == {"MIT"}
    assert len({one.url for one in data}) == 2 * 27 + 1
    assert [sorted(test.get_dependencies()) for test in tests] == [["prompt", "task"]] * 27 + [["questions"]]


def test_registration_imports_neither_the_tests_nor_pydantic():
    code = (
        "import sys, modelgauge_standard_tests.register\n"
        "heavy = {'pydantic', 'numpy', 'modelgauge_standard_tests.bbh', 'modelgauge_standard_tests.gsm8k'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
