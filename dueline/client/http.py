"""The HTTP API as a client uses it: what it sends, and how responses and their problem details (RFC 9457) are read."""

import hashlib
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, partial
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from dueline.client.api import MOST_BYTES, Draft, JobKey, JobRef
from dueline.client.job_ids import IdParameters, JobIdFactory
from dueline.client.models import Job, NewJob, ScheduledJob, reader, text_of, warn_of_unreadable
from dueline.core import instant
from dueline.core.clock import LearnedTime
from dueline.core.job import State
from dueline.core.listing import MOST_JOBS
from dueline.core.overview import Control, Overview
from dueline.core.ports import Clock, Depth
from dueline.core.queue_settings import QueueSettings, Rate
from dueline.core.request import Default, IfExists, Request
from dueline.core.retry import attempt
from dueline.core.trace import TraceContext
from dueline.errors import ERRORS, DuelineError, InvalidJob, Unavailable

_NO_HEADERS: Mapping[str, str] = {}
_BY_CODE: dict[object, type[DuelineError]] = {kind.code: kind.error for kind in ERRORS if kind.over_http}
# For what API Gateway refuses itself, and for codes of a later version.
_BY_STATUS: dict[object, type[DuelineError]] = {kind.status: kind.error for kind in reversed(ERRORS)}


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpResponse:
    """A response; the names of its headers are in lower case. `request` is the method and path of its request."""

    request: str
    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    def content(self) -> dict[str, Any]:
        """Return the JSON object in this response, or raise the error that it reports.

        An error quotes nothing but a problem's own text: a response that echoes the request would show a payload.
        """
        try:
            content = json.loads(self.body)
        except (ValueError, RecursionError):
            content = None
        if not self.is_success:
            error = error_of(content, status=self.status, request=self.request)
            error.retry_after = float(wait) if (wait := self.headers.get("retry-after", "")).isdecimal() else None
            raise error
        if not isinstance(content, dict):
            raise Unavailable(f"{self.request}: the answer is no JSON object")
        return content

    @property
    def is_success(self) -> bool:
        return HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES


def error_of(content: Any, *, status: object, request: str) -> DuelineError:
    """Return the error that problem details report; without any, the error that the HTTP status stands for."""
    problem: Mapping[str, Any] = content if isinstance(content, dict) else {}
    code, id = problem.get("code"), problem.get("id")
    kind = _BY_CODE.get(code) if isinstance(code, str) else None
    # API Gateway explains what it refuses itself in a message.
    texts = {name: text for name in ("detail", "message", "Message") if isinstance(text := problem.get(name), str)}
    reason = texts.get("message") or texts.get("Message") or f"status {status}"
    if kind is None:
        is_refusal = isinstance(status, int) and status < HTTPStatus.INTERNAL_SERVER_ERROR
        kind = _BY_STATUS.get(status, DuelineError) if is_refusal else Unavailable
    error = kind(texts.get("detail") or f"{request}: {reason}")
    error.job_id = id if isinstance(id, str) else None
    error.status = status if isinstance(status, int) else error.status
    return error


class Transport(Protocol):
    """Sends each request once. Raises Unavailable when there is no response."""

    def send(
        self, method: str, path: str, body: str | None, *, headers: Mapping[str, str], queue: str | None = None
    ) -> HttpResponse:
        """Send a request to the API, with `headers` added to the usual ones. Raises Forbidden without credentials.

        Where the path has no queue, the caller has rights on `queue`.
        """

    def put(self, url: str, headers: Mapping[str, str], body: bytes) -> HttpResponse:
        """PUT a body to a presigned URL."""

    def close(self) -> None:
        """Close the connections that are kept. The next request opens new ones."""


