"""Sessions of pytest in processes of their own; those inside a test are the fixture `session` of `core/evals`."""

import children

# Hypothesis is the tests' own; at the end of each session its plugin for pytest would load all of it.
VARIABLES = {
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONIOENCODING": "utf-8",
    "PYTEST_ADDOPTS": "-p no:hypothesispytest",
}


def process_of_its_own(*command, kind=children.Nesting, **variables):
    env = children.environment("PYTEST", "MODELGAUGE", **VARIABLES, **variables)
    return children.start("-m", *command, kind=kind, env=env, start_new_session=True)


def in_process_of_its_own(*command, **variables):
    return children.finish(process_of_its_own(*command, **variables), 300)
