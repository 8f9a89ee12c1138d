"""Base of all data classes: frozen, without unknown fields, with errors that name the right field, and lenient
loading.
"""

import inspect
import typing
import warnings
from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeGuard, TypeVar, cast

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    PydanticUserError,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import ErrorDetails

from modelgauge.data.json_values import IsDefault
from modelgauge.errors import InvalidDataError
from modelgauge.wording.did_you_mean import did_you_mean
from modelgauge.wording.phrases import a_thing, beginning, capitalized, counted, first_few

T = TypeVar("T")
FrozenT = TypeVar("FrozenT", bound="Frozen")

Text = Annotated[str, Field(min_length=0, strict=True)]
"""A str that UTF-8 can hold: with any constraint, pydantic looks at the UTF-8 and refuses lone surrogates.

Strict, since bytes are no text until somebody says in which encoding.
"""

Count = Annotated[int, Field(ge=0, lt=2**63)]
"""A number of things, or a position from 0, within the range of a 64-bit index."""

Seconds = Annotated[float, Field(ge=0, lt=2**63)]
"""A duration, or the time since a run began."""


def added_later(default: Any, **options: Any) -> Any:
    """Declare a field that earlier versions lack.

    While it has its default, JSON and cache keys leave it out: keys, digests and journals stay as they were.

    Args:
        default: of the field: None, False, 0 or ().
        options: others of `pydantic.Field`.
    """
    return Field(default=default, exclude_if=IsDefault(default), **options)


class Frozen(BaseModel):
    """A frozen pydantic model whose constructor explains what it refuses.

    Constructors raise `InvalidDataError` (a `ValueError`); `load` is for files: it skips fields that it does
    not know. A subclass may name in `positional_fields` those that its constructor takes by position, and
    states that signature for type checkers. One whose JSON gives back the same value whatever its fields hold
    may say so by `comes_back = True`, for itself alone; then it is not tried out for each context.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    positional_fields: ClassVar[tuple[str, ...]] = ()
    comes_back: ClassVar[bool]
    _all_fields: ClassVar[set[str]]  # one set for all values, since pydantic adds to copies of it alone
    meant_by: ClassVar[Mapping[str, str]] = {}  # what a field may be called by those who do not know its name

    def __init__(self, /, *args: Any, **data: Any) -> None:
        if args:
            names = self.positional_fields
            if len(args) == 1 and names and names[0] not in data:  # nearly always
                data[names[0]] = args[0]
            else:
                _name_positional(type(self), args, data)
        try:
            self.__pydantic_validator__.validate_python(data, self_instance=self)
        except ValidationError as error:
            __tracebackhide__ = True  # pytest shows whose line it is
            raise _not_a_list_error(error, type(self), data) or explain(error, type(self)) from None

    # Pydantic's own mark of an __init__ that nested validation and `model_validate` need not call.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    def replaced(self, **fields: Any) -> Self:
        """Return a copy with other values in some fields. The values are not checked, so they must be valid."""
        return with_values(self, fields, {*self.__pydantic_fields_set__, *fields})

    if not TYPE_CHECKING:  # for which nothing can be assigned

        def __setattr__(self, name: str, value: Any) -> None:
            try:
                super().__setattr__(name, value)
            except ValidationError as error:
                raise _frozen_error(error, self, name) or error from None

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Show in the signature which fields may be given by position; pydantic writes names only."""
        super().__pydantic_init_subclass__(**kwargs)
        cls._all_fields = set(cls.model_fields)
        signature, by_both = inspect.signature(cls), inspect.Parameter.POSITIONAL_OR_KEYWORD
        others = dict(signature.parameters)
        by_position = [others.pop(name).replace(kind=by_both) for name in cls.positional_fields]
        named = [parameter for parameter in others.values() if parameter.kind is not parameter.VAR_POSITIONAL]
        cls.__signature__ = signature.replace(parameters=[*by_position, *named])

    @classmethod
    def load(cls, data: Any, unknown: "UnknownFields | None" = None) -> Self:
        """Read a value from the JSON data of a file, which a newer version may have written.

        Fields that this version does not know are skipped, with one warning.

        Args:
            data: JSON data.
            unknown: gives one warning for many values of one file.

        Raises:
            InvalidDataError: the data does not fit in another way.
        """
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            strict = error
        try:
            value = cls.model_validate(data, extra="ignore")
        except ValidationError as error:
            raise explain(error, cls) from None
        lines = strict.errors(include_url=False)
        skipped = [line["loc"] for line in lines if line["type"] == "extra_forbidden"]
        (unknown or UnknownFields()).skip(skipped)
        return value


