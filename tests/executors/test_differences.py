"""What a worker has and the driver has not, or the other way round, is refused before anything is asked.

The workers here are as on another machine: what they find is changed after the driver has read it, right before they
start.
"""

import re
import shutil

import pytest
from click.testing import CliRunner

from modelgauge.cli.main import cli
from modelgauge.config.settings import load_settings
from modelgauge.engine.executors import base
from modelgauge.engine.executors.processes import Processes
from modelgauge.errors import UsageError

HOOK = """
from modelgauge import hookimpl

@hookimpl
def modelgauge_register_tests(register):
    pass
"""
ACME = """
from modelgauge import PromptResponseTest, TestItem, TextPrompt, hookimpl

class Acme(PromptResponseTest):
    def make_test_items(self, dependencies):
        yield TestItem([TextPrompt("one")])

    def measure_quality(self, item):
        return {"length": len(item.text)}

@hookimpl
def modelgauge_register_tests(register):
    register("acme", Acme)
"""


@pytest.fixture
def elsewhere(monkeypatch):
    """`elsewhere(change)`: workers start after the change, with their own path for imports."""

    def meddle(change):
        class Elsewhere(Processes):
            hands_secrets = False

            async def start(self):
                change()
                return await super().start()

        monkeypatch.setattr(base, "Processes", Elsewhere)

    return meddle


def installed(folder, version):
    """A folder with the distribution acme-tests, in a version."""
    metadata = folder / f"acme_tests-{version}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: acme-tests\nVersion: {version}\n")
    (metadata / "entry_points.txt").write_text("[modelgauge]\nacme = acme_tests\n")
    (folder / "acme_tests.py").write_text(ACME)
    return str(folder)


def check_refused(counting, message, test="words?number=3", plugins=()):
    settings = load_settings(plugins=[counting.plugin, *plugins])
    with pytest.raises(UsageError, match=rf"^Worker process \d+ cannot take part: {message}"):
        counting.run(test, settings=settings)
    assert counting.calls() == []


def test_plugin_files_are_the_same(counting, elsewhere, tmp_path):
    file, moved = tmp_path / "mine.py", tmp_path / "moved.py"
    digests = r"\(SHA-256 here: {}; there: [0-9a-f]{{12}}\)\. .*same file under the same path"
    for change, here in (
        (lambda: file.write_text(f"# another\n{HOOK}"), "[0-9a-f]{12}"),
        (lambda: shutil.move(file, moved) if file.exists() else None, "no such file"),
    ):
        file.write_text(HOOK)
        elsewhere(change)
        check_refused(
            counting,
            f"its plugin file {file} is not the driver's {digests.format(here)}",
            plugins=[str(file)],
        )


def test_versions_of_packages_are_the_same(counting, elsewhere, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(installed(tmp_path / "here", "1.0"))
    elsewhere(lambda: None)
    check_refused(counting, r"it has no acme-tests, the driver has 1\.0\. Install the same version", "acme")
    there = installed(tmp_path / "there", "2.0")
    elsewhere(lambda: monkeypatch.setenv("PYTHONPATH", there))
    check_refused(counting, r"it has acme-tests 2\.0, the driver has 1\.0\. Install the same version", "acme")


def test_data_are_the_same(counting, elsewhere, tmp_path):
    goldens = tmp_path / "goldens.jsonl"
    golden = '{"input": "one", "expected_output": "ONE"}\n'
    goldens.write_text(golden)
    command = ["run-test", "--data-dir", str(tmp_path), "--dataset", str(goldens), "--metric", "exact_match"]
    command += ["--sut", counting.name(), "--plugin", counting.plugin, "--executor", "processes"]
    was = r"is not what it was in run \S+: its digest is [0-9a-f]{12}, and was [0-9a-f]{12}\."
    for change, said in (
        (lambda: goldens.write_text(golden * 2), was),
        (lambda: goldens.unlink(missing_ok=True), "cannot be read"),
    ):
        elsewhere(change)
        goldens.write_text(golden)
        refused = CliRunner().invoke(cli, command)
        assert refused.exit_code == 2
        assert re.search(rf"Worker process \d+ cannot take part: .*{goldens} {said}", refused.stderr)
        assert "Put the same files under the same paths everywhere." in refused.stderr
    assert counting.calls() == []
