"""`modelgauge merge`: what it prints, and its exit codes."""

import json

import pytest


@pytest.fixture
def part(run, here):
    """Measure a range of the ten items of `numbers`."""

    def part(first, end, sut="echo"):
        known = set((here / "run_data" / "runs").glob("*"))
        run(
            "run-test",
            "--test",
            "numbers",
            "--sut",
            sut,
            "--max-retries",
            "0",
            "--item-range",
            f"{first}:{end}",
        )
        (made,) = set((here / "run_data" / "runs").glob("*")) - known
        return made.name

    return part


def test_merge_shows_one_run_with_all_items(run, part, here):
    ids = part(0, 4), part(4, 10)
    ended = run("merge", *ids, "--identifier", "both machines", plugin=False)
    assert (ended.code, ended.err) == (0, "")
    assert "10 scored, 0 failed" in ended.out
    assert f"Merged from 2 runs: {ids[0]}" in ended.out
    (shown,) = run("show", "latest", "--json", plugin=False).json["records"]
    assert (shown["identifier"], shown["merged_from"]) == ("both machines", list(ids))
    folder = here / "run_data" / "runs" / shown["run_id"]
    manifest = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    assert manifest["command"][:2] == ["modelgauge", "merge"]
    assert (folder / "report.html").exists()
    assert run("check", "latest", plugin=False).code == 0


def test_merge_names_the_command_for_missing_items(run, part):
    ended = run("merge", part(0, 4), part(6, 20), plugin=False)
    assert ended.code == 4
    assert "2 of 10 items have no record." in ended.err
    (line,) = [line for line in ended.err.splitlines() if line.startswith("To go on: ")]
    resumed = run(*line.removeprefix("To go on: modelgauge ").split())
    assert resumed.code == 0
    assert "10 scored, 0 failed" in resumed.out


def test_merge_exits_with_3_if_items_failed(run, part):
    assert run("merge", part(0, 4, sut="flaky"), part(4, 20, sut="flaky"), plugin=False).code == 3


def test_merge_compares_results_with_thresholds(run, part):
    ids = part(0, 4), part(4, 20)
    assert run("merge", *ids, "--threshold", "accuracy=0.1", plugin=False).code == 0
    assert run("merge", *ids, "--threshold", "accuracy=1.1", plugin=False).code == 1


@pytest.mark.parametrize("number", [0, 1])
def test_merge_wants_two_runs(run, part, number):
    ended = run("merge", *[part(0, 4) for _ in range(number)], plugin=False)
    assert ended.code == 2
    assert ("Missing argument 'RUN...'", "at least two")[number] in ended.err


def test_merge_refuses_runs_of_different_suts(run, part):
    ended = run("merge", part(0, 4), part(4, 20, sut="flaky"), plugin=False)
    assert ended.code == 2
    assert 'sut_uid is "echo" in the first, and "flaky" in the second' in ended.err


@pytest.mark.parametrize("written", ["5", "5:1", "a:b", "1:2:3"])
def test_item_range_is_two_places(run, written):
    ended = run("run-test", "--test", "numbers", "--sut", "echo", "--item-range", written)
    assert ended.code == 2
    assert (
        f"'{written}' is not two places, the first of them 0 or more: (0, 500), on the command line 0:500"
        in ended.err
    )