# Past a frozen model's own __setattr__.
_new = object.__new__
_set_fields, _set_names, _set_extra, _set_private = (
    vars(BaseModel)[name].__set__
    for name in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)


def with_values(value: FrozenT, fields: Mapping[str, Any], fields_set: set[str]) -> FrozenT:
    """Return a copy of a value with other, valid, values in some fields."""
    made = _new(type(value))
    _set_fields(made, {**value.__dict__, **fields})
    _set_names(made, fields_set)
    _set_extra(made, None)
    _set_private(made, value.__pydantic_private__)
    return made


def of_valid(cls: type[FrozenT], /, **fields: Any) -> FrozenT:
    """Create a value from valid values for all fields: nothing is checked or filled in.

    For values that are created thousands of times a second from checked parts.
    """
    made = _new(cls)
    _set_fields(made, fields)
    _set_names(made, cls._all_fields)
    _set_extra(made, None)
    _set_private(made, None)
    return made


class UnknownFields:
    """Collector of unknown fields that warns once about those skipped, however many values are read.

    Args:
        where: the file, for the message.
    """

    def __init__(self, where: str = "") -> None:
        self._where = f"{where}: s" if where else "S"
        self._warned = False

    def skip(self, locations: list[tuple[int | str, ...]]) -> None:
        """Note fields that were skipped."""
        if self._warned or not locations:
            return
        self._warned = True
        names = list(dict.fromkeys(_dotted_path(location) for location in locations))
        warnings.warn(
            f"{self._where}kipped fields that this version of modelgauge does not know: "
            f"{first_few(names, 5)}. Upgrade modelgauge to read them.",
            stacklevel=3,
        )


def _name_positional(cls: type[Frozen], args: tuple[Any, ...], data: dict[str, Any]) -> None:
    """Name the arguments that were given by position."""
    places = cls.positional_fields
    if len(args) > len(places):
        raise InvalidDataError(
            f"{cls.__name__} takes {counted(len(places), 'argument')} by position, and got {len(args)}.",
            fix=f"Name them. {_fields_are(_names([cls]))}",
        )
    for name, value in zip(places, args, strict=False):
        if name in data:
            raise InvalidDataError(
                f"{cls.__name__} got '{name}' twice.", fix="Give it by position or by name."
            )
        data[name] = value


def _frozen_error(error: ValidationError, value: Frozen, name: str) -> InvalidDataError | None:
    """Return the error for assigning a field of a frozen value; None if something else is wrong."""
    if error.errors(include_url=False)[0]["type"] != "frozen_instance":
        return None
    cls = type(value)
    if name not in cls.model_fields:
        known = list(cls.model_fields)
        return InvalidDataError(
            f"{cls.__name__} is frozen, and has no field '{name}'.",
            fix=did_you_mean(name, known) + _fields_are(known),
        )
    return InvalidDataError(
        f"{cls.__name__} is frozen: '{name}' cannot be assigned.",
        fix=f"Make another one, {cls.__name__}(…, {name}=…), or a copy with this field changed: "
        f"changed = it.replaced({name}=…).",
    )


def _not_a_list_error(
    error: ValidationError, cls: type[BaseModel], data: Mapping[str, Any]
) -> InvalidDataError | None:
    """Return the error for an object in place of a list, whose fields pydantic would take as elements; else None."""
    for line in error.errors(include_url=False):
        name = line["loc"][0] if line["loc"] else None
        value = data.get(str(name))
        if isinstance(value, BaseModel) and len(line["loc"]) > 1 and isinstance(line["loc"][1], int):
            kind = type(value).__name__
            return InvalidDataError(
                f"{cls.__name__}: {name} is one {kind}, and must be a list.",
                fix=f"Put it into a list: {name}=[{kind}(…)].",
            )
    return None


def explain(error: ValidationError, cls: type[BaseModel]) -> InvalidDataError:
    """Say in our words what pydantic refused, with the nearest known name for an unknown field."""
    return explain_lines(error.errors(include_url=False), cls)


def explain_lines(lines: list[ErrorDetails], cls: type[BaseModel]) -> InvalidDataError:
    """Say in our words what the lines of a pydantic error refuse; see `explain`."""
    for line in lines:
        cause = line.get("ctx", {}).get("error")
        if isinstance(cause, InvalidDataError):  # one of our own validators, which has said it all
            return InvalidDataError(f"{cls.__name__}: {_within(line['loc'])}{cause.problem}", fix=cause.fix)
    lines = [line for line in lines if not _is_consequence(line, lines)]
    problems = [_given_twice(cls, line) or _problem(line) for line in lines]
    names: list[str] = []
    suggestion = ""
    for line in lines:
        names.extend(_names(_owners(cls, line["loc"])))
        if line["type"] == "extra_forbidden":
            suggestion = suggestion or _suggested(cls, line["loc"], names)
    return InvalidDataError(
        f"{cls.__name__}: {'; '.join(problems)}.", fix=suggestion + _fields_are(list(dict.fromkeys(names)))
    )


