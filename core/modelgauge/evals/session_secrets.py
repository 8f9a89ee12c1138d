"""The secrets of a session of pytest: what any of its processes looked up is in no file of the session's run."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from modelgauge.config.secrets import SecretDescription, SecretStore
from modelgauge.engine.files.journal import whole_lines
from modelgauge.errors import SettingsError
from modelgauge.evals.session_run import place_of

_LEFT = "secrets-{}.jsonl"


class SessionSecrets(SecretStore):
    """Looks secrets up, and leaves their names, never their values, for the other processes of the session.

    The process that makes one record of all cases knows by them what to take out: under xdist it has looked up
    nothing itself, and a case may have been refused before its process knew the secret that stands in it.

    Args:
        folders: where the session's cases may be; the names are left in the first that is there.
        file: `secrets.toml`.
    """

    def __init__(self, folders: Sequence[Path], file: Path) -> None:
        super().__init__(file=file)
        self._folders = folders
        self._known: set[SecretDescription] = set()

    def find(self, description: SecretDescription) -> str | None:
        """As every store does; the name of what is found is left."""
        found = super().find(description)
        if found is not None and description not in self._known:
            self._known.add(description)
            with (place_of(self._folders) / _LEFT.format(os.getpid())).open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(description)) + "\n")
        return found

    def learn(self, folders: Sequence[Path]) -> list[str]:
        """Look up what all processes of the session did.

        Args:
            folders: where they can have left its names.

        Returns:
            What a reader of the record should know.
        """
        files = [path for folder in folders for path in sorted(folder.glob(_LEFT.format("*")))]
        left = [line for path in files for line in whole_lines(path)]
        named = dict.fromkeys(SecretDescription(**json.loads(line)) for line in left)
        problems = {one.name: self._problem(one) for one in named if one not in self._known}
        return [
            f"The value of {name} may stand here, since it could not be looked up again: {problem}"
            for name, problem in problems.items()
            if problem is not None
        ]

    def _problem(self, description: SecretDescription) -> str | None:
        """Why a secret is found no more; None where it is."""
        try:
            found = self.find(description)
        except SettingsError as error:
            return error.problem
        return None if found is not None else "it was there for a while only, in another process."
