"""Signed bundles: who signed one is known only by a list of keys."""

import shutil
import subprocess

import pytest

from modelgauge.bundles.bundling import bundle
from modelgauge.bundles.checking import check
from modelgauge.bundles.unbundling import unbundle
from modelgauge.config.redaction import Redactor
from modelgauge.errors import BundleError, InputFileError, UsageError

needs_ssh_keygen = pytest.mark.skipif(
    shutil.which("ssh-keygen") is None, reason="needs ssh-keygen of OpenSSH"
)


@pytest.fixture
def keys(tmp_path):
    """The files of two keys, and a list with the first of them."""
    for name in ("mine", "other"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(tmp_path / name)]
        subprocess.run(command, check=True, capture_output=True)
    public = (tmp_path / "mine.pub").read_text(encoding="utf-8")
    (tmp_path / "allowed").write_text(f"me@example.com {public}", encoding="utf-8")
    return tmp_path


@needs_ssh_keygen
def test_a_signed_bundle_is_known_by_the_list_of_keys(run, data_dir, keys, tmp_path):
    for name in ("one.mgb", "two.mgb"):
        bundle([run], data_dir, tmp_path / name, Redactor(), key=keys / "mine")
    assert (tmp_path / "one.mgb").read_bytes() == (tmp_path / "two.mgb").read_bytes()
    _, signed_by = unbundle(tmp_path / "one.mgb", tmp_path / "received", keys / "allowed")
    assert signed_by == f"It is signed by me@example.com, as {keys / 'allowed'} has it."
    assert check(str(tmp_path / "received"), data_dir, keys / "allowed", None).findings == []
    _, unknown = unbundle(tmp_path / "one.mgb", tmp_path / "again")
    assert "It is signed by the key SHA256:" in unknown
    assert "--allowed-signers FILE says whether that is the key of somebody you know." in unknown


@needs_ssh_keygen
def test_a_bundle_of_another_signer_or_of_none_is_refused(run, data_dir, bundled, keys, tmp_path):
    bundle([run], data_dir, tmp_path / "other.mgb", Redactor(), key=keys / "other")
    for file, why in (
        (tmp_path / "other.mgb", "is not signed by anybody in"),
        (bundled, "The bundle is not signed"),
    ):
        with pytest.raises(BundleError, match=why):
            unbundle(file, tmp_path / "received", keys / "allowed")
        assert not (tmp_path / "received").exists()
        assert (
            why.removeprefix("The bundle ") in check(str(file), data_dir, keys / "allowed", None).findings[0]
        )


@needs_ssh_keygen
def test_a_signature_of_another_manifest_is_refused(run, make_run, data_dir, keys, tmp_path):
    bundle([run], data_dir, tmp_path / "one.mgb", Redactor(), key=keys / "mine")
    unbundle(tmp_path / "one.mgb", tmp_path / "received")
    manifest = tmp_path / "received" / "bundle.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"redacted":false', b'"redacted":true'))
    for allowed in (None, keys / "allowed"):
        assert "sign" in check(str(tmp_path / "received"), data_dir, allowed, None).findings[0]


@needs_ssh_keygen
def test_a_list_of_keys_that_is_not_there_is_an_error(run, data_dir, keys, tmp_path):
    bundle([run], data_dir, tmp_path / "run.mgb", Redactor(), key=keys / "mine")
    with pytest.raises(InputFileError, match="nobody cannot be read"):
        unbundle(tmp_path / "run.mgb", tmp_path / "received", tmp_path / "nobody")
    assert not (tmp_path / "received").exists()


@needs_ssh_keygen
def test_a_key_that_is_none_makes_no_bundle(run, data_dir, tmp_path):
    (tmp_path / "text").write_text("no key", encoding="utf-8")
    with pytest.raises(UsageError, match=r"`ssh-keygen` cannot sign with .*text: "):
        bundle([run], data_dir, tmp_path / "run.mgb", Redactor(), key=tmp_path / "text")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "text"]


def test_without_ssh_keygen_nothing_is_signed(run, data_dir, bundled, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="`ssh-keygen` is not installed, so the bundle cannot be signed"):
        bundle([run], data_dir, tmp_path / "signed.mgb", Redactor(), key=bundled)
    assert not (tmp_path / "signed.mgb").exists()
