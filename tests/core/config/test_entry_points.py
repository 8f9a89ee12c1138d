import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

from modelgauge import Runner
from modelgauge.config.entry_points import (
    PluginEntryPoint,
    canonical_distribution,
    installed_entry_points,
    installed_version,
    warn_of_foreign_distributions,
)
from modelgauge.evals import LLMTestCase
from modelgauge.metrics import ExactMatchMetric


def test_a_distribution_announces_its_plugins(site):
    site.distribution(
        "My.Acme-plugin", "one = acme.one\ntwo = acme.two:plugin [extra]\n# no = x\n", version="2.3"
    )
    site.distribution("other", "main = other:main", group="console_scripts")
    site.distribution("old", "old = old_register", suffix="egg-info")
    assert installed_entry_points([str(site.folder)]) == [
        PluginEntryPoint("one", "acme.one", "My.Acme-plugin", "2.3"),
        PluginEntryPoint("two", "acme.two:plugin", "My.Acme-plugin", "2.3"),
        PluginEntryPoint("old", "old_register", "old", "1.0"),
    ]


def test_the_first_on_the_path_counts(tmp_path, site):
    site.distribution("acme-plugin", "acme = new", version="2")
    later = type(site)(tmp_path / "later")
    later.distribution("acme_plugin", "acme = old", version="1")
    found = installed_entry_points([str(site.folder), str(later.folder), str(site.folder)])
    assert [each.value for each in found] == ["new"]


def test_of_two_in_one_folder_the_one_written_last_counts(site):
    stale = site.distribution("acme", "acme = stale", version="9")
    fresh = site.distribution("acme", "acme = fresh", version="1")
    os.utime(stale, (1, 1))
    assert [each.value for each in installed_entry_points([str(site.folder)])] == ["fresh"]
    os.utime(stale, (2e9, 2e9))
    os.utime(fresh, (1, 1))
    (site.folder / "something else").touch()  # else nothing tells that the folder was written in
    assert [each.value for each in installed_entry_points([str(site.folder)])] == ["stale"]


def test_what_is_installed_edited_or_removed_meanwhile_counts_at_once(site):
    acme = site.distribution("acme", "acme = acme.zero")
    assert [each.value for each in installed_entry_points([str(site.folder)])] == ["acme.zero"]
    announced = acme / "entry_points.txt"
    announced.write_text(announced.read_text().replace("acme.zero", "acme.one"))
    assert [each.value for each in installed_entry_points([str(site.folder)])] == ["acme.one"]
    later = site.distribution("beta", "beta = beta.one")
    assert [each.value for each in installed_entry_points([str(site.folder)])] == ["acme.one", "beta.one"]
    shutil.rmtree(later)
    assert [each.value for each in installed_entry_points([str(site.folder)])] == ["acme.one"]


def test_a_line_that_stands_twice_is_one_plugin(site):
    site.distribution("acme", "acme = a\nacme = a")
    assert len(installed_entry_points([str(site.folder)])) == 1


def test_the_standard_library_says_the_same(site):
    site.distribution("acme", "a = acme.a\n# comment\nb = acme.b:x.y", version="1.2.3")
    expected = {
        (each.name, each.value, each.dist.name, each.dist.version)
        for each in importlib.metadata.entry_points(group="modelgauge")
    }
    found = installed_entry_points()
    assert {(each.name, each.value, each.distribution, each.version) for each in found} == expected
    assert {each.distribution for each in found} >= {"acme"}


def test_archives_on_the_path_are_read_too(site, tmp_path):
    site.distribution("acme", "a = acme.a")
    archive = tmp_path / "bundle.zip"
    with zipfile.ZipFile(archive, "w") as bundle:
        bundle.writestr("zipped-1.0.dist-info/METADATA", "Name: zipped\nVersion: 1.0\n")
        bundle.writestr(
            "zipped-1.0.dist-info/entry_points.txt", "[modelgauge]\nno equals sign\nz = zipped.z\n"
        )
    found = installed_entry_points([str(archive), str(site.folder)])
    assert [(each.distribution, each.value) for each in found] == [("acme", "acme.a"), ("zipped", "zipped.z")]


def test_other_finders_are_asked_too(site, monkeypatch):
    class Elsewhere(importlib.metadata.DistributionFinder):
        def find_spec(self, *args):
            return None

        def find_distributions(self, context=None):
            elsewhere = site.folder.parent / "elsewhere"
            type(site)(elsewhere).distribution("hidden", "h = hidden.h")
            return importlib.metadata.MetadataPathFinder.find_distributions(
                importlib.metadata.DistributionFinder.Context(path=[str(elsewhere)])
            )

    monkeypatch.setattr(sys, "meta_path", [Elsewhere(), *sys.meta_path])
    assert [each.distribution for each in installed_entry_points([str(site.folder)])] == ["hidden"]


def test_damaged_metadata_and_missing_folders_are_no_error(site, tmp_path):
    broken = site.distribution("acme", "a = acme.a\nno equals sign\n[other]\nb = c")
    (broken / "METADATA").unlink()
    (site.folder / "file-1.0.egg-info").write_text("Name: file\n", encoding="utf-8")
    found = installed_entry_points([str(tmp_path / "nowhere"), str(site.folder)])
    assert found == [PluginEntryPoint("a", "acme.a", "acme", "")]


