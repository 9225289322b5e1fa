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
### For production

**`tick_reserved_concurrency` and `api_reserved_concurrency`** keep a part of the account's concurrent executions
(1,000, unless the quota is raised) for each function, and let it have no more. Without them, 1,000 calls of the API
at once take all there are, and ticks that cannot run for two minutes are dropped: their jobs wait for the next. Set 1
for each partition of all queues and 5 more for ticks, and for the API `api_rate` times the seconds of its longest
calls, such as 100 to 200. They are left out by default because a new account may have 10 executions in all, and
Lambda lets nobody reserve the last 100: such a deployment would fail. Both functions have an alarm on throttles.

**`warm_writes: 20000`** is for a launch: a new table that is paid by request takes 4,000 write units a second, more
only after it has seen the load for a while, and up to 1,000 on each of a queue's partitions. What is beyond waits in
the inbound queue, or is throttled to direct clients. DynamoDB charges once for each unit above what the table can
take already (its price list, under warm throughput, has the amount). It cannot be lowered again; a lower number fails
the deployment, to leave it out changes nothing. Over 40,000 the account's quota must be raised first.

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

### What platform teams ask for

`kms_key_arn`, `permission_boundary`, `tags`, `log_retention_days` and `termination_protection`: what each is for, and
what it costs, [security](security.md) says.
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


_WHAT_GROUPS_ARE = """\
A role may have 10 managed policies, unless the quota is raised (to 20), so a service that works with more queues needs
policies for several at once:

```yaml
groups:
  shop: [emails, invoices]
```

The stack `{name}-groups` then has the policies `{name}_group_shop_producer`, `_consumer`, `_operator` and `_direct`,
which allow for all queues of the group what [those of a queue](operations.md#who-may-do-what) allow for one. A policy
holds 6,144 characters, so about ten queues; `cdk synth` says where there are too many. A queue may be in several
groups.
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
        f"## Groups of queues\n\n{_WHAT_GROUPS_ARE}",
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
