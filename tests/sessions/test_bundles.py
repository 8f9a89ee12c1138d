"""A session of pytest goes into a bundle, and comes out as it was."""

import pytest
from processes import in_process_of_its_own
from pytest_sessions import TEST_FILE

from modelgauge.bundles.bundling import bundle
from modelgauge.bundles.checking import check
from modelgauge.bundles.unbundling import unbundle
from modelgauge.config.redaction import Redactor
from modelgauge.engine.run_files.folder import all_runs


@pytest.mark.parametrize("options", [[], ["-n", "2", "--repeat", "2"]], ids=["one process", "repeats in two"])
def test_a_session_is_bundled_and_checked(here, options):
    (here / "test_app.py").write_text(TEST_FILE, encoding="utf-8")
    in_process_of_its_own("modelgauge", "test", "run", "test_app.py", "-q", *options)
    [run] = all_runs(here / "run_data")
    bundle([run], here / "run_data", here / "session.mgb", Redactor())
    unbundle(here / "session.mgb", here / "received")
    for name in (str(run.path), str(here / "session.mgb"), str(here / "received")):
        [found] = check(name, here / "run_data", None, None).runs
        assert (found.items, found.findings, found.unchecked) == (7, [], []), name