@pytest.mark.parametrize("name", ["My.Plugin", "my_plugin", "MY--plugin"])
def test_names_of_distributions_are_normalized(name):
    assert canonical_distribution(name) == "my-plugin"


def test_versions_are_looked_up():
    assert installed_version("pluggy") == importlib.metadata.version("pluggy")
    assert installed_version("no-such-distribution") == ""


# --- what does not belong beside ours -------------------------------------------------------------


@pytest.fixture
def first_use():
    """As in a process that has not run anything yet."""
    warn_of_foreign_distributions.cache_clear()
    yield
    warn_of_foreign_distributions.cache_clear()


def test_a_foreign_distribution_is_told_once_with_the_commands_that_put_it_right(site, tmp_path, first_use):
    site.distribution("modelgauge", "", version="0.6.3")
    site.distribution("Modelgauge.OpenAI", "", version="0.6.3")
    with pytest.warns(UserWarning, match="modelgauge, modelgauge-openai: installed beside") as caught:
        Runner(tmp_path)
    Runner(tmp_path)  # a second warning would be an error
    assert len(caught) == 1
    *_, remove, reinstall = str(caught[0].message).splitlines()
    assert remove == "  pip uninstall modelgauge modelgauge-openai"
    assert reinstall.startswith("  pip install --force-reinstall --no-deps ")
    assert all(one.startswith(("file:", "-e", "modelgauge-")) for one in reinstall.split()[4:])


def test_a_metric_alone_tells_of_a_foreign_distribution(site, tmp_path, first_use, monkeypatch):
    monkeypatch.chdir(tmp_path)
    site.distribution("modelgauge", "")
    with pytest.warns(UserWarning, match="modelgauge: installed beside"):
        ExactMatchMetric().measure(LLMTestCase("q", "a", "a"))


def test_every_command_tells_of_a_foreign_distribution(site):
    site.distribution("modelgauge-standard-tests", "")
    done = subprocess.run(
        [sys.executable, "-m", "modelgauge", "list-suts"],
        env={**os.environ, "PYTHONPATH": str(site.folder)},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert done.stderr.startswith("Warning: modelgauge-standard-tests: installed beside modelgauge-framework")
    assert done.stderr.count("pip uninstall modelgauge-standard-tests") == 1
    assert "Warning" not in done.stdout


def test_plugins_of_the_other_project_that_a_bridge_requires_are_not_to_be_removed(
    site, tmp_path, first_use, recwarn
):
    site.distribution("modelgauge-standard-tests", "")
    bridge = site.distribution("acme-bridge", "acme = acme.bridge")
    requires = "Modelgauge_Standard.Tests>=0.6; python_version>'3'"
    metadata = f"Name: acme-bridge\nVersion: 1\nRequires-Dist: {requires}\nRequires-Dist: modelgauge\n"
    (bridge / "METADATA").write_text(metadata, encoding="utf-8")
    warn_of_foreign_distributions()
    assert [str(warning.message) for warning in recwarn] == []
    warn_of_foreign_distributions.cache_clear()
    site.distribution("modelgauge", "")
    site.distribution("modelgauge-openai", "")
    with pytest.warns(UserWarning, match="modelgauge, modelgauge-openai: installed") as caught:
        warn_of_foreign_distributions()
    assert "pip uninstall modelgauge modelgauge-openai\n" in str(caught[0].message)


@pytest.mark.parametrize("name", ["modelgauge-framework", "modelgauge-plugin-openai", "modelgauge-acme"])
def test_ours_and_the_plugins_of_others_are_not_foreign(site, tmp_path, name, first_use, recwarn):
    site.distribution(name, "")
    Runner(tmp_path)
    assert [str(one.message) for one in recwarn] == []


@pytest.mark.parametrize(
    ("origin", "source"),
    [
        ({}, "modelgauge-plugin-acme"),
        ({"url": "file:///a/b", "dir_info": {}}, "file:///a/b"),
        ({"url": "file:///a/b", "dir_info": {"editable": True}}, "-e file:///a/b"),
        ({"url": "https://host/a.git", "vcs_info": {"vcs": "git"}}, "git+https://host/a.git"),
    ],
)
def test_ours_is_reinstalled_as_it_was_installed(site, origin, source, first_use):
    site.distribution("modelgauge", "")
    ours = site.distribution("modelgauge-plugin-acme", "")
    (ours / "direct_url.json").write_text(json.dumps(origin), encoding="utf-8")
    with pytest.warns(UserWarning, match=re.escape(f" {source}")):
        warn_of_foreign_distributions()


@pytest.mark.skipif(os.name != "posix", reason="links are POSIX")
def test_metadata_that_leads_nowhere_does_not_hide_what_is_there(site):
    for version in ("0.9", "2.0"):  # whichever is listed first
        (site.folder / f"acme-{version}.dist-info").symlink_to(site.folder / "nowhere")
    site.distribution("acme", "acme = here")
    assert [each.value for each in installed_entry_points([str(site.folder)])] == ["here"]
