"""Schedules by the library of another release, in whose process this file is run: one call a line, and its answer."""

import json
import os
import sys
from datetime import datetime
from typing import Any

from dueline import Client, Job, NewJob
from dueline.errors import RETRYABLE, DuelineError
from dueline.retry.patience import Patience


def main(name: str, url: str) -> None:
    """Answer as long as calls come; by the API of that URL, or else as a direct client."""
    client = Client.connect(url=url) if url else Client.connect(name, direct=True, patience=Patience(attempts=1))
    for number, line in enumerate(sys.stdin):
        os.environ["_X_AMZN_TRACE_ID"] = f"earlier producer {os.getpid()}, call {number}"
        asked = json.loads(line)
        answers = client.schedule_many(asked["queue"], list(map(_job, asked["jobs"])))
        sys.stdout.write(json.dumps(list(map(_told, answers))) + "\n")
        sys.stdout.flush()


def _job(asked: dict[str, Any]) -> NewJob:
    return NewJob(**asked | {"at": datetime.fromisoformat(asked["at"]) if asked["at"] else None})


def _told(answer: Job | DuelineError) -> dict[str, Any]:
    if isinstance(answer, DuelineError):
        named = {"job_id": answer.job_id, "key": answer.key}
        return {"error": repr(answer), "may_be_tried": isinstance(answer, RETRYABLE), **named}
    due = answer.due.isoformat()
    return {"id": answer.id, "queue": answer.queue, "due": due, "route": answer.route.name, "state": answer.state.value}


if __name__ == "__main__":
    main(*sys.argv[1:])
