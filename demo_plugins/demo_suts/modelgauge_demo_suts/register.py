"""Hooks of this distribution.

This module is imported whenever anybody lists plugins, so it imports no SUT: each target is a text.
"""

from collections.abc import Callable

from modelgauge import InjectSecret, hookimpl


@hookimpl
def modelgauge_register_suts(register: Callable[..., None]) -> None:
    """Register a uid, the class that is made under it, and the arguments that follow the uid."""
    register("demo_yes_no", "modelgauge_demo_suts.yes_no:YesNoSUT")
    register("demo_constant", "modelgauge_demo_suts.constant:ConstantSUT", "I am a constant")
    register("demo_bigrams", "modelgauge_demo_suts.bigrams:BigramsSUT")
    register("demo_async", "modelgauge_demo_suts.async_echo:AsyncEchoSUT")
    register(
        "demo_random_words",
        "modelgauge_demo_suts.random_words:RandomWordsSUT",
        InjectSecret("modelgauge_demo_suts.random_words:DemoApiKey"),
    )
