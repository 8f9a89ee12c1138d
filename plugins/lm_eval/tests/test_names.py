"""The names of tasks, read as text: forms of YAML, and lm-eval's own index as an oracle."""

import pytest

from modelgauge_lm_eval.names import Entry, index, installed_folder, installed_names


@pytest.fixture
def files(tmp_path):
    """Write files, and return the index of their folder."""

    def files(**texts):
        for name, text in texts.items():
            (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
        empty = tmp_path / "installed"
        empty.mkdir()
        return index([empty, tmp_path])

    return files


@pytest.mark.parametrize(
    "line", ["task: one", 'task: "one"', "'task': 'one'  # of two", '"task" :  one # first']
)
def test_name_of_a_task_in_any_quotes(files, tmp_path, line):
    assert files(a=f"{line}\noutput_type: multiple_choice\n") == {
        "one": Entry("one", "task", tmp_path / "a.yaml")
    }


@pytest.mark.parametrize("tags", ["[x, 'y']", "\n  - x\n  - y", "\n- x\n- 'y' # and no more"])
def test_tags_collect_tasks(files, tags):
    found = files(a=f"tag: {tags}\ntask: one\n", b="tag: x\ntask: two\n")
    assert (found["x"].kind, found["x"].tasks, found["y"].tasks) == ("tag", ["one", "two"], ["one"])


def test_included_files_give_what_the_file_lacks(files):
    found = files(a="include: base.yaml\ntask: one\n", base="task: base\ntag: t\n")
    assert found["t"].tasks == ["one", "base"]
    assert set(found) == {"one", "base", "t"}


def test_group_is_no_task(files):
    found = files(a="group: both\ntask:\n  - one\n  - two\n")
    assert (found["both"].kind, set(found)) == ("group", {"both"})


def test_files_that_include_each_other_end(files):
    assert set(files(a="include: b.yaml\ntask: one\n", b="include: a.yaml\ntask: two\n")) == {"one", "two"}


def test_names_are_those_of_lm_evals_own_index(lm_eval):
    from lm_eval.tasks import TaskManager

    theirs = TaskManager().task_index
    ours = index([installed_folder()])
    assert set(ours) == set(theirs)
    assert installed_names() == sorted(ours)
    kinds = {"TASK": "task", "PY_TASK": "task", "GROUP": "group", "TAG": "tag"}
    for name, entry in ours.items():
        assert (entry.kind, entry.path) == (kinds[theirs[name].kind.name], theirs[name].yaml_path)
        assert entry.kind != "tag" or set(entry.tasks) == theirs[name].tags
