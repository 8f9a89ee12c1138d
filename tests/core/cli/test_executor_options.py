"""Options of executors: where they stand, and which executors there are."""

import sys
from importlib import metadata

import pytest

NAMED = ("run-test", "--sut", "echo", "--test", "numbers")
CLOUD = """
class Cloud:
    workers = least = 1
    hands_secrets = False

    def __init__(self, workers=None, address="auto"):
        raise ValueError(f"nobody is at {address}")
"""


@pytest.fixture
def cloud(tmp_path, monkeypatch):
    """An installed executor of the name `cloud`, the only one of a plugin."""
    folder = tmp_path / "installed"
    described = folder / "cloud-1.0.dist-info"
    described.mkdir(parents=True)
    (folder / "cloud_executor.py").write_text(CLOUD, encoding="utf-8")
    (described / "METADATA").write_text("Name: cloud\nVersion: 1.0\n", encoding="utf-8")
    (described / "entry_points.txt").write_text(
        "[modelgauge.executors]\ncloud = cloud_executor:Cloud\n", encoding="utf-8"
    )
    only_of(monkeypatch, folder)
    monkeypatch.syspath_prepend(folder)
    yield
    sys.modules.pop("cloud_executor", None)


def only_of(monkeypatch, folder):
    """Let the entry points of executors be those that a folder has installed."""
    found = [point for one in metadata.distributions(path=[str(folder)]) for point in one.entry_points]
    others = metadata.entry_points
    monkeypatch.setattr(
        metadata,
        "entry_points",
        lambda **chosen: found if chosen.get("group") == "modelgauge.executors" else others(**chosen),
    )


@pytest.mark.parametrize(
    ("option", "spelled"),
    [("--cloud-address", "cloud?address=VALUE"), ("--gpus-per-worker", "cloud?gpus=VALUE")],
)
def test_option_of_an_executor_is_told_its_place_behind_the_name(run, cloud, option, spelled):
    ended = run(*NAMED, option, "1")
    assert ended.code == 2
    assert f"Options of an executor stand behind its name: --executor '{spelled}'" in ended.err


@pytest.mark.parametrize("option", ["--cloud", "--cloud-", "--clouds-address", "--gpus-per-workers"])
def test_option_of_no_executor_is_unknown_and_nothing_more(run, cloud, option):
    ended = run(*NAMED, option, "1")
    assert (ended.code, "No such option" in ended.err, "executor stand" in ended.err) == (2, True, False)


@pytest.mark.parametrize("option", ["--cloud-address", "--gpus-per-worker"])
def test_option_of_an_executor_that_is_not_installed_is_unknown(run, monkeypatch, tmp_path, option):
    only_of(monkeypatch, tmp_path / "nothing")
    ended = run(*NAMED, option, "1")
    assert (ended.code, "No such option" in ended.err, "executor stand" in ended.err) == (2, True, False)
    assert "should not have happened" not in ended.err


@pytest.mark.parametrize(
    ("executor", "told"),
    [
        (
            "cluod?address=x",
            "There is no executor 'cluod'.\nDid you mean 'cloud'? Known: local, processes, cloud.",
        ),
        ("cloud?address=", "The executor 'cloud' does not take these options: nobody is at .\n"),
        ("cloud?address=a%26b", "does not take these options: nobody is at a&b."),
        ("cloud?gpus=1", "The executor 'cloud' does not take these options: "),
        ("local?gpus=1", "takes no number of workers"),
    ],
)
def test_wrong_executor_or_options_are_refused_before_anything_is_asked(run, cloud, calls, executor, told):
    ended = run(*NAMED, "--executor", executor)
    assert (ended.code, told in ended.err, calls()) == (2, True, []), ended.err
