"""Classes and objects as messages name them: "a str", "an int"."""


def with_article(name: str) -> str:
    """A name with its indefinite article."""
    # Of an LLMTestCase the first letters are spoken one by one.
    return f"{'an' if name.startswith(('LLM', *'aeioAEIO')) else 'a'} {name}"


def a_class(kind: type) -> str:
    """An object of a class."""
    return with_article(kind.__name__)


def a_thing(value: object) -> str:
    """What kind of object a value is."""
    return a_class(type(value))


def capitalized(text: str) -> str:
    """For the beginning of a sentence."""
    return text[:1].upper() + text[1:]
