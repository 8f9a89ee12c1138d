"""The page that each run gets into its folder when it ends."""

import pytest

from modelgauge.engine.run_files.folder import REPORT
from modelgauge.reports.pages import run_page


@pytest.fixture
def pages(here):
    """The pages in the folders of all runs, those of the latest run last."""
    return lambda: sorted((here / "run_data" / "runs").glob(f"*/{REPORT}"))


def test_each_run_has_its_page_and_the_table_names_it(run, only_run, pages):
    ended = run("run-test", "--sut", "echo", "--test", "numbers")
    (page,) = pages()
    assert page.parent == only_run()
    assert f"report  run_data/runs/{only_run().name}/{REPORT}\n" in ended.out
    assert "numbers on echo" in page.read_text(encoding="utf-8")
    assert run("show", only_run().name).out.count(REPORT) == 1


def test_a_run_that_goes_on_has_a_page_of_all_its_items(run, pages):
    stopped = run("run-test", "--sut", "echo", "--test", "numbers", "--max-calls", "3", "--concurrency", "1")
    assert stopped.code == 4
    (page,) = pages()
    assert "not a sample" in page.read_text(encoding="utf-8")
    assert run("resume", "latest", "--max-calls", "20").code == 0
    assert "not a sample" not in page.read_text(encoding="utf-8")
    assert run("rescore", "latest").code == 0
    assert len(pages()) == 2


def test_plugins_find_the_page_when_they_hear_of_the_end(run, here):
    (here / "sender.py").write_text(
        "from modelgauge import hookimpl\n"
        "@hookimpl\n"
        "def modelgauge_run_finished(record):\n"
        "    print(sorted(file.name for file in record.folder.iterdir()))\n",
        encoding="utf-8",
    )
    ended = run("run-test", "--sut", "echo", "--test", "numbers", "--plugin", "sender.py")
    assert "'record.json', 'report.html', 'run.json'" in ended.out


@pytest.mark.parametrize("by", ["option", "environment", "file"])
def test_no_page_is_written_where_none_is_wanted(run, here, pages, monkeypatch, by):
    if by == "environment":
        monkeypatch.setenv("MODELGAUGE_REPORT", "no")
    if by == "file":
        (here / "modelgauge.toml").write_text("report = false\n", encoding="utf-8")
    monkeypatch.setattr(run_page, "write_runs", None)  # not even tried
    options = ["--no-report"] if by == "option" else []
    ended = run("run-test", "--sut", "echo", "--test", "numbers", *options)
    assert (ended.code, ended.err, pages()) == (0, "", [])
    assert "report " not in ended.out


def test_a_run_of_many_items_gets_none(run, pages, monkeypatch):
    monkeypatch.setattr(run_page, "_MOST_AT_END", 9)
    ended = run("run-test", "--sut", "echo", "--test", "numbers")
    assert (ended.code, ended.err, pages()) == (0, "", [])


def test_a_page_that_cannot_be_written_is_a_warning(run, here, pages, monkeypatch):
    def refuse(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(run_page, "write_runs", refuse)
    ended = run("run-test", "--sut", "echo", "--test", "numbers")
    assert (ended.code, pages()) == (0, [])
    assert "10 scored" in ended.out
    assert ended.err.startswith(f"Warning: {here}/run_data/runs/")
    assert "No space left on device" in ended.err
    assert "modelgauge report 2" in ended.err


def test_an_interrupted_run_ends_at_once(run, here, pages):
    plugin = here / "plugin.py"
    interrupting = "CALLS.append(request)\n        if len(CALLS) == 2: __import__('signal').raise_signal(2)"
    text = plugin.read_text(encoding="utf-8").replace("CALLS.append(request)", interrupting)
    plugin.write_text(text, encoding="utf-8")
    assert run("run-test", "--sut", "echo", "--test", "numbers").code == 130
    assert pages() == []
