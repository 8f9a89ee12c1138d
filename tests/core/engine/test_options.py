"""The options of a run, as its manifest keeps them."""

import inspect
import json
import typing
from pathlib import Path

import pytest

from modelgauge import Runner, SUTOptions
from modelgauge.api import RunnerOptions
from modelgauge.config.run_options import OPTIONS, RunOptions
from modelgauge.config.run_options_dict import RunOptionsDict
from modelgauge.errors import InvalidOptionError


def test_a_run_without_options_is_done_so():
    recorded = RunOptions().recorded()
    assert {name: value for name, value in recorded.items() if value is not None} == {
        "data_dir": "run_data",
        "runs_dir": str(Path("run_data") / "runs"),
        "hyperparameters": {},
        "seed": 0,
        "sut_options": {},
        "repeats": 1,
        "reduce": "mean",
        "finite": False,
        "first_repeat": 0,
        "caching": True,
        "only_cached": False,
        "executor": "local",
        "max_retries": 4,
        "attempt_timeout": 120.0,
        "call_timeout": 600.0,
        "grace": 5.0,
    }
    assert not RunOptions().progress


def test_what_is_recorded_of_options_is_json_and_holds_no_secrets():
    options = RunOptions(
        data_dir=Path("data"),
        runs_dir=Path("elsewhere"),
        sut_options=SUTOptions(temperature=0.5),
        progress=True,
    )
    recorded = json.loads(json.dumps(options.recorded()))
    assert recorded["runs_dir"] == "elsewhere"
    assert recorded["sut_options"] == {"temperature": 0.5}
    assert not {"redactor", "progress"} & recorded.keys()
    assert options.runs == Path("elsewhere")
    assert RunOptions(data_dir=Path("data")).runs == Path("data", "runs")


@pytest.mark.parametrize(
    ("repeats", "reduce", "reduction"),
    [(1, "mean", None), (3, "mean", None), (1, "pass@1", None), (2, "majority", "majority")],
)
def test_only_what_is_no_mean_of_repeats_is_called_a_reduction(repeats, reduce, reduction):
    assert RunOptions(repeats=repeats, reduce=reduce).reduction == reduction


def test_runner_takes_keywords_of_functions_that_hand_on_to_it():
    handed_on, own = typing.get_type_hints(RunnerOptions), typing.get_type_hints(Runner.__init__)
    with_parameters_of_their_own = {"data_dir", "max_test_items"}
    parameters = inspect.signature(Runner).parameters.keys() - {"options"} - with_parameters_of_their_own
    assert {name: handed_on.pop(name) for name in parameters} == {name: own[name] for name in parameters}
    assert handed_on.keys() == RunOptionsDict.__annotations__.keys()
    assert handed_on.keys() == OPTIONS.keys() - with_parameters_of_their_own


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_tells_what_it_means_and_refuses_what_it_cannot_be(name):
    assert OPTIONS[name].help.endswith(".")
    with pytest.raises(InvalidOptionError, match=rf"^{name} is <object .*Give "):
        RunOptions(**{name: object()})
