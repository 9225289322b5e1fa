"""What queues.yaml may hold, for editors and for readers: `python -m dueline.config.schema` writes both."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dueline.config.deployment import Deployment
from dueline.config.queue import Queue

DOCS = Path(__file__).parents[2] / "docs"
_INTRODUCTION = """\
# queues.yaml

What teams edit. Written from the code by `make schema`; editors read the same from `queues.schema.json`.

```yaml
name: dueline
queues:
  emails:            # a queue is one line
  invoices:
    partitions: 4
```
"""


def documents() -> dict[str, str]:
    """Return the documents that describe queues.yaml, by file name."""
    deployment = Deployment.model_json_schema()
    own = {**deployment, "properties": {**deployment["properties"]}}
    del own["properties"]["queues"]
    tables = (
        _INTRODUCTION,
        f"## The deployment\n\n{_table(own)}",
        f"## A queue\n\n{_table(Queue.model_json_schema())}",
    )
    return {
        "queues.schema.json": json.dumps(deployment, indent=2) + "\n",
        "queues.md": "\n".join(tables),
    }


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
        else:
            yield name, setting


def _default(setting: Mapping[str, Any]) -> str:
    return "none" if setting["default"] is None else f"`{json.dumps(setting['default']).strip(chr(34))}`"


def _allowed(setting: Mapping[str, Any]) -> str:
    """Return what is allowed, of what a schema says of a setting that may also be null."""
    allowed = next((kind for kind in setting.get("anyOf", []) if kind["type"] != "null"), setting)
    if "enum" in allowed:
        return ", ".join(map(str, allowed["enum"]))
    if "pattern" in allowed:
        return f"`{allowed['pattern']}`".replace("|", "\\|")
    if allowed["type"] == "boolean":
        return "`true`, `false`"
    return f"{allowed['minimum']:,} to {allowed['maximum']:,}"


if __name__ == "__main__":
    for name, text in documents().items():
        (DOCS / name).write_text(text)
