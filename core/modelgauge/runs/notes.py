"""Notes of people on a run: tags, a text, and whether it is a favourite, in `notes.json` in the run's folder."""

from dataclasses import asdict, dataclass, field
from json import dumps
from pathlib import Path
from typing import Any

from modelgauge.engine.run_files.folder import read_json
from modelgauge.errors import RecordError
from modelgauge.files.whole import replacing

NOTES = "notes.json"
LONGEST_TAG, MOST_TAGS, LONGEST_NOTE = 60, 40, 100_000


@dataclass(frozen=True, slots=True)
class Notes:
    """Notes of people on a run.

    Args:
        tags: short words, each once.
        note: a text.
        favourite: whether somebody marked it.
        before: what stood there before the last change, so that it can be undone; None if nothing did.
    """

    tags: tuple[str, ...] = ()
    note: str = ""
    favourite: bool = False
    before: dict[str, Any] | None = field(default=None, compare=False)

    @classmethod
    def of(cls, run: Path) -> "Notes":
        """Read the notes of a run; empty if nobody wrote any.

        Args:
            run: its folder.

        Raises:
            RecordError: the file is damaged.
        """
        path = run / NOTES
        if not path.exists():
            return cls()
        try:
            return cls._of_json(read_json(path))
        except (TypeError, ValueError, AttributeError):
            fix = "Correct the file, or remove it."
            raise RecordError(f"{path} holds no notes of a run.", fix=fix) from None

    @classmethod
    def _of_json(cls, data: Any) -> "Notes":
        before = data.get("before")
        return cls(
            tags=clean_tags(data.get("tags") or ()),
            note=str(data.get("note") or "")[:LONGEST_NOTE],
            favourite=bool(data.get("favourite")),
            before=before if isinstance(before, dict) else None,
        )

    def write(self, run: Path) -> None:
        """Replace the notes of a run; a kill leaves the old ones or the new ones.

        Args:
            run: its folder.

        Raises:
            OSError: the disk refuses.
        """
        with replacing(run / NOTES) as written:
            written.write_text(f"{dumps(asdict(self), indent=2, ensure_ascii=False)}\n", encoding="utf-8")

    def changed(self, **changes: Any) -> "Notes":
        """Other notes, which remember these.

        Args:
            changes: of tags, note or favourite.
        """
        now = {"tags": self.tags, "note": self.note, "favourite": self.favourite}
        return Notes(**{**now, **changes}, before=now)

    def undone(self) -> "Notes":
        """Return the notes before the last change. Undoing twice restores the current ones."""
        if self.before is None:
            return self
        earlier = self._of_json(self.before)
        return self.changed(tags=earlier.tags, note=earlier.note, favourite=earlier.favourite)


def clean_tags(words: Any) -> tuple[str, ...]:
    """Return tags without surrounding blanks and duplicates.

    Args:
        words: the tags, or one text in which commas part them.
    """
    parts = words.split(",") if isinstance(words, str) else [str(word) for word in words]
    clean = (" ".join(part.split())[:LONGEST_TAG] for part in parts)
    return tuple(dict.fromkeys(word for word in clean if word))[:MOST_TAGS]
