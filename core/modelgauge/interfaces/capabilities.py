"""What a SUT can do beyond answering, and what a test may ask for. Marker classes, compared by identity."""

from typing import ClassVar

from modelgauge.errors import DefinitionError


class SUTCapability:
    """Base of all capabilities.

    `methods` names what a SUT must define to have the capability; defining all of them declares it.
    """

    methods: ClassVar[tuple[str, ...]] = ()


class AcceptsTextPrompt(SUTCapability):
    """The SUT takes a `TextPrompt`: it defines `translate_text_prompt`."""

    methods = ("translate_text_prompt",)


class AcceptsChatPrompt(SUTCapability):
    """The SUT takes a `ChatPrompt`: it defines `translate_chat_prompt`."""

    methods = ("translate_chat_prompt",)


class ProducesPerTokenLogProbabilities(SUTCapability):
    """The SUT returns `top_logprobs` where `SUTOptions.top_logprobs` asks for them."""


class ProducesStructuredOutput(SUTCapability):
    """The SUT answers in JSON that fits `SUTOptions.response_schema` where a prompt has one."""


def check_capabilities(owner: type, attribute: str, declared: object) -> None:
    """Refuse a class attribute that is no collection of capabilities.

    Raises:
        DefinitionError: it is not.
    """
    if isinstance(declared, tuple | list | set | frozenset) and all(
        isinstance(one, type) and issubclass(one, SUTCapability) for one in declared
    ):
        return
    raise DefinitionError(
        f"{owner.__qualname__}.{attribute} is {declared!r}, not a tuple of capabilities.",
        fix=f"Write {attribute} = (AcceptsTextPrompt,)",
    )
