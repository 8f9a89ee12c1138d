"""The commands `bundle`, `unbundle` and `check`."""

import json
import re
import tarfile

import pytest


@pytest.fixture
def judged(run, only_run):
    """The folder of a run of two items with an annotator."""
    assert run("run-test", "--test", "judged", "--sut", "echo").code == 0
    return only_run()


def test_a_run_goes_to_a_colleague_and_is_measured_again(run, judged, here, monkeypatch):
    made = run("bundle", "latest", "-o", "run.mgb")
    assert re.fullmatch(
        r"run\.mgb  1 run, 3 cache rows, [\d,]+ bytes\n", made.out
    )  # two items, one judgement
    assert made.err == "It is not signed, so nothing proves who made it.\n"
    unpacked = run("unbundle", "run.mgb", plugin=False)
    folder = f"run/runs/{judged.name}"
    assert (unpacked.out, unpacked.err) == (f"{folder}\n", made.err)
    shown = run("show", folder, plugin=False).out
    assert shown.startswith("judged on echo\n")
    assert "\norigin  a bundle, so it is not known to be your own run\n" in shown
    asked = run("rescore", folder, plugin=False)
    assert asked.code == 2
    assert "is not known to be your own. It names --plugin" in asked.err
    again = run("rescore", folder, "--max-calls", "0")
    assert again.code == 0
    assert "origin" not in again.out  # the new run is one's own
    assert re.search(r"annotators +0 made, 2 cached|annotators? 0 made, 2 cached", again.out)
    resumed = run("resume", folder)
    assert resumed.code == 0
    assert (here / "run_data" / "runs").is_dir()
    assert len(list((here / "run_data" / "runs").iterdir())) == 1  # the new run lies beside the received one


@pytest.mark.parametrize("command", ["show", "report", "compare latest", "rescore", "resume"])
def test_a_command_that_gets_a_bundle_says_how_to_unpack_it(run, judged, command):
    run("bundle", "latest", "-o", "run.mgb")
    ended = run(*command.split(), "run.mgb", plugin=False)
    assert ended.code == 2
    assert ended.err.endswith("If it is a bundle, unpack it: modelgauge unbundle run.mgb\n")


def test_all_runs_of_a_command_are_bundled_by_its_id(run, here):
    run("run-test", "--test", "judged", "--test", "numbers", "--sut", "echo")
    made = run("bundle", "latest", "latest", "-o", "runs.mgb", "--json")
    assert made.code == 0
    assert len(made.json["runs"]) == 2
    assert made.json["bytes"] == (here / "runs.mgb").stat().st_size
    unpacked = run("unbundle", "runs.mgb", "-o", "received", "--json")
    assert unpacked.json["folder"] == "received"
    assert unpacked.json["runs"] == made.json["runs"]


def test_check_says_that_nothing_is_wrong(run, judged):
    ended = run("check", "latest")
    assert ended.code == 0
    assert ended.out == (
        f"{judged.name}: 2 items, nothing wrong\n"
        "Scores were not computed again: --rescore measures the recorded answers.\n"
    )
    rescored = run("check", "latest", "--rescore")
    assert (rescored.code, rescored.out) == (0, f"{judged.name}: 2 items, nothing wrong\n")
    assert [path.name for path in judged.parent.iterdir()] == [judged.name]


def test_check_prints_a_line_for_each_finding(run, judged):
    lines = (judged / "items.jsonl").read_text(encoding="utf-8").splitlines()
    first = json.loads(lines[0])
    first["interactions"] = []
    (judged / "items.jsonl").write_text(f"{json.dumps(first)}\n{lines[1]}\n", encoding="utf-8")
    name = first["test_item"]["id"]
    ended = run("check", str(judged))
    assert ended.code == 1
    assert ended.out.splitlines()[:2] == [
        f"{judged.name}, items.jsonl, line 1: item {name}: it has no answer",
        f"{judged.name}: 2 items, 1 finding",
    ]
    [checked] = run("check", str(judged), "--json").json["checked"]
    assert checked["runs"][0]["findings"] == [{"line": 1, "item": name, "problem": "it has no answer"}]


