"""Hooks of this plugin: the provider `openai`. The SUT is imported on use."""

from typing import Any

from modelgauge import InjectSecret, hookimpl


@hookimpl
def modelgauge_register_suts(register: Any) -> None:
    """`openai/MODEL`, at OpenAI or at any server of the protocol: `openai/MODEL?server=groq`, `…?base_url=…`."""
    register.provider(
        "openai",
        "modelgauge_openai.sut:OpenAIModel",
        servers="modelgauge_openai.servers:SERVERS",
        api_key=InjectSecret("modelgauge_openai.key:FoundKey"),
    )
