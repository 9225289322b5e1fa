"""YAML files that people write: read, checked as a whole, and errors reported by field."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError
from pydantic_core import CoreSchema, ErrorDetails, core_schema

from dueline.config import ConfigurationError
from dueline.core.text import shown

Model = TypeVar("Model", bound=BaseModel)
_OF_ONE = re.compile(r"[a-z][a-z0-9_.-]* is ")
_CRON = re.compile(r"\bcron\s*:")
AllowedSettings = Callable[[Sequence[int | str]], Iterable[str]]


class _UniqueKeys(yaml.SafeLoader):
    """YAML in which a key that stands twice is an error, not the last one's win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [str(key.value) for key, _ in node.value]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        if twice:
            raise ConfigurationError(f"line {node.start_mark.line + 1}: {', '.join(twice)} is given twice")
        for key, value in node.value:
            value.setting = str(key.value)
        return super().construct_mapping(node, deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Report by its line and name what only looks like a value: 2026-02-30, or a number of 5,000 digits."""
        try:
            return super().construct_object(node, deep)
        except (ConfigurationError, yaml.YAMLError, RecursionError):
            raise
        except Exception as error:
            where = f"line {node.start_mark.line + 1}: {getattr(node, 'setting', 'an item')} is {shown(node.value)}"
            # Python says after a semicolon how to have it read longer numbers.
            raise ConfigurationError(f"{where}, which cannot be read: {str(error).partition(';')[0]}") from None


@dataclass(frozen=True, eq=False)
class OfForm:
    """A text that matches a pattern, and what it must be. The JSON schema gets the pattern, or another one."""

    pattern: str
    must: str
    schema: Mapping[str, Any] | None = None

    def check(self, text: str) -> str:
        if not re.fullmatch(self.pattern, text):
            raise ValueError(self.must)
        return text

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, text: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(text), **({"pattern": self.pattern} if self.schema is None else self.schema)}


def none_is_empty(settings: Any) -> Any:
    """Take a name with a colon and nothing after it for one without settings."""
    return {} if settings is None else settings


def load_as(
    model: type[Model],
    path: Path,
    *,
    allowed: AllowedSettings,
    prepare: Callable[[Any], Any] = lambda settings: settings,
) -> Model:
    """Return what a file holds, as a model of what `prepare` makes of it. `allowed` names the settings at a place.

    Raises ConfigurationError, which names every field that is wrong, its value and what is allowed.
    """
    try:
        settings = yaml.load(text := path.read_text(), Loader=_UniqueKeys)  # noqa: S506, a SafeLoader
        return checked(model, prepare({} if settings is None else settings), allowed=allowed)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: cannot be read: {error}") from None
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path}: not YAML{_hint(error, text)}: {error}") from None
    except RecursionError:
        raise ConfigurationError(f"{path}: it is nested too deeply to be read") from None
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from None


def checked(model: type[Model], settings: Any, *, allowed: AllowedSettings) -> Model:
    """Return settings as a model. Raises ConfigurationError, as `load_as` does."""
    try:
        return model.model_validate(settings)
    except ValidationError as error:
        lines = [_describe(each, allowed) for each in error.errors()]
        raise ConfigurationError("\n  ".join([f"settings that are wrong: {len(lines)}", *lines])) from None


def _hint(error: yaml.YAMLError, text: str) -> str:
    """Return what to do about a cron expression that YAML takes for something of its own: `*` and `@` begin such."""
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    lines = text.splitlines()
    if mark is None or mark.line >= len(lines) or not _CRON.search(lines[mark.line]):
        return ""
    return ", put the cron expression in quotes"


def _describe(error: ErrorDetails, allowed: AllowedSettings) -> str:
    where = ".".join(str(part) for part in error["loc"] if part != "[key]")
    if error["type"] == "value_error" and isinstance(error["input"], dict):
        # Of several settings together: most messages begin with the name of one of them.
        message = _message(error, allowed)
        return f"{where}{'.' if _OF_ONE.match(message) else ': '}{message}".removeprefix(".").removeprefix(": ")
    if not where:
        return f"it holds {shown(error['input'])}, not settings"
    return f"{where} is {shown(error['input'])}: {_message(error, allowed)}"


def _message(error: ErrorDetails, allowed: AllowedSettings) -> str:
    if error["type"] == "extra_forbidden":
        return f"unknown setting; there are {', '.join(allowed(error['loc']))}"
    if error["type"] == "model_type":
        return f"must be settings, each a name and a value; there are {', '.join(allowed(error['loc']))}"
    return error["msg"].removeprefix("Value error, ")
