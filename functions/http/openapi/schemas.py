"""JSON schemas of types, as OpenAPI holds them: each that has a name once, in its components."""

from collections.abc import Iterable
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import core_schema

_TEMPLATE = "#/components/schemas/{model}"
Json = dict[str, Any]


class _Plain(GenerateJsonSchema):
    """Without titles that repeat a field's name; what is one of several is `oneOf`."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def union_schema(self, schema: core_schema.UnionSchema) -> JsonSchemaValue:
        plain = super().union_schema(schema)
        return {("oneOf" if key == "anyOf" else key): value for key, value in plain.items()}


class Schemas:
    """The schemas of what requests carry and of what answers do."""

    def __init__(self, *, asked: Iterable[Any], answered: Iterable[Any]) -> None:
        forms = [(form, "validation") for form in asked] + [(form, "serialization") for form in answered]
        inputs = [(repr(form), mode, TypeAdapter(form)) for form, mode in forms]
        schemas, shared = TypeAdapter.json_schemas(_modes(inputs), ref_template=_TEMPLATE, schema_generator=_Plain)
        self._schemas = {name: schema for (name, _), schema in schemas.items()}
        self.named: Json = shared["$defs"]

    def __getitem__(self, form: Any) -> Json:
        """Return the schema of a type, which for one with a name is a reference."""
        return self._schemas[repr(form)]


def _modes(inputs: Any) -> list[tuple[str, JsonSchemaMode, TypeAdapter[Any]]]:
    return list(inputs)