def _suggested(cls: type[BaseModel], location: tuple[int | str, ...], names: list[str]) -> str:
    """Return a suggestion for the name of an unknown field, as the beginning of a fix."""
    owners = [owner for owner in _owners(cls, location) if issubclass(owner, Frozen)]
    name = str(location[-1])
    meant = next((owner.meant_by[name] for owner in owners if name in owner.meant_by), None)
    return f"Did you mean {meant!r}? " if meant else did_you_mean(name, names)


def _within(location: tuple[int | str, ...]) -> str:
    """Return the path to the value whose field one of our validators names; empty for a field of the class itself."""
    return f"{_dotted_path(location[:-1])}." if len(location) > 1 else ""


def _is_consequence(line: ErrorDetails, lines: list[ErrorDetails]) -> bool:
    """Return whether a sequence is too short only because its elements were rejected."""
    place = line["loc"]
    return line["type"] == "too_short" and any(
        len(detail["loc"]) > len(place) and detail["loc"][: len(place)] == place for detail in lines
    )


def _problem(line: ErrorDetails) -> str:
    where = _dotted_path(line["loc"])
    if line["type"] == "extra_forbidden":
        return f"unknown field '{where}'"
    if line["type"] == "missing":
        return f"'{where}' is missing"
    what = line["msg"]
    if line["type"] == "string_unicode":
        what = "the text holds a lone surrogate, which UTF-8 cannot hold"
    elif line["type"].endswith("_type"):
        what += f", not of type {type(line['input']).__name__}"
    return f"{where}: {what}" if where else what


def _given_twice(cls: type[BaseModel], line: ErrorDetails) -> str | None:
    """Return the problem of a field given under both of its names; None for other problems."""
    if line["type"] != "extra_forbidden":
        return None
    for owner in _owners(cls, line["loc"]):
        for field in owner.model_fields.values():
            alias = field.validation_alias
            names = alias.choices if isinstance(alias, AliasChoices) else []
            if line["loc"][-1] in names:
                others = " and ".join(f"'{name}'" for name in names[1:])
                are = "is another name" if len(names) == 2 else "are other names"
                return f"'{names[0]}' is given twice, since {others} {are} of it"
    return None


def _owners(cls: type[BaseModel], location: tuple[int | str, ...]) -> list[type[BaseModel]]:
    """Return the models that may contain the last field of a location."""
    owners = [cls]
    for part in location[:-1]:
        held = [owner.model_fields[part].annotation for owner in owners if part in owner.model_fields]
        owners = [model for annotation in held for model in _models(annotation)] or owners
    return owners


def _models(annotation: Any) -> list[type[BaseModel]]:
    """Yield the models in a type."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in typing.get_args(annotation) for model in _models(part)]


def _names(owners: list[type[BaseModel]]) -> list[str]:
    return list(dict.fromkeys(name for owner in owners for name in owner.model_fields))


def _fields_are(names: list[str]) -> str:
    return f"The fields are: {', '.join(names)}."


def _dotted_path(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in location if part not in _TAGS)


# Which kind of prompt pydantic took a value for: not part of any path.
_TAGS = ("<text>", "<chat>", "<continuations>", "<str>")


@lru_cache(maxsize=512)
def adapter(cls: Hashable) -> TypeAdapter[Any]:
    """Return the validator of a type, cached."""
    return TypeAdapter(cast("Any", cls))


def typed(value: Any, cls: type[T]) -> T:
    """Give a live value or its JSON as an object of the class that the caller names.

    Raises:
        InvalidDataError: the value does not fit the class.
    """
    if _is_one(value, cls):
        return value
    data = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    try:
        result: T = adapter(cast("Hashable", cls)).validate_python(data, by_alias=True, by_name=True)
    except (ValidationError, PydanticUserError, TypeError) as error:
        why = error.errors(include_url=False)[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise InvalidDataError(
            f"{capitalized(a_thing(value))} does not fit {getattr(cls, '__name__', cls)}: {why}.",
            fix=f"Ask for the class that was recorded; the value is {beginning(repr(value), 200)}.",
        ) from None
    return result


def _is_one(value: Any, cls: type[T]) -> TypeGuard[T]:
    try:
        return isinstance(value, cls)
    except TypeError:  # list[int], say, which only pydantic can check
        return False


def list_names(mapping: Mapping[str, Any]) -> str:
    """Format the names in a mapping for messages."""
    return ", ".join(f"'{name}'" for name in mapping) or "none"
