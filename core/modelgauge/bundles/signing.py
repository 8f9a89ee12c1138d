"""Signatures of bundles, by `ssh-keygen -Y`: who signed the manifest, whose hashes cover all the rest."""

import re
import subprocess
from pathlib import Path

from modelgauge.bundles.manifest import SIGNED_BY
from modelgauge.engine.run_files.folder import BUNDLE
from modelgauge.errors import BundleError, UsageError
from modelgauge.files.regular import bytes_of_file, read_bytes

_PURPOSE = "modelgauge-bundle"
_KEY = re.compile(r"key (\S+)")
UNSIGNED = "It is not signed, so nothing proves who made it."


def sign(folder: Path, key: Path) -> None:
    """Sign the manifest in a folder.

    Args:
        folder: of the bundle; gets the signature.
        key: the private key, or the public one of a key that the agent holds.

    Raises:
        UsageError: the key cannot be used, or `ssh-keygen` is missing.
    """
    done = _ssh_keygen("sign", "-f", str(key), "-n", _PURPOSE, str(folder / BUNDLE))
    if done is None:
        raise UsageError(
            "`ssh-keygen` is not installed, so the bundle cannot be signed.",
            fix="Install OpenSSH, or leave --sign out.",
        )
    if done.returncode or not (folder / SIGNED_BY).is_file():
        raise UsageError(
            f"`ssh-keygen` cannot sign with {key}: {_last_line(done) or 'it made no signature'}.",
            fix="Give a key that it can: ssh-keygen -t ed25519 -f FILE makes one.",
        )


def who_signed(folder: Path, allowed_signers: Path | None) -> str:
    """Return a sentence that says who signed a bundle, as far as it is known.

    Args:
        folder: of the unpacked bundle.
        allowed_signers: a file of keys with their owners, as `man ssh-keygen` describes it; then the bundle must be
            signed by one of them.

    Raises:
        BundleError: the signature is not that of the manifest, or not by one of those who are allowed.
        InputFileError: the file of keys cannot be read.
    """
    signature = folder / SIGNED_BY
    if not signature.exists():
        if allowed_signers is None:
            return UNSIGNED
        raise BundleError("The bundle is not signed.", fix="Ask its author to make it with --sign KEY.")
    if allowed_signers is None:
        return _read_key(folder)
    bytes_of_file(allowed_signers)  # else a missing file would be a list without a key
    owner = _ssh_keygen("find-principals", "-s", str(signature), "-f", str(allowed_signers))
    if owner is None:
        raise UsageError(
            "`ssh-keygen` is not installed, so the signature cannot be checked.",
            fix="Install OpenSSH, or leave --allowed-signers out.",
        )
    for principal in owner.stdout.decode(errors="replace").split("\n"):
        if not owner.returncode and principal and _is_by(principal, folder, allowed_signers):
            return f"It is signed by {principal}, as {allowed_signers} has it."
    raise BundleError(
        f"The bundle is not signed by anybody in {allowed_signers}.",
        fix="Ask its author for the public key. Without --allowed-signers it is unpacked whoever signed it.",
    )


def _read_key(folder: Path) -> str:
    done = _ssh_keygen("check-novalidate", "-n", _PURPOSE, "-s", str(folder / SIGNED_BY), of=folder / BUNDLE)
    if done is None:
        return "It has a signature, which is not checked, since `ssh-keygen` is not installed."
    if done.returncode:
        raise BundleError(
            f"The signature is not that of {BUNDLE}: {_last_line(done)}.",
            fix="Ask whoever sent it for the bundle again.",
        )
    key = _KEY.search(done.stdout.decode(errors="replace"))
    return (
        f"It is signed by the key {key[1] if key else '?'}; --allowed-signers FILE says whether that is the key of "
        "somebody you know."
    )


def _is_by(principal: str, folder: Path, allowed_signers: Path) -> bool:
    names = ("-f", str(allowed_signers), "-I", principal, "-n", _PURPOSE, "-s", str(folder / SIGNED_BY))
    done = _ssh_keygen("verify", *names, of=folder / BUNDLE)
    return done is not None and not done.returncode


def _ssh_keygen(
    action: str, *arguments: str, of: Path | None = None
) -> "subprocess.CompletedProcess[bytes] | None":
    """Run `ssh-keygen -Y`; None if it is not installed. It asks for a key's passphrase in the terminal."""
    content = None if of is None else read_bytes(of, links=False)
    try:
        return subprocess.run(  # noqa: S603  what stands in a bundle is no argument
            ["ssh-keygen", "-Y", action, *arguments],  # noqa: S607  the user's own, wherever it is
            input=content,
            stdin=None if content is not None else subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        return None


def _last_line(done: "subprocess.CompletedProcess[bytes]") -> str:
    """Return the last line that it wrote to stderr."""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1].rstrip(".\r") if lines else ""
