"""What happens to each job of the story, as its payload says."""

import time
from typing import Any

from dueline import Discard, ReceivedJob, Retry

OK, SLOW, FLAKY, RETRIED, DOOMED, DISCARDED = "ok", "slow", "flaky", "retried", "doomed", "discarded"
ALL = (OK, SLOW, FLAKY, RETRIED, DOOMED, DISCARDED)
SLOW_SECONDS = 0.5


class Flaky(Exception):
    """Raised at the first attempt."""


class Doomed(Exception):
    """Raised at every attempt."""


def meet(job: ReceivedJob) -> None:
    """Let a job meet its fate: return when it is to have its effect, and raise otherwise."""
    payload: Any = job.payload
    match payload["fate"]:
        case "slow":
            time.sleep(SLOW_SECONDS)
        case "flaky" if job.attempt == 1:
            raise Flaky("the first attempt")
        case "retried" if job.attempt == 1:
            raise Retry(1)
        case "doomed":
            raise Doomed("every attempt")
        case "discarded":
            raise Discard("it can never succeed")
