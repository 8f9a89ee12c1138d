"""Hooks of this distribution.

This module is imported whenever anybody lists plugins, so it imports no Test: each target is a text.
"""

from collections.abc import Callable

from modelgauge import hookimpl


@hookimpl
def modelgauge_register_tests(register: Callable[..., None]) -> None:
    """Register a uid, and the class that is made under it."""
    register("demo_01", "modelgauge_demo_tests.demo_01_simple_qa:SimpleQATest")
    register("demo_02", "modelgauge_demo_tests.demo_02_unpacking:UnpackingTest")
    register("demo_03", "modelgauge_demo_tests.demo_03_paired_prompts:PairedPromptsTest")
    register("demo_04", "modelgauge_demo_tests.demo_04_annotation:AnnotationTest")
    register("demo_05", "modelgauge_demo_tests.demo_05_gender_stereotypes:GenderStereotypesTest")
    register("demo_06", "modelgauge_demo_tests.demo_06_multiple_choice:MultipleChoiceTest")
    register("demo_07", "modelgauge_demo_tests.demo_07_continuations:ContinuationsTest")
