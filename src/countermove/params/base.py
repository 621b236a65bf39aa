"""What all groups of settings share: unknown keys are refused, and `build` calls the library.

A group is a pydantic model, because Kedro checks those before any node runs. Its defaults are
plain, so that importing this room imports no torch; ``describes`` names the object of the library
(module:name) that takes the settings, and a test holds the defaults of both together. What a
setting means stands beside it in conf/base.
"""

from __future__ import annotations

from importlib import import_module
from operator import attrgetter
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field

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


class Parameters(BaseModel):
    """Base of every group of settings; ``describes`` names the library's object, as module:name."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    describes: ClassVar[str | None] = None

    def build(self, *args: Any, **given: Any) -> Any:
        """Call the library's object with these settings (all but ``kind``) and what is given."""
        names = [name for name in type(self).model_fields if name not in {"kind", *given}]
        settings = {name: _built(getattr(self, name)) for name in names}
        return library_object(self.describes)(*args, **settings, **given)


def _built(value: Any) -> Any:
    if isinstance(value, Parameters):
        return value.build()
    if isinstance(value, dict):
        return {name: _built(each) for name, each in value.items()}
    return type(value)(map(_built, value)) if isinstance(value, list | tuple) else value


def library_object(where: str | None) -> Any:
    """Return the class or function of the library at ``module:name``."""
    if where is None:
        raise TypeError("this group of settings describes no object of the library")
    module, _, name = where.partition(":")
    return attrgetter(name)(import_module(module))
