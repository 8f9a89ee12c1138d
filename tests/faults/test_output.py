"""Commands whose output nobody reads any more, or has no room."""

import sys
from pathlib import Path

import pytest
from commands import ended, runs, started

FULL = Path("/dev/full")
needs_a_full_disk = pytest.mark.skipif(not FULL.exists(), reason="a file that never has room is Linux's")


@pytest.mark.skipif(sys.platform == "win32", reason="no shell pipes of this kind")
def test_a_reader_that_leaves_is_no_error(tmp_path):
    process = started(tmp_path, "list-items", "--test", "numbered?number=20000")
    process.stdout.read(10)
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 0
    assert errors == ""


def ended_into(stdout, folder, *arguments):
    """Exit code and stderr of a command that writes into a file."""
    process = started(folder, *arguments, stdout=stdout)
    code, _, err = ended(process)
    return code, err


@needs_a_full_disk
@pytest.mark.parametrize("command", [("list",), ("list-items", "--test", "numbered"), ("list", "--json")])
def test_an_output_that_takes_no_more_is_said_without_a_guess_at_a_defect(tmp_path, command):
    with FULL.open("w") as full:
        code, err = ended_into(full, tmp_path, *command)
    assert code == 4
    assert "No space left on device" in err
    assert "Make room" in err
    assert "should not have happened" not in err
    assert "Exception ignored" not in err


@needs_a_full_disk
def test_a_run_whose_report_has_no_room_still_says_how_to_go_on(tmp_path):
    sut = f"gated?folder={tmp_path}&free=30"
    with FULL.open("w") as full:
        code, err = ended_into(
            full, tmp_path, "run-test", "--test", "numbered", "--sut", sut, "--max-calls", "2"
        )
    assert code == 4
    (run,) = runs(tmp_path)
    assert f"To go on: modelgauge resume {run.name} --max-calls N\n" in err
    assert "Make room" in err