class HttpApi:
    """The client's calls over HTTP.

    A job without a name of its caller's gets an id before it is first sent, made by AWS's clock, as the dates of
    responses show it. One that has a key, or whose id the deployment does not let a client make, is sent under the name
    of the call. `new_uuid` returns either. `connect` returns the transport, at its first use.
    """

    def __init__(
        self,
        connect: Callable[[], Transport],
        *,
        clock: Clock,
        new_uuid: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        # Not cached_property, whose lock a forked process may inherit as held.
        self._transport = cache(connect)
        self._new_uuid = new_uuid
        self._time = LearnedTime(wall=lambda: clock.now().timestamp(), monotonic=clock.monotonic)
        self._ids = JobIdFactory(
            lambda queue: self._request("GET", "/queues", queue=queue), self._time.moment, clock=clock, new_uid=new_uuid
        )

    def draft(self, job: NewJob, *, trace: TraceContext | None = None, default: Default | None = None) -> Draft:
        # How far ahead it is due the API checks: by this machine's clock, which may be wrong, it could be too far.
        request = job.checked(now=None, trace=trace, default=default)
        # A request has one trace, in its headers.
        if request.key is not None and request.call is None:
            request = replace(request, call=self._new_uuid())
        # Of a function's event, in which a request's body is a JSON string, escaped.
        size = len(json.dumps(request.text)) + _MOST_BYTES_OF_FIELDS
        return Draft(request=request, size=size, group=trace)

    def schedule_many(self, queue: str, drafts: Sequence[Draft]) -> Sequence[Job | DuelineError]:
        new = self._give_ids(queue, drafts)
        results = self._post(queue, drafts)
        refused = [
            draft
            for draft, result in zip(drafts, results, strict=True)
            # A first try that was refused certainly scheduled nothing, and its id may be why.
            if id(draft) in new and type(result) is InvalidJob
        ]
        if not refused:
            return results
        self._ids.forget()
        self._name_calls(refused)
        try:
            repeated = self._post(queue, refused)
        except DuelineError as error:
            # It is only theirs: the other jobs of this call are scheduled.
            repeated = [error.copy() for _ in refused]
        by_draft = dict(zip(map(id, refused), repeated, strict=True))
        return [by_draft.get(id(draft), result) for draft, result in zip(drafts, results, strict=True)]

    def id_parameters(self, queue: str) -> IdParameters | None:
        return self._ids.parameters(queue)

    def get(self, ref: JobRef) -> Job:
        response = self._request("GET", _job_path(ref))
        has_payload = not response.keys().isdisjoint(("payload", "payload_text", "payload_at"))
        return (ScheduledJob if has_payload else Job).of(response)

    def cancel_many(self, queue: str, refs: Sequence[JobRef]) -> Sequence[State | DuelineError]:
        if len(refs) == 1:
            return [attempt(lambda ref: Job.of(self._request("DELETE", _job_path(ref))).state, refs[0])]
        keys = [ref.key for ref in refs if isinstance(ref, JobKey)]
        body = json.dumps({"keys": keys} if keys else {"ids": [str(id) for id in refs]})
        results = self._request_each(f"/queues/{queue}/cancellations", body, count=len(refs))
        return [result.state if isinstance(result, Job) else result for result in results]

    def reschedule(self, ref: JobRef, *, at: datetime | None, delay: float | None, call: str) -> Job:
        # A delay is sent as it is: by this machine's clock, which may be wrong, it would be another instant.
        time = {"delay": delay} if at is None else {"at": instant.text(instant.round_up(at))}
        return Job.of(self._request("PATCH", _job_path(ref), json.dumps(time), headers={"idempotency-key": call}))

    def page(
        self, queue: str, *, state: str, start: datetime | None, end: datetime | None, kind: str | None, after: str
    ) -> tuple[Sequence[Any], str]:
        is_scheduled = state == State.SCHEDULED
        times, more = {"from": start, "to": end}, {"state": "" if is_scheduled else state, "kind": kind, "next": after}
        query = {name: instant.text(instant.round_up(at)) for name, at in times.items() if at is not None}
        query |= {"limit": str(MOST_JOBS), **{name: value for name, value in more.items() if value}}
        response = self._request("GET", f"{_jobs_path(queue)}?{urlencode(query)}")
        return _page_of(response, ScheduledJob if is_scheduled else Job)

    def queues(self) -> Sequence[QueueSettings]:
        return _queues_of(self._request("GET", "/queues"))

    def overview(self, queue: str) -> Overview:
        return _overview_of(self._request("GET", f"/queues/{queue}"))

    def set_paused(self, queue: str, paused: bool) -> Control:
        return _control_of(self._request("POST", f"/queues/{queue}/{'pause' if paused else 'resume'}"))

    def set_rate(self, queue: str, rate: Rate | None) -> Control:
        body = json.dumps({"rate": None if rate is None else str(rate)})
        return _control_of(self._request("PUT", f"/queues/{queue}/rate", body))

    def requester(self) -> Callable[..., dict[str, Any]]:
        return self._request

    def close(self) -> None:
        if self._transport.cache_info().currsize:
            self._transport().close()

    def _give_ids(self, queue: str, drafts: Sequence[Draft]) -> set[int]:
        """Give drafts an id that have none and no named call; return which got one, by their identity."""
        new = [draft for draft in drafts if draft.request.id is None and draft.request.call is None]
        ids = self._ids.ids(queue, [draft.request for draft in new]) if new else None
        if ids is None:
            self._name_calls(new)
            return set()
        for draft, job_id in zip(new, ids, strict=True):
            draft.request = replace(draft.request, id=str(job_id))
        return set(map(id, new))

    def _name_calls(self, drafts: Sequence[Draft]) -> None:
        for draft in drafts:
            draft.request = replace(draft.request, id=None, call=self._new_uuid())

    def _post(self, queue: str, drafts: Sequence[Draft]) -> list[Job | DuelineError]:
        if len(drafts) == 1:
            return [attempt(partial(self._post_one, queue), drafts[0])]
        body = f'{{"jobs":[{",".join(_json_of(draft.request) for draft in drafts)}]}}'
        return self._request_each(_jobs_path(queue), body, count=len(drafts), headers=drafts[0].headers)

    def _post_one(self, queue: str, draft: Draft) -> Job:
        upload = self._upload(queue, draft.request) if draft.size > MOST_BYTES else None
        body, headers = _json_of(draft.request, upload=upload), draft.headers
        return Job.of(self._request("POST", _jobs_path(queue), body, headers=headers))

    def _upload(self, queue: str, request: Request) -> str:
        content = (request.text or "").encode()
        body = json.dumps({"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()})
        id, url, headers = _upload_of(self._request("POST", f"/queues/{queue}/uploads", body))
        response = self._transport().put(url, headers, content)
        if not response.is_success:
            raise Unavailable(f"uploading a payload: status {response.status}")
        return id

    def _request(
        self,
        method: str,
        path: str,
        body: str | None = None,
        *,
        headers: Mapping[str, str] = _NO_HEADERS,
        queue: str | None = None,
    ) -> dict[str, Any]:
        sent = self._time.sent()
        response = self._transport().send(method, path, body, headers=headers, queue=queue)
        self._time.learn(response.headers.get("date", ""), sent=sent)
        return response.content()

    def _request_each(
        self, path: str, body: str, *, count: int, headers: Mapping[str, str] = _NO_HEADERS
    ) -> list[Job | DuelineError]:
        """Post a request for several jobs; return the job or the error of each."""
        results = self._request("POST", path, body, headers=headers).get("jobs")
        if not isinstance(results, list) or len(results) != count:
            raise Unavailable(f"POST {path}: the answer does not have one result for each job")
        return [attempt(_job_or_error, each) for each in results]


# What the other fields of a job take of a request at most: an id, or a time and a key, a kind and a tenant.
_MOST_BYTES_OF_FIELDS = 2_000


def _json_of(request: Request, *, upload: str | None = None) -> str:
    """Return a job as it is posted, with its payload or the id of its upload. An id says when the job is due."""
    has_time = request.id is None
    optional = {
        "id": request.id,
        "at": instant.text(instant.round_up(request.at)) if has_time and request.at is not None else None,
        "delay": request.delay if has_time else None,
        "key": request.key,
        "if_exists": None if request.if_exists is IfExists.KEEP else request.if_exists.value,
        "idempotency_key": request.call,
        "kind": request.kind,
        "tenant": request.tenant,
        "priority": None if request.priority == 1 else request.priority,
    }
    fields = json.dumps({name: value for name, value in optional.items() if value is not None})[1:-1]
    content = f'"payload":{request.text}' if upload is None else f'"upload":{json.dumps(upload)}'
    return f"{{{content},{fields}}}" if fields else f"{{{content}}}"


def _job_or_error(result: Any) -> Job:
    """Return one job of several in a response, or raise its error."""
    if isinstance(result, dict) and isinstance(problem := result.get("error"), dict):
        raise error_of(problem, status=problem.get("status"), request="the job")
    return Job.of(result)


@reader("upload")
def _upload_of(response: Mapping[str, Any]) -> tuple[str, str, Mapping[str, str]]:
    """Return an upload's id, and the URL and the headers of the PUT that sends it. Raises Unavailable."""
    return text_of(response["upload"]), text_of(response["url"]), {**response["headers"]}


@reader("queues")
def _queues_of(response: Mapping[str, Any]) -> list[QueueSettings]:
    """Return the queues in a response. Raises Unavailable when it holds none."""
    return [QueueSettings.from_json(queue, name=text_of(queue["queue"])) for queue in response["queues"]]


@reader("pause and rate")
def _control_of(response: Mapping[str, Any]) -> Control:
    """Return a queue's pause and rate in a response. Raises Unavailable when it holds none."""
    rate = None if response["rate"] is None else Rate.parse(text_of(response["rate"]))
    return Control(paused=bool(response["paused"]), rate=rate)


@reader("queue")
def _overview_of(response: Mapping[str, Any]) -> Overview:
    """Return the overview of a queue in a response. Raises Unavailable when it holds none."""
    # A queue with one priority has its depth beside the other fields.
    levels = response.get("levels", [response])
    return Overview(
        scheduled=response["scheduled"],
        more_scheduled=response["more_scheduled"],
        next_due=None if response["next_due"] is None else instant.parse(response["next_due"]),
        fence_age=response["fence_age"],
        levels=tuple(Depth(**{name: level[name] for name in ("waiting", "in_flight", "delayed")}) for level in levels),
        dead=response["dead"],
        control=_control_of(response),
    )


@reader("jobs")
def _page_of(response: Mapping[str, Any], kind: type[Job]) -> tuple[list[Job], str]:
    """Return the jobs of a page, and where the next one begins: "" after the last. Raises Unavailable."""
    warn_of_unreadable(response)
    return [kind.of(job) for job in response["jobs"]], response["next"] or ""


def _jobs_path(queue: str) -> str:
    return f"/queues/{queue}/jobs"


def _job_path(ref: JobRef) -> str:
    path = _jobs_path(ref.queue)
    # As AWS's signature encodes it.
    return f"{path}?key={quote(ref.key, safe='')}" if isinstance(ref, JobKey) else f"{path}/{ref}"
