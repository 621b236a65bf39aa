"""What all groups of settings share: unknown keys are refused, and a default is written once.

A group is a pydantic model, because Kedro checks those before any node runs. Where the library
has the default (a dataclass or the signature of a class or function), the model names that
object in ``describes`` and the field is ``library("what it is")``: the default is read from
there when it is needed, so that importing this room imports no torch. Defaults that differ on
purpose stand in `countermove.params.defaults`. Everything else is ``setting(default, "…")``.
The words are the comments of conf/base.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from operator import attrgetter
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from countermove.params.defaults import DIFFERENT

Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Probability = Annotated[float, Field(gt=0, lt=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0)]
Item = TypeVar("Item")
Several = Annotated[tuple[Item, ...], Field(min_length=1)]
"""At least one."""
Seeds = Several[Seed]
Name = Annotated[str, Field(pattern=r"^[a-z0-9_]+$")]
"""Of a folder of results."""


class _FromLibrary:
    """The default of one field, read from the library when it is asked for."""

    owner: type[Parameters]
    name: str

    def __init__(self, where: str | None) -> None:
        self.where = where

    def __call__(self) -> Any:
        own = DIFFERENT.get(f"{self.owner.__name__}.{self.name}")
        return self.read() if own is None else own.value

    def read(self) -> Any:
        """Return the default that the library has."""
        where = self.where or self.owner.describes
        described = library_object(where)
        fields: Mapping[str, Any] = getattr(described, "__dataclass_fields__", {})
        if self.name in fields:
            factory = fields[self.name].default_factory
            default = fields[self.name].default if factory is dataclasses.MISSING else factory()
        else:
            default = inspect.signature(described).parameters[self.name].default
        if default is dataclasses.MISSING or default is inspect.Parameter.empty:
            raise TypeError(f"{where} has no default for {self.name!r}")
        return default


class Parameters(BaseModel):
    """Base of every group of settings; ``describes`` names the library's object, as module:name."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    describes: ClassVar[str | None] = None

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Say to each default from the library whose it is."""
        for name, field in cls.model_fields.items():
            factory: Any = field.default_factory
            if isinstance(factory, _FromLibrary) and not hasattr(factory, "owner"):
                factory.owner, factory.name = cls, name

    def build(self, *args: Any, **given: Any) -> Any:
        """Call the library's object with these settings (all but ``kind``) and what is given."""
        names = [name for name in type(self).model_fields if name not in {"kind", *given}]
        own = {name: _built(getattr(self, name)) for name in names}
        return library_object(self.describes)(*args, **own, **given)


def _built(value: Any) -> Any:
    if isinstance(value, Parameters):
        return value.build()
    if isinstance(value, dict):
        return {name: _built(each) for name, each in value.items()}
    return type(value)(map(_built, value)) if isinstance(value, list | tuple) else value


def library(words: str, where: str | None = None) -> Any:
    """Return a field whose default is the library's, or the one listed in ``DIFFERENT``.

    ``where`` is the object that has it (module:name), if not the one the model describes.
    """
    return Field(default_factory=_FromLibrary(where), description=words)


def setting(default: Any, words: str) -> Any:
    """Return a field whose default is written here and nowhere else."""
    return Field(default=default, description=words)


def needed(words: str) -> Any:
    """Return a field that has no default."""
    return Field(description=words)


def part(model: Callable[[], Any], words: str) -> Any:
    """Return a field that holds settings of its own, those of ``model`` by default."""
    return Field(default_factory=model, description=words)


def library_object(where: str | None) -> Any:
    """Return the class or function of the library at ``module:name``."""
    if where is None:
        raise TypeError("this group of settings describes no object of the library")
    module, _, name = where.partition(":")
    return attrgetter(name)(import_module(module))
