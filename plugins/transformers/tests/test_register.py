"""The provider without torch: listing, options, identities and what is said when torch is missing."""

import json
import subprocess
import sys

import pytest

from modelgauge import ChatMessage, ChatPrompt, ContinuationPrompt, SUTOptions, TextPrompt
from modelgauge.errors import InputFileError, InvalidOptionError
from modelgauge_transformers.sut import TransformersModel


@pytest.fixture
def folder(tmp_path):
    """A folder with the files of a model, as far as they are digested."""
    made = tmp_path / "model"
    made.mkdir()
    (made / "config.json").write_text("{}")
    (made / "model.safetensors").write_bytes(b"weights")
    return made


def make(folder, **options):
    return TransformersModel(f"transformers/{folder}", str(folder), **options)


def test_listing_imports_neither_torch_nor_transformers():
    code = (
        "import sys; from modelgauge.cli.entry import main; sys.argv = ['modelgauge', 'list-suts']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "assert not {'torch', 'transformers', 'modelgauge_transformers.sut'} & set(sys.modules)"
    )
    listed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "transformers/" in listed.stdout


def test_equal_files_have_one_identity_wherever_they_are(folder, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in folder.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    assert make(folder).identity() == make(copy, device="cuda:1", batch_tokens=99).identity()
    assert str(tmp_path) not in json.dumps(make(folder).identity())


def test_other_weights_or_numbers_are_another_identity(folder):
    first = make(folder).identity()
    assert make(folder, dtype="float16").identity() != first
    (folder / "model.safetensors").write_bytes(b"Weights!")
    assert make(folder).identity() != first


def test_notes_beside_the_model_change_no_identity(folder):
    first = make(folder).identity()
    (folder / "README.md").write_text("A model.")
    assert make(folder).identity() == first


def test_commit_of_an_id_needs_no_network(monkeypatch):
    commit = "0123456789abcdef0123456789abcdef01234567"
    sut = TransformersModel("transformers/acme/tiny", "acme/tiny", revision=commit)
    assert sut.cache_version == f"acme/tiny@{commit}"
    assert sut.initialization.cache_version == f"acme/tiny@{commit}"


def test_missing_folder_is_named(tmp_path):
    with pytest.raises(InputFileError, match="There is no folder"):
        _ = make(tmp_path / "nowhere").cache_version


def test_folder_with_gguf_files_only_names_the_option(tmp_path):
    (tmp_path / "small.gguf").write_bytes(b"GGUF")
    with pytest.raises(InputFileError, match=r"\?gguf_file=small\.gguf"):
        _ = make(tmp_path).cache_version


def test_gguf_file_in_place_of_its_folder_names_both(tmp_path):
    (tmp_path / "small.gguf").write_bytes(b"GGUF")
    with pytest.raises(InvalidOptionError, match=r"gguf_file=small\.gguf"):
        _ = make(tmp_path / "small.gguf").cache_version


def test_folder_has_no_revision(folder):
    with pytest.raises(InvalidOptionError, match="no revision 'main'"):
        _ = make(folder, revision="main").cache_version


def test_run_without_torch_names_what_to_install(folder, tmp_path):
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from modelgauge.cli.entry import main\n"
        f"sys.argv = ['modelgauge', 'run-sut', '--sut', 'transformers/{folder}', '--prompt', 'Hi']\n"
        "main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, cwd=tmp_path
    )
    assert ended.returncode
    assert "modelgauge-plugin-transformers[torch]" in " ".join(ended.stderr.split())


def test_requests_hold_what_was_asked_for(folder):
    sut = make(folder)
    asked = sut.translate_text_prompt(TextPrompt("Hi", SUTOptions(max_tokens=3, temperature=0.5, random="x")))
    assert asked == {"text": "Hi", "max_tokens": 3, "options": {"temperature": 0.5, "random": "x"}}
    chat = [ChatMessage("user", "Hi")]
    assert sut.translate_chat_prompt(ChatPrompt(chat))["messages"] == [{"role": "user", "content": "Hi"}]
    scored = sut.translate_continuation_prompt(ContinuationPrompt(chat, [" a", " b"]))
    assert scored == {"context": [{"role": "user", "content": "Hi"}], "continuations": [" a", " b"]}


def test_words_of_lm_eval_are_answered_with_ours(folder, tmp_path):
    command = [
        sys.executable,
        "-m",
        "modelgauge",
        "run-sut",
        "--prompt",
        "Hi",
        "--sut",
        f"transformers/{folder}?peft=lora",
    ]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)
    assert "'peft' is called 'adapter' here" in ended.stderr
