"""Names that stand where an option, a file or a second run should: the error shows what was meant."""

import pytest


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["numbers", "echo"], "--test numbers --sut echo"),
        (["echo", "numbers"], "--test numbers --sut echo"),
        (["numbers"], "--test numbers --sut SUT"),
        (["acme/some model"], "--test TEST --sut 'acme/some model'"),
        (["--test", "numbers", "mine"], "--test numbers --sut mine"),
        (["--sut", "echo", "mine"], "--test mine --sut echo"),
        (["--sut", "echo", "--max-test-items", "3", "numbers"], "--test numbers --sut echo"),
    ],
)
def test_bare_names_are_shown_with_their_options(run, words, meant):
    ended = run("run-test", *words)
    assert ended.code == 2
    assert ended.err.endswith(f"is named by an option: modelgauge run-test {meant}\n")


def test_misspelt_option_beside_bare_name_is_the_error(run):
    ended = run("run-test", "numbers", "--stu", "echo")
    assert ended.code == 2
    assert "--stu" in ended.err


def test_run_of_a_test_names_run_test(run):
    ended = run("run", "numbers")
    assert ended.code == 2
    assert "modelgauge run-test --test numbers --sut SUT" in " ".join(ended.err.split())


def test_run_of_a_missing_file_names_the_file_only(run):
    ended = run("run", "missing.toml")
    assert ended.code == 2
    assert "'missing.toml' does not exist" in ended.err
    assert "run-test" not in ended.err


def test_plan_with_one_run_asks_for_the_second(run):
    ended = run("plan", "--runs", "latest", "--effect", "0.05")
    assert ended.code == 2
    assert "It takes two runs: --runs latest OTHER --effect" in ended.err
