import pytest

from modelgauge.errors import DefinitionError, InvalidDataError
from modelgauge.evals import log_hyperparameters
from modelgauge.evals.inputs import forget_hyperparameters, logged_hyperparameters


@pytest.fixture(autouse=True)
def _fresh():
    forget_hyperparameters()
    yield
    forget_hyperparameters()


def test_bare():
    @log_hyperparameters
    def hyperparameters():
        return {"temperature": 1, "chunk size": 500}

    assert logged_hyperparameters() == {"temperature": 1, "chunk size": 500}
    assert hyperparameters() == {"temperature": 1, "chunk size": 500}


def test_with_arguments_and_an_empty_dict():
    @log_hyperparameters(model="gpt-4", prompt_template="...")
    def hyperparameters():
        return {}

    assert logged_hyperparameters() == {"model": "gpt-4", "prompt_template": "..."}
    assert hyperparameters() == {}


def test_what_the_function_returns_goes_before():
    log_hyperparameters(model="a")(lambda: {"model": "b"})
    assert logged_hyperparameters() == {"model": "b"}


@pytest.mark.parametrize("wrong", [None, ["a"], {"a": object()}, {1: 2}])
def test_only_dicts_that_json_keeps(wrong):
    with pytest.raises(InvalidDataError):
        log_hyperparameters(lambda: wrong)


def test_only_functions():
    with pytest.raises(DefinitionError):
        log_hyperparameters("gpt-4")


def test_an_async_function_is_refused_since_nothing_would_wait_for_it():
    async def hyperparameters():
        return {"model": "m"}

    with pytest.raises(DefinitionError, match="Write def, without async"):
        log_hyperparameters(hyperparameters)
