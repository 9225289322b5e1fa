"""What queues.yaml may hold, for editors and for readers: `python -m dueline.config.schema` writes both."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dueline.config.deployment import Deployment
from dueline.config.queue import Queue
from dueline.config.schedule import Schedule

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
_WHAT_IT_SAVES = """\
### What the jobs table costs

Three settings save money for some deployments, each at a price. All are of the table `{name}-jobs` alone: fences,
leases, pause and rate are in `{name}-state`, which is small, on demand, and can always be restored.

**`capacity: {min: 100, max: 2000}`** saves where the load is steady. A unit that is provisioned and used costs under a
third of a request on demand; one that is not used costs as much. So it pays where over a third of what is provisioned
is used, on average over day and night. Autoscaling aims at 70 %, and follows the load in minutes. Until it has
followed, and beyond `max`, requests are throttled:

- Jobs over HTTP go into the inbound queue. They are accepted all the same, and come to the table later.
- Direct clients try again, and in the end raise `Throttled`.
- A tick that cannot read stops, and the next one goes on: jobs are late meanwhile. No lease and no fence is throttled.

It may be changed at any time; back to on demand four times in 24 hours at most.

**`storage: infrequent`** saves where jobs wait for over a month or so. Storage costs less than half, each write and
read a quarter more. Nothing is slower. DynamoDB lets a table change its class twice in 30 days.

**`point_in_time_recovery: false`** saves the backup, which costs nearly as much as storage. Rows that were overwritten
or deleted by mistake are then gone for good: accepted jobs are lost, promised cancels forgotten. The table stays
protected from deletion.
"""


_WHAT_SCHEDULES_ARE = """\
One of `cron` and `every` is to be given; [what each means, and what a deployment does](schedules.md#in-queuesyaml).

```yaml
queues:
  emails:
    schedules:
      digest: {cron: "0 9 * * MON-FRI", zone: Europe/Berlin, payload: {to: all}}
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
        _WHAT_IT_SAVES,
        f"## A queue\n\n{_table(Queue.model_json_schema())}",
        f"## A schedule of a queue\n\n{_WHAT_SCHEDULES_ARE}\n{_table(Schedule.model_json_schema())}",
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
            continue
        yield name, setting
        for kind in setting.get("anyOf", []):
            if "$ref" in kind:
                yield from _settings({"properties": {name: kind}}, named)


def _default(setting: Mapping[str, Any]) -> str:
    if "default" not in setting:
        return "to be given"
    return "none" if setting["default"] is None else f"`{json.dumps(setting['default']).strip(chr(34))}`"


def _allowed(setting: Mapping[str, Any]) -> str:
    """Return what is allowed, of what a schema says of a setting that may also be null."""
    allowed = next((kind for kind in setting.get("anyOf", []) if kind.get("type") != "null"), setting)
    if not allowed.keys() & {"type", "const", "enum", "pattern"}:
        return "any"
    if "const" in allowed:
        return f"`{allowed['const']}`, or settings"
    if "enum" in allowed:
        return ", ".join(map(str, allowed["enum"]))
    if "pattern" in allowed:
        return f"`{allowed['pattern']}`".replace("|", "\\|")
    if allowed["type"] == "boolean":
        return "`true`, `false`"
    if allowed["type"] == "object":
        return "by name"
    if allowed["type"] == "string":
        return "text"
    least, most = allowed["minimum"], allowed.get("maximum")
    return f"from {least:,}" if most is None else f"{least:,} to {most:,}"


if __name__ == "__main__":
    for name, text in documents().items():
        (DOCS / name).write_text(text)
