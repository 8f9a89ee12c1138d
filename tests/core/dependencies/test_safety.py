"""Which names are safe, and how uids become folder names."""

import string
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgauge.dependencies.safety import file_name, fold, folder_name, member_parts, unsafe_part

uids = st.text(alphabet=string.ascii_letters + "/?=&.~-_:* é", min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("a/b.txt", ("a", "b.txt")),
        ("./a//b/", ("a", "b")),
        (".", ()),
        (".hidden", (".hidden",)),
        ("..data", ("..data",)),
        ("nullable.txt", ("nullable.txt",)),
        ("日本語/ä.txt", ("日本語", "ä.txt")),
    ],
)
def test_safe_names_are_split(name, parts):
    assert member_parts(name) == parts


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("/etc/passwd", "absolute"),
        ("//host/share", "absolute"),
        ("..", "climbs"),
        ("a/../../b", "climbs"),
        ("a\\..\\b", "backslash"),
        ("\\\\host\\share", "backslash"),
        ("C:/windows", "colon"),
        ("C:evil", "colon"),
        ("file.txt:stream", "colon"),
        ("a\0b", "control"),
        ("a\nb", "control"),
        ("a\x7fb", "control"),
        ("bad\ud800", "broken Unicode"),
        ("nul", "reserves"),
        ("a/CON.txt", "reserves"),
        ("Aux .tar.gz", "reserves"),
        ("COM¹", "reserves"),
        ("CONOUT$", "reserves"),
        ("a./b", "dot or a space"),
        ("a /b", "dot or a space"),
        (".../b", "dot or a space"),
        ("x" * 256, "255 bytes"),
        ("é" * 128, "255 bytes"),
        ("a/" * 100, "deep"),
        ("a/" * 1000, "1,024 characters"),
    ],
)
def test_unsafe_names_are_refused(name, reason):
    with pytest.raises(ValueError, match=reason):
        member_parts(name)


@pytest.mark.parametrize(
    ("one", "other"), [("README", "readme"), ("é", "e\u0301"), ("STRASSE", "straße"), ("\u212b", "\u00e5")]
)
def test_names_that_some_system_takes_for_the_same_fold_together(one, other):
    assert fold(one) == fold(other)


def test_names_that_no_system_confuses_stay_apart():
    assert len({fold(name) for name in ("a", "b", "e", "é", "1", "①")}) == 6


@pytest.mark.parametrize("uid", ["gsm8k", "bbh_snarks", "a", "0", "demo-01.v2"])
def test_plain_uids_name_their_own_folder(uid):
    assert folder_name(uid) == uid


@pytest.mark.parametrize(
    "uid", ["", ".", "..", "a/b", "a?b=c", "GSM8K", "nul", "a.", "~", "x" * 300, "日本", "\ud800"]
)
def test_other_uids_get_safe_folders(uid):
    folder = folder_name(uid)
    assert unsafe_part(folder) is None
    assert len(folder) <= 64
    assert set(folder) <= set(string.ascii_lowercase + string.digits + "_-~")


def test_folders_can_be_recognized():
    assert folder_name("openai/gpt?t=1").startswith("openai-gpt-t-1~")


@given(uids, uids)
def test_different_uids_get_different_folders_even_where_case_does_not_count(one, other):
    if one != other:
        assert fold(folder_name(one)) != fold(folder_name(other))


@given(st.text(max_size=300))
def test_any_name_becomes_a_safe_file_name(name):
    safe = file_name(name)
    assert unsafe_part(safe) is None
    assert member_parts(safe) == (safe,)
    assert file_name(safe) == safe


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("test.jsonl.gz", "test.jsonl.gz"),
        ("a b?.csv", "a_b_.csv"),
        ("", "data"),
        ("..", "data"),
        ("con", "data"),
        ("é.txt", unicodedata.normalize("NFC", "é.txt")),
    ],
)
def test_file_names_stay_readable(name, safe):
    assert file_name(name) == safe


@pytest.mark.parametrize(
    "name", ["/".join(["a"] * 64), "x" * 255, f"{'é' * 127}x", "/".join(["x" * 204] * 5)], ids=len
)
def test_names_as_long_and_deep_as_they_may_be_are_safe(name):
    assert member_parts(name) == tuple(name.split("/"))


@pytest.mark.parametrize(
    "name", ["/".join(["a"] * 65), f"{'é' * 127}xy", "/".join(["x" * 204] * 5) + "y"], ids=len
)
def test_names_a_little_longer_or_deeper_are_not(name):
    with pytest.raises(ValueError, match="more than"):
        member_parts(name)


def test_folders_of_long_uids_begin_with_forty_letters_and_end_with_a_hash():
    assert folder_name("x" * 64) == "x" * 64
    stem, _, digest = folder_name("x" * 65).partition("~")
    assert (stem, len(digest)) == ("x" * 40, 16)
    assert folder_name("/a/ b_C/").startswith("a-b_c~")


def test_a_file_name_keeps_its_last_hundred_letters():
    assert file_name(f"{'a' * 50}{'b' * 97}.gz") == f"{'b' * 97}.gz"
    assert file_name(f"a{'.' * 99}x") == "x"
    assert file_name("a+b=c@d-e.f") == "a+b=c@d-e.f"
