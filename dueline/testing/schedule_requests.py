"""The requests about schedules that a client makes over HTTP, answered by the core over a deployment in memory."""

import json
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from dueline.core import instant
from dueline.core.request import json_text
from dueline.core.submit import SubmitResult
from dueline.errors import InvalidSchedule
from dueline.schedules import answers, queries
from dueline.schedules.changes import Changed, Changes
from dueline.schedules.definition import Definition
from dueline.schedules.head import Head
from dueline.schedules.manual_runs import ManualRuns
from dueline.testing.memory_deployment import MemoryDeployment


class ScheduleRequests:
    """Answers as the routes of the HTTP API do: each request is a call of the core, and the JSON of what that returns.

    Requests are those of `client.Schedules`, which has checked them.
    """

    def __init__(self, deployment: MemoryDeployment) -> None:
        self._deployment = deployment

    def __call__(
        self,
        method: str,
        path: str,
        body: str | None = None,
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
        queue: str | None = None,
    ) -> dict[str, Any]:
        url = urlsplit(path)
        fields, query = json.loads(body) if body else {}, dict(parse_qsl(url.query))
        match [method, *url.path.strip("/").split("/")]:
            case ["POST", "schedules", "preview"]:
                return self._preview(fields)
            case ["GET", "queues", queue, "schedules"]:
                return self._list(queue, query)
            case ["GET", "queues", queue, "schedules", name, "history"]:
                return self._history(queue, name, query)
            case ["POST", "queues", queue, "schedules", name, ("run" | "backfill") as what]:
                return self._submitted(what, queue, name, fields, headers)
            case ["GET", "queues", queue, "schedules", name]:
                self._deployment.queue(queue)
                return self._fields(queries.get(queue, name, table=self._deployment.table))
            case [_, "queues", queue, "schedules", name, *what]:
                changed = self._changed(what[0] if what else method, queue, name, fields, headers)
                self._deployment.settle()
                return self._fields(changed.head, changed=changed.is_changed)
        raise ValueError(f"there is no request {method} {path}")

    def _changed(self, what: str, queue: str, name: str, fields: dict[str, Any], headers: Mapping[str, str]) -> Changed:
        deployment, if_match = self._deployment, headers.get("if-match")
        settings = deployment.queue(queue)
        changes = Changes(deployment.route())
        match what:
            case "PUT":
                definition = Definition.from_dict({**fields, "payload": json_text(fields.get("payload"))})
                only_new = "if-none-match" in headers
                return changes.put(settings, name, definition, if_match=if_match, only_new=only_new, must_run=True)
            case "resume":
                return changes.resume(settings, name, if_match=if_match)
            case "pause":
                return changes.pause(queue, name, if_match=if_match)
        return changes.delete(queue, name, if_match=if_match)

    def _submitted(
        self, what: str, queue: str, name: str, fields: dict[str, Any], headers: Mapping[str, str]
    ) -> dict[str, Any]:
        deployment = self._deployment
        deployment.queue(queue)
        runs = ManualRuns(deployment.route())
        call = headers.get("idempotency-key")
        if what == "run":
            payload = json_text(fields["payload"]) if "payload" in fields else None
            return answers.submitted_fields(runs.run_now(queue, name, payload=payload, key=call).job)
        start, end = instant.parse(fields["from"]), instant.parse(fields["to"])
        results: list[SubmitResult] = runs.backfill(queue, name, start=start, end=end, key=call)
        return {"runs": [answers.submitted_fields(each.job) for each in results]}

    def _preview(self, fields: dict[str, Any]) -> dict[str, Any]:
        after, limit = fields.pop("from", None), fields.pop("limit")
        rule = Definition.from_dict(fields).rule
        since = self._deployment.clock.now() if after is None else instant.parse(after)
        if not 1 <= limit <= queries.MOST_RUNS:
            raise InvalidSchedule(f"limit is {limit}: it must be from 1 to {queries.MOST_RUNS}")
        return {"words": rule.words, "next": answers.next_fields(rule, after=since, limit=limit)}

    def _list(self, queue: str, query: Mapping[str, str]) -> dict[str, Any]:
        deployment = self._deployment
        deployment.queue(queue)
        page = queries.page(queue, table=deployment.table, after=query.get("next", ""), limit=int(query["limit"]))
        return answers.page_fields(page, now=deployment.clock.now())

    def _history(self, queue: str, name: str, query: Mapping[str, str]) -> dict[str, Any]:
        deployment, before = self._deployment, query.get("before")
        runs = queries.history(
            deployment.queue(queue),
            name,
            table=deployment.table,
            clock=deployment.clock,
            until=math.inf,
            limit=int(query["limit"]),
            before=None if before is None else instant.parse(before),
        )
        return answers.history_fields(runs)

    def _fields(self, head: Head, *, changed: bool | None = None) -> dict[str, Any]:
        return answers.schedule_fields(head, now=self._deployment.clock.now(), changed=changed)
