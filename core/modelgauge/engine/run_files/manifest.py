"""The facts of a manifest about machine and code, and its signature.

A signature by the user's key distinguishes the user's own runs from those of others, which can name any SUTs, judges
and files.
"""

import hashlib
import hmac
import json
import os
import platform
import secrets
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from modelgauge.config.entry_points import DISTRIBUTION, installed_version
from modelgauge.files.regular import opened

SIGNATURE = "signature"
_KEY_BYTES = 32


def surroundings(command: Sequence[str] | None, distributions: Iterable[str]) -> dict[str, Any]:
    """Collect facts about the process and the machine for a manifest.

    Args:
        command: the command line, if a command began the run.
        distributions: names of the plugins' distributions that are used.
    """
    return {
        "command": list(command) if command is not None else None,
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
        "modelgauge": installed_version(DISTRIBUTION) or None,
        "plugins": list_versions(distributions),
        "git_commit": _git_commit(),
    }


def list_versions(distributions: Iterable[str]) -> dict[str, str | None]:
    """Return the versions of installed distributions; None if unknown."""
    return {name: installed_version(name) or None for name in sorted(set(distributions))}


def _git_commit() -> str | None:
    """Return the commit checked out in the working directory; None outside a repository or without git."""
    try:
        here = Path.cwd()
        if "GIT_DIR" not in os.environ and not any((up / ".git").exists() for up in (here, *here.parents)):
            return None  # without a process, which costs more than all the rest of a manifest
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"],  # noqa: S607  the user's own git, wherever it is
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() or None if found.returncode == 0 else None


# --- whose it is -----------------------------------------------------------------------------------------------------


def signed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest with this user's signature, or unsigned if the key can neither be read nor created."""
    plain = {name: value for name, value in manifest.items() if name != SIGNATURE}
    key = _key(make=True)
    return plain if key is None else {**plain, SIGNATURE: _signature(plain, key)}


def is_signed(manifest: Mapping[str, Any]) -> bool:
    """Return whether a manifest was written by this user and is unchanged since."""
    signature, key = manifest.get(SIGNATURE), _key(make=False)
    if key is None or not isinstance(signature, str):
        return False
    plain = {name: value for name, value in manifest.items() if name != SIGNATURE}
    return hmac.compare_digest(
        signature.encode("utf-8", "surrogatepass"), _signature(plain, key).encode("ascii")
    )


def _signature(plain: Mapping[str, Any], key: bytes) -> str:
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return f"hmac-sha256:{hmac.new(key, text.encode('ascii'), hashlib.sha256).hexdigest()}"


def _key(*, make: bool) -> bytes | None:
    """Return the user's key; None if there is none that only the user can read."""
    try:
        path = _config_folder() / "runs.key"
        if make and not path.exists():
            _make_key(path)
        with opened(path, links=True) as file:
            found, key = os.fstat(file.fileno()), file.read()
    except (OSError, RuntimeError):  # there is no home, or nothing can be written there
        return None
    if sys.platform != "win32" and (found.st_mode & 0o077 or found.st_uid != os.geteuid()):
        return None
    return key if len(key) == _KEY_BYTES else None


def _make_key(path: Path) -> None:
    """Make the key; where two processes do so at once, the key of the first stays."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        temporary.touch(mode=0o600, exist_ok=False)
        temporary.write_bytes(secrets.token_bytes(_KEY_BYTES))
        os.link(temporary, path)
    except FileExistsError:
        return
    finally:
        temporary.unlink(missing_ok=True)


def _config_folder() -> Path:
    """Return the user's configuration folder; in `%APPDATA%` on Windows."""
    given = os.environ.get("XDG_CONFIG_HOME") or (
        os.environ.get("APPDATA") if sys.platform == "win32" else ""
    )
    return (Path(given) if given else Path.home() / ".config") / "modelgauge"
