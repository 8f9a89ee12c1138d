"""The options of commands for SUTs take what `SUTOptions` takes; the module of the commands imports no pydantic."""

import pytest

from modelgauge import SUTOptions
from modelgauge.cli.sut_options import OPTIONS
from modelgauge.errors import InvalidDataError

VALUES = [-1.5, -1, 0, 0.5, 1, 1.5, 2, 1000, float("nan"), float("inf"), "", "text"]


def is_taken(name, value):
    try:
        SUTOptions(**{name: (value,) if name == "stop_sequences" else value})
    except InvalidDataError:
        return False
    return True


def test_each_option_of_suts_can_be_given():
    assert [*OPTIONS, "response_schema"] == [*SUTOptions.model_fields]


@pytest.mark.parametrize("name", OPTIONS)
def test_command_takes_what_sut_options_take(name):
    taken = [value for value in VALUES if OPTIONS[name].values.holds(value)]
    assert taken == [value for value in VALUES if is_taken(name, value)]
