"""What a configuration is made of: sections that are exact about their values, and chosen parts.

A part is a name, an import path or an object, with the options of its signature.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError, ValidationInfo, create_model
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from pinoise.choices import AUTO, Distrust, Kind, builder_of, find, name_of, options_of
from pinoise.errors import UserError, not_among
from pinoise.training.config.sentences import sentence_of

_EXACT = ("int", "float", "bool")


def with_exact_numbers(schema: Any) -> Any:
    """Return a schema of pydantic's in which a number must be a number, and true or false is neither text nor a number.

    Pydantic would take true for 1, "5" for 5 and "yes" for true. A whole number is also a float. A list may be written
    as text with commas, as in ``--set data.drop=a,b``.
    """
    if isinstance(schema, dict):
        inner: Any = {key: with_exact_numbers(value) for key, value in schema.items()}
        if schema.get("type") == "tuple" and "variadic_item_index" in schema:
            return core_schema.no_info_before_validator_function(split_at_commas, inner)
        return {**inner, "strict": True} if schema.get("type") in _EXACT else inner
    return [with_exact_numbers(value) for value in schema] if isinstance(schema, list) else schema


def split_at_commas(value: Any) -> Any:
    """Return the items of a list that is written as text. What is no text is returned as it is.

    >>> split_at_commas("age, town"), split_at_commas(["a, b"])
    (['age', 'town'], ['a, b'])
    """
    return [item.strip() for item in value.split(",") if item.strip()] if isinstance(value, str) else value


OPEN: Any = AUTO  # what is not chosen, until ``complete`` decides; no module that is built from settings meets it


class OrOpen:
    """The annotation of a field that holds one of several names, or is open."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema that takes one more name."""
        names: Any = handler(source)
        return core_schema.literal_schema([*names["expected"], OPEN])


class Exact:
    """What pydantic reads exactly, as ``with_exact_numbers`` says."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema that reads the section."""
        schema: CoreSchema = with_exact_numbers(handler(source))
        return schema


class Section(Exact, BaseModel):
    """A part of the configuration: immutable, and strict about its keys."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, arbitrary_types_allowed=True, protected_namespaces=()
    )


@dataclass(frozen=True)
class Choice:
    """A chosen part: its name, the object behind the name, and its options, defaults included.

    >>> from pinoise.choices import METHOD
    >>> read_choice({"name": "moco", "queue": 9}, METHOD, "method").options
    {'temperature': 0.2, 'momentum': 0.99, 'queue': 9}
    """

    name: str
    part: Any  # a class, a function or an object; None if no part is built
    options: Mapping[str, Any] = field(default_factory=dict)
    own: bool = False  # whether it is the user's, not the package's
    given: frozenset[str] = field(default=frozenset(), compare=False)  # the options that the user set
    takes: frozenset[str] = field(default=frozenset(), compare=False)  # the options that can be set

    def trait(self, name: str, default: Any = False) -> Any:
        """Return an attribute of the part, such as ``for_images``."""
        return getattr(self.part, name, default)

    def as_dict(self) -> dict[str, Any]:
        """Return the name and the options as a section of a configuration.

        The defaults of a user's part are left out: its signature has them, and they may be objects.
        """
        shown = {name: value for name, value in self.options.items() if not self.own or name in self.given}
        return {"name": self.name, **shown}


def read_choice(
    value: Any, kind: Kind, path: str, *, names: Mapping[str, str] | None = None, distrust: Distrust | None = None
) -> Choice:
    """Find the part that a user chose and check its options against its signature.

    Args:
        value: a name, an import path, an object, or a mapping with one of them as ``name`` and options.
        kind: the kind of part.
        path: the path of the choice in the configuration.
        names: the user's names of settings, by path, if they differ from the paths.
        distrust: the file that the value is from, if the user has not said to trust it.
    """
    if isinstance(value, Choice):
        return value
    given = dict(value) if isinstance(value, Mapping) else {"name": value}
    chosen = given.pop("name", kind.default)
    if chosen is None:
        raise UserError(f"setting {path!r} is {value!r}: it must name its {kind.noun}.")
    if isinstance(chosen, str):
        called = path if names is None else names.get(path, path)
        if ":" not in chosen and chosen not in kind.names:
            allowed = [*kind.names, "or package.module:name"]
            raise UserError(f"setting {called!r} is {not_among(chosen, allowed)}")
        part = find(kind, chosen, distrust=distrust, setting=called)
        name, own = chosen, chosen not in kind.names
        if part is not None and not callable(part):
            raise UserError(f"{kind.noun} {name!r} is of type {type(part).__name__}: give {kind.own}.")
    else:
        name, part, own = name_of(chosen), chosen, True
        if not callable(part):
            raise UserError(f"setting {path!r} is {chosen!r}: give a name, an import path, or {kind.own}.")
    model = _auto_model(kind) if part is None and name == AUTO else _options_model(part)
    if "name" in model.model_fields:
        raise UserError(f"{kind.noun} {name!r} has an option called 'name', which a configuration needs: rename it.")
    try:
        options = model.model_validate(given)
    except ValidationError as error:
        raise UserError(sentence_of(error, model, prefix=f"{path}.", names=names)) from None
    left_open = part is None  # ``auto`` has no defaults yet
    values = {key: value for key, value in options if not left_open or key in options.model_fields_set}
    return Choice(name, part, values, own, frozenset(options.model_fields_set), frozenset(model.model_fields))


def _options_model(part: Any) -> type[BaseModel]:
    """Return the section of a part's options. An object has none, and neither has a name that stands for no part."""
    made_from = inspect.isclass(part) or inspect.isroutine(part)
    return _model_of(part) if made_from else _model(part, {})


@lru_cache
def _model_of(part: Any) -> type[BaseModel]:
    """Return the section of the options of a class or function, made from its signature."""
    hints: dict[str, Any] = {}
    for function in (part.__init__, builder_of(part)) if inspect.isclass(part) else (part,):
        with suppress(NameError, TypeError):  # a user's annotations that cannot be resolved are not checked
            hints |= get_type_hints(function, include_extras=True) if function is not None else {}
    fields = {
        name: (hints.get(name, Any), ... if parameter.default is parameter.empty else parameter.default)
        for name, parameter in options_of(part).items()
    }
    return _model(part, fields)


def _auto_model(kind: Kind) -> type[BaseModel]:
    """Return the section of an open choice. It takes the options of every part that it may become."""
    fields: dict[str, Any] = {}
    for part in filter(None, (find(kind, name) for name in kind.names)):
        fields |= _options_model(part).model_fields
    return _model(None, {name: (found.rebuild_annotation(), None) for name, found in fields.items()})


def _model(part: Any, fields: dict[str, Any]) -> type[BaseModel]:
    made: type[BaseModel] = create_model(getattr(part, "__name__", "Options"), __base__=Section, **fields)
    return made


@dataclass(frozen=True)
class Chosen:
    """The annotation of a field that holds a choice of a kind."""

    kind: Kind

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema with which pydantic reads and writes the field."""
        write = core_schema.plain_serializer_function_ser_schema(Choice.as_dict)
        return core_schema.with_info_plain_validator_function(self._read, serialization=write)

    def _read(self, value: Any, info: ValidationInfo) -> Choice:
        read = partial(read_choice, value, self.kind, distrust=info.context)
        try:
            return read("")
        except UserError:  # ``sentence_of`` reads it again with its path
            raise PydanticCustomError("choice", "not a choice", {"read": read}) from None
