"""What queues.yaml may have, for editors and readers: `python -m docs.queues_schema` writes docs/queues.*."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dueline.config.deployment import Deployment
from dueline.config.queue import QueueConfig, ScheduleConfig

DOCS = Path(__file__).parent


def documents() -> dict[str, str]:
    """Return docs/queues.schema.json, and docs/queues.md with its tables, which stand between marks, by file name."""
    deployment = Deployment.model_json_schema()
    own = {**deployment, "properties": {**deployment["properties"]}}
    del own["properties"]["queues"]
    queue, schedule = QueueConfig.model_json_schema(), ScheduleConfig.model_json_schema()
    schemas = {"deployment": own, "queue": queue, "schedule": schedule}
    page = (DOCS / "queues.md").read_text()
    for name, schema in schemas.items():
        before, _, rest = page.partition(f"<!-- {name} -->\n")
        page = f"{before}<!-- {name} -->\n{_table(schema)}{rest[rest.index(f'<!-- /{name} -->') :]}"
    return {"queues.schema.json": json.dumps(deployment, indent=2) + "\n", "queues.md": page}


def _table(schema: Mapping[str, Any]) -> str:
    rows = [
        f"| `{name}` | {_default(setting)} | {_allowed(setting)} | {setting['description']} |\n"
        for name, setting in _settings(schema, schema.get("$defs", {}))
    ]
    return "| setting | default | allowed | |\n|---|---|---|---|\n" + "".join(rows)


def _settings(schema: Mapping[str, Any], named: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the settings of a schema by name, those that are below another as `{other}.{name}`."""
    for name, own in schema["properties"].items():
        setting = {**named[own["$ref"].rpartition("/")[2]], **own} if "$ref" in own else own
        if "properties" in setting:
            yield from ((f"{name}.{below}", each) for below, each in _settings(setting, named))
            continue
        yield name, setting
        for kind in setting.get("anyOf", []):
            if "$ref" in kind:
                yield from _settings({"properties": {name: kind}}, named)


def _default(setting: Mapping[str, Any]) -> str:
    if "default" not in setting:
        return "required"
    return "" if setting["default"] is None else f"`{json.dumps(setting['default']).strip(chr(34))}`"


def _allowed(setting: Mapping[str, Any]) -> str:
    """Return what is allowed, of what a schema says of a setting that may also be null."""
    allowed = next((kind for kind in setting.get("anyOf", []) if kind.get("type") != "null"), setting)
    if not allowed.keys() & {"type", "const", "enum", "pattern"}:
        return "any"
    if "const" in allowed:
        return f"`{allowed['const']}`, or settings"
    if "enum" in allowed:
        several = [str(value) for value in allowed["enum"]]
        # The editor lists all; CloudWatch has twenty-two retentions.
        return ", ".join(several if len(several) < 10 else [*several[:3], "…", several[-1]])
    if "pattern" in allowed:
        return f"`{allowed['pattern']}`".replace("|", "\\|")
    if allowed["type"] == "boolean":
        return "`true`, `false`"
    if allowed["type"] == "array":
        return f"up to {allowed['maxItems']}, each {_allowed(allowed['items'])}"
    if allowed["type"] == "object":
        return "by name"
    if allowed["type"] == "string":
        return "text"
    least, most = allowed["minimum"], allowed.get("maximum")
    return f"from {least:,}" if most is None else f"{least:,} to {most:,}"


if __name__ == "__main__":
    for name, text in documents().items():
        (DOCS / name).write_text(text)