def test_check_of_a_strangers_bundle_asks_for_its_names(run, judged):
    run("bundle", "latest", "-o", "run.mgb")
    asked = run("check", "run.mgb", "--rescore", plugin=False)
    assert asked.code == 2
    assert re.search(r"\n  modelgauge check run\.mgb --rescore --plugin \S*plugin\.py\n$", asked.err)
    assert run("check", "run.mgb", "--rescore").out == (
        f"{judged.name}: 2 items, nothing wrong\nIt is not signed, so nothing proves who made it.\n"
    )


def test_check_of_a_damaged_bundle_finds_it(run, judged, here):
    run("bundle", "latest", "-o", "run.mgb")
    whole = (here / "run.mgb").read_bytes()
    (here / "run.mgb").write_bytes(whole[:-20])
    ended = run("check", "run.mgb")
    assert ended.code == 1
    assert ended.out.startswith("run.mgb: run.mgb: the archive is truncated")
    assert run("unbundle", "run.mgb").code == 2
    assert not (here / "run").exists()


def test_check_of_what_is_neither_run_nor_bundle(run, here):
    assert "There is no run 'nothing'" in run("check", "nothing").err
    ended = run("check", "plugin.py")
    assert (ended.code, ended.err.splitlines()[0]) == (2, "Error: plugin.py is not a bundle.")


def test_a_secret_of_any_installed_plugin_stays_out(run, judged, monkeypatch):
    """Also one that this command had no use for."""
    monkeypatch.setenv("ACME_TOKEN", "1|None|None")
    ended = run("bundle", "latest", "-o", "run.mgb")
    assert ended.code == 0
    assert "1 row with a secret left out." in ended.err
    with tarfile.open("run.mgb") as archive:
        assert b"1|None|None" not in archive.extractfile("cache.jsonl").read()


def test_texts_are_left_out_on_request(run, judged):
    made = run("bundle", "latest", "-o", "run.mgb", "--redact")
    assert "1 run, 0 cache rows" in made.out
    out = run("check", "run.mgb").out
    assert "  Not checked. Texts were taken out of 2 items: n0, n1\n" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bundle", "latest"], "Missing option '-o' / '--output'."),
        (["bundle", "nothing", "-o", "x"], "There is no run 'nothing'"),
        (["bundle", "latest", "-o", "."], "--output . is a folder."),
        (["bundle", "latest", "-o", "x", "--sign", "plugin.py"], "`ssh-keygen` "),
        (["unbundle", "nothing"], "nothing cannot be read: No such file or directory."),
        (["unbundle", "plugin.py"], "plugin.py is not a bundle."),
        (["check"], "Missing argument 'RUN|BUNDLE...'."),
    ],
)
def test_what_is_asked_wrongly(run, judged, here, arguments, message):
    before = sorted(here.iterdir())
    ended = run(*arguments)
    assert ended.code == 2
    assert message in ended.err
    assert sorted(here.iterdir()) == before


def test_what_a_judge_answered_is_in_the_bundle(run_dataset, run, here):
    """The scores of a judge metric are computed again from there, and the judge is asked nothing."""
    assert run_dataset("--dataset", "good.csv", "--judge", "judge", metrics=("answer_relevancy",)).code == 0
    made = run("bundle", "latest", "-o", "run.mgb", "--json", plugin=False).json
    assert made["cache_rows"]["kept"] > 2  # the answers of the app, and those of the judge
    again = ("--plugin", "app.py", "--dataset", "good.csv", "--judge", "judge")
    checked = run("check", "run.mgb", "--rescore", *again, plugin=False)
    assert (checked.code, checked.err) == (0, "")
    assert "Not checked" not in checked.out
    for path in (here / "run_data" / "cache").iterdir():
        path.unlink()
    run("unbundle", "run.mgb", plugin=False)
    folder = f"run/runs/{made['runs'][0]}"
    rescored = run("rescore", folder, "--max-calls", "0", *again, plugin=False)
    assert rescored.code == 0
    gone = run("check", "latest", "--rescore", *again, plugin=False)
    assert "they need answers of annotators or judges that are not in the cache" in gone.out
