"""What is no file is refused at once, wherever the user names one; links that lead in a circle are told."""

import os
from pathlib import Path

import children
import pytest

from modelgauge import load_record
from modelgauge.dependencies.sources import LocalData
from modelgauge.dependencies.store import DependencyStore
from modelgauge.errors import DownloadError, ModelGaugeError
from modelgauge.evals import EvaluationDataset
from modelgauge.files.regular import (
    NotRegularError,
    check_regular,
    exists,
    is_file,
    is_folder,
    opened,
    read_bytes,
    real_path,
)
from modelgauge.suts.replay import ReplaySUT
from modelgauge.text.chat import load_chat

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes and devices are POSIX")


@pytest.mark.parametrize("kind", ["pipe", "device", "circle"])
@pytest.mark.parametrize(
    ("read", "name"),
    [
        (EvaluationDataset.from_file, "goldens.csv"),
        (EvaluationDataset.from_file, "goldens.jsonl"),
        (lambda file: ReplaySUT("replay", str(file)), "answers.jsonl"),
        (load_chat, "chat.json"),
        (load_record, "record.json"),
        (load_record, "out.json"),
    ],
)
def test_what_is_no_file_is_refused_at_once(tmp_path, read, name, kind):
    file = tmp_path / name
    if kind == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to("/dev/zero" if kind == "device" else name)
    with pytest.raises(ModelGaugeError):
        read(file)


def test_a_link_to_a_file_that_the_user_names_is_followed(tmp_path):
    (tmp_path / "goldens.csv").write_text("input\nq\n", encoding="utf-8")
    (tmp_path / "link.csv").symlink_to("goldens.csv")
    assert len(EvaluationDataset.from_file(tmp_path / "link.csv").goldens) == 1


def test_a_file_of_ones_own_is_neither_a_link_nor_written_by_another_name(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"theirs")
    os.link(file, tmp_path / "hard")
    (tmp_path / "link").symlink_to("file")
    assert read_bytes(tmp_path / "hard", links=False) == read_bytes(tmp_path / "link") == b"theirs"
    for name, mode in (("hard", "r+b"), ("hard", "ab"), ("link", "rb"), ("link", "ab")):
        with pytest.raises(NotRegularError):
            opened(tmp_path / name, mode)
    (tmp_path / "hard").unlink()
    with pytest.raises(FileExistsError):
        opened(file, "x+b")
    opened(file, "r+b").close()
    assert file.read_bytes() == b"theirs"


def test_folders_whose_links_lead_in_a_circle_are_told(tmp_path):
    (tmp_path / "data" / "inner").mkdir(parents=True)
    for name in ("one", "two"):  # two, so that all ways through them are more than anybody can go
        (tmp_path / "data" / "inner" / name).symlink_to("..")
    store = DependencyStore(tmp_path / "store")
    with pytest.raises(DownloadError, match="its links lead in a circle"):
        store.resolve("owner", "key", LocalData(tmp_path / "data"))
    circle = tmp_path / "circle"
    circle.symlink_to("circle")
    assert real_path(circle).name == "circle"
    env = children.environment(MODELGAUGE_DATA_DIR=str(circle))
    ended = children.run("-m", "modelgauge", "datasets", "list", tmp_path, env=env)
    assert ended.returncode == 0, ended.stderr


def test_a_folder_of_data_may_have_links_that_lead_elsewhere(tmp_path):
    for name in ("data", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "other" / "file").write_bytes(b"1")
    for name in ("one", "two"):
        (tmp_path / "data" / name).symlink_to("../other")
    store = DependencyStore(tmp_path / "store")
    assert store.resolve("owner", "key", LocalData(tmp_path / "data")).version
    os.mkfifo(tmp_path / "other" / "pipe")
    with pytest.raises(DownloadError, match="it is not a regular file"):
        store.resolve("owner", "key", LocalData(tmp_path / "data"))


def test_what_came_into_the_place_of_a_file_since_is_refused_too(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    before = len(list(Path("/dev/fd").iterdir()))
    monkeypatch.setattr("modelgauge.files.regular._looked_at", lambda path, *, links: None)
    with pytest.raises(NotRegularError, match="it is not a regular file"):
        opened(tmp_path / "pipe")
    assert len(list(Path("/dev/fd").iterdir())) == before
    monkeypatch.undo()
    with pytest.raises(IsADirectoryError):
        opened(tmp_path)


def test_what_is_written_is_there_at_once(tmp_path):
    with opened(tmp_path / "new", "ab") as file:
        file.write(b"x")
        assert (tmp_path / "new").read_bytes() == b"x"
    check_regular(tmp_path / "none")
    check_regular(tmp_path / "new", writes=True)
    os.link(tmp_path / "new", tmp_path / "hard")
    check_regular(tmp_path / "new")
    with pytest.raises(NotRegularError, match="it is a hard link to another file"):
        check_regular(tmp_path / "new", writes=True)
    check_regular(tmp_path, writes=True)  # which `open` refuses itself


def test_what_is_at_a_path_is_known_or_the_error_is_raised(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "circle").symlink_to("circle")
    os.mkfifo(tmp_path / "pipe")
    kinds = {
        name: [look(tmp_path / name) for look in (exists, is_file, is_folder)]
        for name in ("", "file", "link", "pipe", "none", "circle", "file/below", "nul\0")
    }
    assert kinds == {
        "": [True, False, True],
        "file": [True, True, False],
        "link": [True, True, False],
        "pipe": [True, False, False],
    } | dict.fromkeys(("none", "circle", "file/below", "nul\0"), [False] * 3)
    for look in (exists, is_file, is_folder):
        with pytest.raises(OSError, match="File name too long"):
            look(tmp_path / ("x" * 300))
