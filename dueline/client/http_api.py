"""A deployment's HTTP API: the requests that a client makes, and how their answers are read."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import urlencode

from dueline.client.answers import Job, control_of, overview_of, queues_of, upload_of
from dueline.client.dated import Dated
from dueline.client.http_answer import error_of
from dueline.client.http_draft import HttpDraft, Name
from dueline.client.http_schedules import HttpSchedules
from dueline.client.id_maker import IdMaker
from dueline.client.id_terms import IdTerms
from dueline.client.listed import ScheduledJob, page_of
from dueline.client.new_job import NewJob
from dueline.client.transport import Transport
from dueline.errors import RETRYABLE, DuelineError, InvalidJob, Unavailable
from dueline.lookup.control import Control
from dueline.lookup.listing import MOST_JOBS
from dueline.lookup.overview import Overview
from dueline.model import instant
from dueline.model.job import JobId, State
from dueline.model.queue_settings import QueueSettings
from dueline.model.rate import Rate
from dueline.model.request import json_text
from dueline.model.trace import TraceContext
from dueline.ports import Clock
from dueline.protocol.uploads import check_size
from dueline.retry.calls import attempt

A = TypeVar("A")

# A function's event has 6 MB at most, the rest of the request included.
MOST_BYTES = 5_000_000
_NO_HEADERS: Mapping[str, str] = {}


class HttpApi:
    """The client's API over HTTP.

    A job without an id or a key of its caller's gets one of `ids`, so that posting it twice is safe; where these do not
    know what an id needs, it gets a `new_key`.
    """

    def __init__(
        self, transport: Transport, *, clock: Clock, new_key: Callable[[], str], ids: IdMaker | None = None
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._new_key = new_key
        self._ids = ids

    def draft(self, job: NewJob, *, trace: TraceContext | None = None) -> HttpDraft:
        # By this machine's clock, which may be wrong, what is no more than 10 years ahead would be refused.
        request = job.checked(now=None, trace=trace)
        tenant = {} if request.tenant is None else {"tenant": request.tenant}
        priority = {} if request.priority == 1 else {"priority": request.priority}
        payload = json_text(request.payload)
        check_size(len(payload))
        return HttpDraft(
            payload=payload,
            rest=tenant | priority,
            at=request.at,
            delay=request.delay,
            name=Name(id=request.id, key=request.key),
            trace=request.trace,
        )

    def schedule(self, queue: str, drafts: Sequence[HttpDraft]) -> Sequence[Job | DuelineError]:
        unnamed = [draft for draft in drafts if not draft.name]
        self._name(queue, unnamed)
        tried_first = set(map(id, unnamed))
        results = self._post_each(queue, drafts)
        # That an id is refused whose first try this was says for certain that there is no such job.
        refused = [
            place
            for place, (draft, result) in enumerate(zip(drafts, results, strict=True))
            if type(result) is InvalidJob and id(draft) in tried_first and draft.name.id
        ]
        return self._again_by_keys(queue, drafts, results, refused) if refused else results

    def _name(self, queue: str, drafts: Sequence[HttpDraft]) -> None:
        """Give each job its id, or where it is not known what that needs, a key."""
        ids = self._ids.ids(queue, drafts) if self._ids is not None and drafts else None
        for place, draft in enumerate(drafts):
            if ids is None:
                draft.name.key = self._new_key()
            else:
                draft.name.id = str(ids[place])

    def _again_by_keys(
        self,
        queue: str,
        drafts: Sequence[HttpDraft],
        results: Sequence[Job | DuelineError],
        refused: Sequence[int],
    ) -> Sequence[Job | DuelineError]:
        """Ask for those whose ids were refused under keys; return the results of all."""
        if self._ids is not None:
            self._ids.forget()
        for place in refused:
            drafts[place].name.id, drafts[place].name.key = None, self._new_key()
        again = dict(zip(refused, self._post_each(queue, [drafts[place] for place in refused]), strict=True))
        return [again.get(place, result) for place, result in enumerate(results)]

    def _post_each(self, queue: str, drafts: Sequence[HttpDraft]) -> list[Job | DuelineError]:
        """Return the job or the error of each; that of one that may be scheduled says by what it was sent.

        Raises what concerns the request, and not whether it was carried out.
        """
        try:
            results = self._post(queue, drafts)
        except (*RETRYABLE, InvalidJob) as error:
            if len(drafts) > 1 and not isinstance(error, RETRYABLE):
                raise
            results = [error for _ in drafts]
        return [
            _sent_by(result, draft.name) if isinstance(result, RETRYABLE) else result
            for draft, result in zip(drafts, results, strict=True)
        ]

    def _post(self, queue: str, drafts: Sequence[HttpDraft]) -> Sequence[Job | DuelineError]:
        headers = drafts[0].trace.headers if drafts[0].trace else {}
        if len(drafts) == 1:
            (draft,) = drafts
            text = draft.text if draft.size <= MOST_BYTES else self._uploaded(queue, draft)
            return [Job.of(self._ask("POST", _jobs(queue), text, headers=headers))]
        body = f'{{"jobs":[{",".join(draft.text for draft in drafts)}]}}'
        return self._ask_for_each(_jobs(queue), body, read=Job.of, count=len(drafts), headers=headers)

    def id_terms(self, queue: str) -> IdTerms | None:
        return None if self._ids is None else self._ids.terms(queue)

    def get(self, id: JobId) -> Job:
        return Job.of(self._ask("GET", _job(id)))

    def cancel(self, queue: str, ids: Sequence[JobId]) -> Sequence[State | DuelineError]:
        if len(ids) == 1:
            return [_state_of(self._ask("DELETE", _job(ids[0])))]
        body = json.dumps({"ids": [str(id) for id in ids]})
        return self._ask_for_each(f"/queues/{queue}/cancellations", body, read=_state_of, count=len(ids))

    def reschedule(self, id: JobId, *, at: datetime | None, delay: float | None, key: str) -> Job:
        # A delay goes as it is: by this machine's clock, which may be wrong, it would be another instant.
        asked = {"delay": delay} if at is None else {"at": instant.text(instant.round_up(at))}
        return Job.of(self._ask("PATCH", _job(id), json.dumps(asked), headers={"idempotency-key": key}))

    def page(
        self, queue: str, *, start: datetime | None, end: datetime | None, after: str
    ) -> tuple[Sequence[ScheduledJob], str]:
        times = {"from": start, "to": end}
        query = {name: instant.text(instant.round_up(at)) for name, at in times.items() if at is not None}
        query |= {"limit": str(MOST_JOBS)} | ({"next": after} if after else {})
        return page_of(self._ask("GET", f"{_jobs(queue)}?{urlencode(query)}"))

    def queues(self) -> Sequence[QueueSettings]:
        return queues_of(self._ask("GET", "/queues"))

    def overview(self, queue: str) -> Overview:
        return overview_of(self._ask("GET", f"/queues/{queue}"))

    def pause(self, queue: str) -> Control:
        return control_of(self._ask("POST", f"/queues/{queue}/pause"))

    def resume(self, queue: str) -> Control:
        return control_of(self._ask("POST", f"/queues/{queue}/resume"))

    def set_rate(self, queue: str, rate: Rate | None) -> Control:
        body = json.dumps({"rate": None if rate is None else str(rate)})
        return control_of(self._ask("PUT", f"/queues/{queue}/rate", body))

    def schedules(self, queue: str) -> HttpSchedules:
        return HttpSchedules(queue, self._ask)

    def _uploaded(self, queue: str, draft: HttpDraft) -> str:
        """Upload the payload of a job; return what to post in its place."""
        content = draft.payload.encode()
        asked = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        begun = upload_of(self._ask("POST", f"/queues/{queue}/uploads", json.dumps(asked)))
        answer = self._transport.put(begun.url, begun.headers, content)
        if not answer.is_success:
            raise Unavailable(f"uploading a payload: status {answer.status}")
        return draft.around(f'"upload":{json.dumps(begun.id)}')

    def _ask(
        self, method: str, path: str, body: str | None = None, *, headers: Mapping[str, str] = _NO_HEADERS
    ) -> dict[str, Any]:
        return self._transport.send(method, path, body, headers=headers).content(now=self._clock.now())

    def _ask_for_each(
        self,
        path: str,
        body: str,
        *,
        read: Callable[[Mapping[str, Any]], A],
        count: int,
        headers: Mapping[str, str] = _NO_HEADERS,
    ) -> Sequence[A | DuelineError]:
        results = self._ask("POST", path, body, headers=headers).get("jobs")
        if not isinstance(results, list) or len(results) != count:
            raise Unavailable(f"POST {path}: the answer does not have one result for each job")
        return [attempt(lambda result: read(_checked(result)), each) for each in results]


def with_ids(transport: Transport, *, clock: Clock, new_uuid: Callable[[], str]) -> HttpApi:
    """Return the API with ids that are made by AWS's clock, as the answers tell it."""
    dated = Dated(transport, clock=clock)
    return HttpApi(dated, clock=clock, new_key=new_uuid, ids=IdMaker(dated, clock=clock, new_uid=new_uuid))


def _sent_by(error: DuelineError, name: Name) -> DuelineError:
    """Return the error of a job, with the id and the key by which it was sent: by these it is tried again."""
    copy = error.copy(job_id=name.id)
    copy.key = name.key
    return copy


def _checked(result: Any) -> Mapping[str, Any]:
    """Return the result of one job among several, or raise its error."""
    if isinstance(result, dict) and isinstance(problem := result.get("error"), dict):
        raise error_of(problem, status=problem.get("status"), asked="the job")
    fields: Mapping[str, Any] = result
    return fields


def _state_of(result: Mapping[str, Any]) -> State:
    return Job.of(result).state


def _jobs(queue: str) -> str:
    return f"/queues/{queue}/jobs"


def _job(id: JobId) -> str:
    return f"{_jobs(id.queue)}/{id}"
