"""Payloads of the sizes where their way changes, and uploads that are not what was said of them."""

import base64
import hashlib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from dueline.client.new_job import NewJob
from dueline.verify.bound import NONE, Bound
from dueline.verify.check import Check, Found
from dueline.verify.price import Sends, of_jobs
from dueline.verify.sandbox import PRECISE
from dueline.verify.trial import NotScheduled, Scale, Trial, taken
from dueline.worker.received import ReceivedJob

NAME = "payloads"
_KIB = 1024
# In JSON; around what a row keeps and what a message takes, up to the most that there may be.
_SIZES = (1, 8 * _KIB - 1, 8 * _KIB, 8 * _KIB + 1, 16 * _KIB, 256 * _KIB - 1, 256 * _KIB, 256 * _KIB + 1, 10 * _KIB**2)
_SOON = timedelta(seconds=5)
_REFUSED = range(400, 500)


def run(trial: Trial) -> Found:
    """Schedule each size by both routes, and compare what the library's worker gets; upload what is not as it says."""
    came: dict[str, Any] = {}

    def note(job: ReceivedJob) -> None:
        came[job.id] = job.payload

    with trial.sandbox.working(PRECISE, note):
        sent = dict(_schedule_each(trial))
        wait = trial.table_after + trial.grace
        trial.wait("waiting for payloads", lambda: len(came.keys() & sent), of=len(sent), until=trial.now + wait)
    return _found(trial, sent, came)


def _found(trial: Trial, sent: Mapping[str, object], came: Mapping[str, object]) -> Found:
    arrived = [id for id in sent if id in came]
    statuses = {wrong: _upload(trial, wrong) for wrong in ("", "length", "checksum")}
    refused = [status in _REFUSED for wrong, status in statuses.items() if wrong]
    return Found(
        figures={
            "sizes, by two routes": len(sent),
            "lost": len(sent) - len(arrived),
            "came as something else": sum(came[id] != sent[id] for id in arrived),
            "right uploads refused": int(statuses[""] not in range(200, 300)),
            "wrong uploads accepted": refused.count(False),
        },
        notes=[f"upload with a wrong {wrong}: HTTP {status}" for wrong, status in statuses.items() if wrong],
    )


def _schedule_each(trial: Trial) -> Iterator[tuple[str, object]]:
    """Schedule a job of each size by each route; yield its id and its payload."""
    for after in (_SOON, trial.table_after):
        for number, size in enumerate(_SIZES):
            trial.tell(f"scheduling {size:,} bytes", number, len(_SIZES))
            payload = of_size(trial, size)
            (job,) = taken(trial.sandbox.client.schedule_many(PRECISE, [NewJob(payload=payload, at=trial.now + after)]))
            yield job.id, payload


def of_size(trial: Trial, size: int) -> object:
    """Return a payload that has so many bytes as JSON, and is no smaller compressed than it must be."""
    if size == 1:
        return 7
    length = size - len('""')
    return base64.b64encode(trial.chance.randbytes(length)).decode()[:length]


def _upload(trial: Trial, wrong: str) -> int:
    """Upload something of another length or checksum than was said; return the status."""
    said, sent = b'"as it was said to be"', b'"as it was never said"'
    content = {"": said, "length": said[:-2] + b'"', "checksum": sent}[wrong]
    asked = {"bytes": len(said), "sha256": hashlib.sha256(said).hexdigest()}
    answer = trial.sandbox.request("POST", f"/queues/{PRECISE}/uploads", asked)
    if answer.status != 201:
        raise NotScheduled(f"an upload was not begun: HTTP {answer.status}")
    headers: Mapping[str, str] = answer.content["headers"]
    fitting = {name: str(len(content)) if name.lower() == "content-length" else told for name, told in headers.items()}
    return trial.sandbox.put(answer.content["url"], fitting, content)


def sends(scale: Scale) -> Sends:
    # A message of 256 KiB is four requests, and a row of 8 KiB as many units.
    return of_jobs(8 * len(_SIZES), calls=4 * len(_SIZES))


CHECK = Check(
    name=NAME,
    promise="A payload of 1 B to 10 MiB comes as it was sent; an upload that is not what was said of it is refused",
    bounds={
        "sizes, by two routes": Bound(least=2 * len(_SIZES)),
        "lost": NONE,
        "came as something else": NONE,
        "right uploads refused": NONE,
        "wrong uploads accepted": NONE,
    },
    run=run,
    sends=sends,
    lane=PRECISE,
)
