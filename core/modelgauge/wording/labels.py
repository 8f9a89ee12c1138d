"""Short labels for long names that stand beside each other in tables and sentences."""

import re
from collections.abc import Sequence
from itertools import takewhile

_LONGEST = 32
_PARTS = re.compile(r"[/?&=:]+|[^/?&=:]+")


def short_labels(names: Sequence[str]) -> list[str]:
    """Shorten names to the parts in which they differ, where one of them is long; else return them as they are.

    The labels differ where the names do: `replay//data/small.jsonl?seed=1` and `replay//data/large.jsonl?seed=1` become
    `small.jsonl` and `large.jsonl`.

    Args:
        names: of SUTs, or other names with `/`, `?`, `&`, `=` and `:` between their parts.
    """
    distinct = {name: _PARTS.findall(name) for name in names}
    if len(distinct) < 2 or max(map(len, names)) <= _LONGEST:
        return list(names)
    shortest = min(map(len, distinct.values())) - 1  # of each name one part is left
    before = min(_alike([parts[:shortest] for parts in distinct.values()]), shortest)
    after = _alike([parts[before + 1 :][::-1] for parts in distinct.values()])
    labels = {
        name: "".join(parts[before : len(parts) - after]).strip("/?&=:") for name, parts in distinct.items()
    }
    if len(set(labels.values())) < len(distinct) or not all(labels.values()):
        return list(names)
    return [labels[name] for name in names]


def title_labels(names: Sequence[str]) -> list[str]:
    """Shorten names as `short_labels` does; where a name is still long, to their last parts before any options.

    The labels differ where the names do.

    Args:
        names: see `short_labels`; one alone is shortened too.
    """
    labels = short_labels(names)
    if max(map(len, labels), default=0) <= _LONGEST:
        return labels
    ends = [label.split("?")[0].rpartition("/")[2] or label for label in labels]
    return ends if len(set(ends)) == len(set(names)) else labels


def _alike(lists: Sequence[Sequence[str]]) -> int:
    """Return the length of the longest common prefix of all lists."""
    return sum(1 for _ in takewhile(lambda parts: len(set(parts)) == 1, zip(*lists, strict=False)))
