"""Hooks of this distribution.

This module is imported whenever anybody lists plugins, so it imports no annotator: each target is a text.
"""

from collections.abc import Callable

from modelgauge import hookimpl


@hookimpl
def modelgauge_register_annotators(register: Callable[..., None]) -> None:
    """Register a uid, which Tests name, and the class that is made under it."""
    register("demo_starts_with_y", "modelgauge_demo_annotators.starts_with_y:StartsWithYAnnotator")
    register("demo_word_list", "modelgauge_demo_annotators.word_list:WordListAnnotator")
