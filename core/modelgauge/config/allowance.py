"""`Allowance`: the number or share of items that may fail, as `--max-errors` and `--max-failed` take it."""

from dataclasses import dataclass

from modelgauge.errors import InvalidOptionError


@dataclass(frozen=True, slots=True)
class Allowance:
    """The most items that may fail: a number, or a percentage of all items.

    Args:
        text: the allowance as it was given.
        number: the number, or the percentage.
        percent: whether it is a percentage.
    """

    text: str
    number: float
    percent: bool

    @classmethod
    def parse(cls, given: str) -> "Allowance":
        """Read `N` or `P%`.

        Raises:
            InvalidOptionError: the text has another form.
        """
        text = given.strip()
        percent = text.endswith("%")
        try:
            number = float(text[:-1]) if percent else int(text)
        except ValueError:
            number = -1
        if not 0 <= number <= (100 if percent else float("inf")):
            raise InvalidOptionError(
                f"{text!r} is neither a number of items nor a percentage like 5%.", fix="Write 3, or 5%."
            )
        return cls(text, number, percent)

    def exceeded_by(self, failed: float, items: int) -> bool:
        """Return whether more of the items failed than are allowed to."""
        return failed * 100 > self.number * items if self.percent else failed > self.number
