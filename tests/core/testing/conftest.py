"""Plugins in a folder, sound ones and deliberately broken ones, and what the kit says of them."""

import textwrap

import pytest

from modelgauge.testing import Status, check_plugin


class Checked:
    """The report of a plugin, by subject."""

    def __init__(self, report):
        self.report = report

    def broken(self, subject):
        """The ids of the rules that it breaks."""
        return {one.rule for one in self.of(subject) if one.status is Status.problem}

    def broken_among(self, subjects):
        """The same of many subjects, without those that break none."""
        return {subject: rules for subject in subjects if (rules := self.broken(subject))}

    def untold(self, broken):
        """Subjects of which a rule does not say what is wrong, or not how to mend it.

        Args:
            broken: for each of them the rule, and words of what it says.
        """
        return [uid for uid, (rule, said) in broken.items() if not self._tells(uid, rule, said)]

    def _tells(self, subject, rule, said):
        found = [one for one in self.of(subject) if one.rule == rule and one.status is Status.problem]
        return said in " ".join(map(str, found)) and all(one.fix.strip() for one in found)

    def of(self, subject):
        found = [finding for finding in self.report.findings if finding.subject == subject]
        assert found, f"nothing was said of {subject}"
        return found

    def only(self, subject, rule, status=Status.problem):
        """What one rule says, once."""
        (finding,) = [one for one in self.of(subject) if one.rule == rule and one.status is status]
        return finding


@pytest.fixture(scope="module")
def check_source(tmp_path_factory):
    """Check a local plugin that is given by its source; more files may stand beside it."""

    def check(source, *, beside=None, **options):
        folder = tmp_path_factory.mktemp("plugin")
        for name, text in {"plugin.py": source, **(beside or {})}.items():
            (folder / name).write_text(textwrap.dedent(text), encoding="utf-8")
        return Checked(check_plugin(str(folder / "plugin.py"), data_dir=folder / "data", **options))

    return check
