"""A job that schedules the next one, again and again: AWS stops functions that go round, and must not stop this."""

from datetime import timedelta

from dueline.verify.bound import Bound
from dueline.verify.check import Check, Found
from dueline.verify.price import Sends, of_jobs
from dueline.verify.sandbox import FLOOD
from dueline.verify.trial import Scale, Trial
from dueline.worker.received import ReceivedJob

NAME = "chain"
# Lambda stops what comes round for the sixteenth time.
_ROUNDS = 20
_STEP_SECONDS = 1.0


def run(trial: Trial) -> Found:
    """Let the worker of a job schedule the next, and count how far it comes."""
    reached = set[int]()

    def again(job: ReceivedJob) -> None:
        if not isinstance(job.payload, dict) or job.payload.get("verify") != trial.run:
            return
        number = int(job.payload["n"])
        reached.add(number)
        if number < _ROUNDS:
            _schedule(trial, number + 1)

    with trial.sandbox.working(FLOOD, again):
        _schedule(trial, 1)
        until = trial.now + timedelta(seconds=3 * _ROUNDS * _STEP_SECONDS) + trial.grace
        trial.wait("following a chain of jobs", lambda: len(reached), of=_ROUNDS, until=until)
    return Found(
        figures={"rounds": len(reached)},
        notes=["by a worker and the HTTP API's function; a consumer that is a Lambda function is not part of it"],
    )


def _schedule(trial: Trial, number: int) -> None:
    payload, key = trial.payload(NAME, number), f"{trial.run}-{NAME}-{number}"
    trial.sandbox.client.schedule(FLOOD, payload, delay=_STEP_SECONDS, key=key)


def sends(_: Scale) -> Sends:
    return of_jobs(_ROUNDS, calls=_ROUNDS)


CHECK = Check(
    name=NAME,
    promise="A job may schedule itself 20 times over: no loop detection of AWS's ends it",
    bounds={"rounds": Bound(least=_ROUNDS, most=_ROUNDS)},
    run=run,
    sends=sends,
    lane=FLOOD,
)
