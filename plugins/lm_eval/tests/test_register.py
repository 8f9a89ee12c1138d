"""The provider: cheap lists, options and what is said when something is wrong; a part needs no lm-eval."""

import json
import re
import subprocess
import sys

import pytest

from modelgauge import FunctionSUT, run_test
from modelgauge.errors import (
    IncompatibleError,
    InputFileError,
    InvalidOptionError,
    PluginError,
    UnknownNameError,
)
from modelgauge.testing import FakeSUT
from modelgauge_lm_eval import names
from modelgauge_lm_eval.test import LMEvalTest


def run(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "modelgauge", *arguments], check=False, capture_output=True, text=True, cwd=cwd
    )


def test_listing_imports_nothing_of_lm_eval(tmp_path):
    code = (
        "import sys; from modelgauge.cli.entry import main; sys.argv = ['modelgauge', 'list-tests']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "assert not {'lm_eval', 'datasets', 'yaml', 'modelgauge_lm_eval.test'} & set(sys.modules)"
    )
    listed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert "lm_eval/" in listed.stdout


def test_without_lm_eval_its_installation_is_named(monkeypatch):
    monkeypatch.setattr(names, "find_spec", lambda name: None)
    with pytest.raises(PluginError, match=r"pip install 'modelgauge-plugin-lm-eval\[lm-eval\]'"):
        LMEvalTest("lm_eval/arc_easy", "arc_easy")
    with pytest.raises(PluginError, match="is not installed"):
        names.installed_names()


def test_old_lm_eval_is_refused(lm_eval, monkeypatch):
    monkeypatch.setattr("modelgauge_lm_eval.test.version", lambda name: "0.4.9.1")
    with pytest.raises(PluginError, match=r"lm-eval 0\.4\.9\.1 .*0\.4\.13"):
        LMEvalTest("lm_eval/arc_easy", "arc_easy")


@pytest.mark.usefixtures("lm_eval")
@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"model": "arc_esay"}, UnknownNameError, "Did you mean 'arc_easy'"),
        ({"model": "arc_easy", "shots": -1}, InvalidOptionError, "shots is -1"),
        ({"model": "arc_easy", "limit": 0}, InvalidOptionError, "limit is 0"),
        ({"model": "arc_easy", "limit": 2.5}, InvalidOptionError, "limit is 2.5"),
        ({"model": "arc_easy", "include": "/nowhere"}, InputFileError, "There is no folder /nowhere"),
        ({"model": "mmmu_val_art"}, IncompatibleError, "images"),
    ],
)
def test_what_cannot_be_asked_is_refused(options, error, said):
    with pytest.raises(error, match=said):
        LMEvalTest("lm_eval/task", **options)


@pytest.mark.usefixtures("lm_eval")
@pytest.mark.parametrize(
    ("option", "ours"),
    [
        ("num_fewshot=5", "shots"),
        ("apply_chat_template=true", "chat_template"),
        ("include_path=x", "include"),
    ],
)
def test_words_of_lm_eval_name_our_options(tmp_path, option, ours):
    with pytest.raises(InvalidOptionError, match=f"is called '{ours}' here. Write {ours}="):
        run_test(f"lm_eval/arc_easy?{option}", FakeSUT("fake"), data_dir=tmp_path)


@pytest.mark.usefixtures("lm_eval")
def test_names_are_found_and_completed(tmp_path):
    listed = run("list-tests", "--provider", "lm_eval", "--search", "ARC_easy", "--json", cwd=tmp_path)
    assert {"uid": "lm_eval/arc_easy"} in json.loads(listed.stdout)["tests"]
    words = "modelgauge run-test --test lm_eval/gsm8k_pl"
    asked = {"_MODELGAUGE_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": "3"}
    done = subprocess.run(
        [sys.executable, "-m", "modelgauge"],
        env=asked,
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert "plain,lm_eval/gsm8k_platinum" in done.stdout.splitlines()


def test_sut_without_likelihoods_fails_before_the_first_call(write_task, tmp_path):
    uid = write_task(
        "choice",
        [{"text": "1 + 1 =", "gold": 0}],
        output_type="multiple_choice",
        doc_to_text="text",
        doc_to_choice=["2", "3"],
        doc_to_target="gold",
    )
    asked = []
    with pytest.raises(IncompatibleError, match="needs ScoresContinuations"):
        run_test(uid, FunctionSUT("function", asked.append), data_dir=tmp_path / "data")
    assert asked == []


@pytest.mark.usefixtures("lm_eval")
def test_conformance_kit_passes(tmp_path):
    checked = run("plugins", "check", "--quiet", "lm_eval", cwd=tmp_path)
    assert re.search(r"lm_eval: .* 0 problems", checked.stdout), checked.stdout + checked.stderr
