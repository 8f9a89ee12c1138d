"""The hook of this plugin: the provider `transformers`. torch is imported once a model is loaded."""

from typing import Any

from modelgauge import hookimpl


@hookimpl
def modelgauge_register_suts(register: Any) -> None:
    """Register `transformers/PATH_OR_ID?dtype=…&device=…`: a folder with a model, or its id on the Hugging Face hub."""
    register.provider("transformers", "modelgauge_transformers.sut:TransformersModel")
