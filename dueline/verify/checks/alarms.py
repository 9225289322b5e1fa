"""Alarms: each rings when it must, and falls silent when that is over. Those on dead letters, and those on faults."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from dueline.client.answers import Job
from dueline.errors import DuelineError
from dueline.verify.bound import NONE, SOME, Gap
from dueline.verify.check import Check, Found
from dueline.verify.price import Sends
from dueline.verify.sandbox import MOVED, PLAIN
from dueline.verify.trial import Scale, Trial

NAME, NAME_OF_FAULTS = "alarms", "alarms-of-faults"
RINGING, SILENT, UNKNOWN = "ALARM", "OK", "INSUFFICIENT_DATA"
# CloudWatch has SQS's metrics a minute or two later, of a queue that nobody used for hours up to 15 minutes later:
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/monitoring-using-cloudwatch.html
TOLD_AFTER = timedelta(minutes=20)
# Of what grew, and of ticks, an alarm looks at a quarter of an hour.
_SILENT_AFTER = timedelta(minutes=35)
# CloudWatch looks at alarms once a minute, and each look here is paid for.
_LOOK_SECONDS = 10.0
ON_DEAD_LETTERS, _GROWING = "DeadLetters", "Growing"

FUNCTIONS = ("api", "ingest", "planner", "tick")
ON_FAULTS = (
    *(f"{function.capitalize()}Errors" for function in FUNCTIONS),
    "ApiFaults",
    "ApiThrottles",
    "TickThrottles",
    "TtlErrors",
    "InboundAge",
    "WithoutTick",
    f"{PLAIN} MissingTicks",
    f"{PLAIN} Lateness",
)
# These tell by the state of alarms without data, too.
_BY_SILENCE = ("WithoutTick", f"{PLAIN} MissingTicks")
# Two periods of five minutes that miss ticks, and one more that had begun.
_WITHOUT_TICKS = timedelta(minutes=16)
# So far ahead that no tick has come near it, when it is moved to now.
_AHEAD = timedelta(minutes=20)
# A period of five minutes has it for certain.
_FAULTY = timedelta(minutes=2)


class Heard:
    """Who of some alarms rang until now, and who is silent."""

    def __init__(self, trial: Trial, names: Sequence[str]) -> None:
        self._trial, self._names = trial, names
        self.rang, self.silent = set[str](), set[str]()

    def until_all_rang(self, names: Iterable[str], *, until: datetime) -> None:
        awaited = set(names)
        self._wait("alarms ring", lambda: len(awaited & self.rang), of=len(awaited), until=until)

    def until_silent(self) -> None:
        until = self._trial.now + _SILENT_AFTER
        self._wait("alarms fall silent", lambda: len(self.silent), of=len(self._names), until=until)

    def _wait(self, what: str, count: Callable[[], int], *, of: int, until: datetime) -> None:
        def look() -> int:
            alarms = self._trial.sandbox.alarms()
            states = {name: alarms.get(name) for name in self._names}
            self.rang |= {name for name, state in states.items() if _rings(name, state)}
            self.silent = {name for name, state in states.items() if state == SILENT}
            return count()

        self._trial.wait(f"waiting until {what}", look, of=of, until=until, every=_LOOK_SECONDS)

    def found(self) -> Found:
        told = (("never rang", self.rang), ("never fell silent", self.silent))
        missed = {what: [name for name in self._names if name not in did] for what, did in told}
        return Found(
            figures={"alarms": len(self._names), **{what: len(names) for what, names in missed.items()}},
            notes=[f"{name}: {what}" for what, names in missed.items() for name in names],
        )


def _rings(name: str, state: str | None) -> bool:
    return state == RINGING or (state == UNKNOWN and name in _BY_SILENCE)


def run(trial: Trial) -> Found:
    """Put a message into each dead-letter queue, and one more; wait until the alarms ring, and until they end."""
    names = sorted(name for name in trial.sandbox.alarms() if ON_DEAD_LETTERS in name)
    heard = Heard(trial, names)
    with trial.sandbox.ringing():
        heard.until_all_rang((name for name in names if _GROWING not in name), until=trial.now + TOLD_AFTER)
        with trial.sandbox.ringing():
            heard.until_all_rang(names, until=trial.now + TOLD_AFTER)
    heard.until_silent()
    return heard.found()


def run_faults(trial: Trial) -> Found:
    """Let functions fail, be refused and be throttled, and a queue be without ticks; wait for each alarm on these."""
    heard, faults = Heard(trial, ON_FAULTS), trial.sandbox.faults
    with faults.schedule_off(PLAIN):
        until = trial.now + _WITHOUT_TICKS
        # Its jobs are due before its ticks are back, so that the first of these tells how late they are.
        trial.schedule(PLAIN, NAME_OF_FAULTS, [trial.now + trial.table_after])
        for function in FUNCTIONS:
            trial.sandbox.fail(function)
        with faults.stopped("ingest"):
            _break_functions(trial)
            heard.until_all_rang((name for name in ON_FAULTS if "Lateness" not in name), until=until)
            trial.pause("waiting without ticks", until=until)
    heard.until_all_rang(ON_FAULTS, until=trial.now + TOLD_AFTER)
    heard.until_silent()
    return heard.found()


def _break_functions(trial: Trial) -> None:
    """Break one after another for two minutes. What waits for ingest is sent in between.

    Lambda receives it every three minutes, though nothing may run, and SQS tells the age of no message that was
    received more than three times:
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
    """
    faults = trial.sandbox.faults
    _let_ingest_wait(trial)
    with faults.table_denied("api"):
        _ask_for(trial, _FAULTY, lambda: _schedule(trial))
    _let_ingest_wait(trial)
    with faults.stopped("api"):
        _ask_for(trial, _FAULTY, lambda: _look(trial))
    _let_ingest_wait(trial)
    with faults.stopped("tick"), faults.schedules_hidden():
        _ask_for(trial, _FAULTY, lambda: trial.sandbox.fail("ttl"))


def _let_ingest_wait(trial: Trial) -> None:
    """Move a job to now, in a queue that has its ticks: before it is done, ingest is told by the inbound queue."""
    client = trial.sandbox.client
    (job,) = client.schedule_many(MOVED, [trial.new_job(NAME_OF_FAULTS, 1, at=trial.now + _AHEAD)])
    with suppress(DuelineError):
        if isinstance(job, Job):
            client.reschedule(job.id, at=trial.now)


def _ask_for(trial: Trial, time: timedelta, ask: Callable[[], object]) -> None:
    until = trial.now + time
    while trial.now < until:
        trial.tell("asking what fails", 0, 1)
        with suppress(DuelineError):
            ask()
        trial.sleep(1)


def _schedule(trial: Trial) -> None:
    # One that goes by the table, which the API may not write.
    trial.sandbox.client.schedule_many(PLAIN, [trial.new_job(NAME_OF_FAULTS, 1, at=trial.now + trial.table_after)])


def _look(trial: Trial) -> None:
    trial.sandbox.request("GET", f"/queues/{PLAIN}")


def sends(_: Scale) -> Sends:
    return Sends(sqs=200)


def sends_faults(_: Scale) -> Sends:
    asked = 2 * 6 * _FAULTY.total_seconds()
    return Sends(sqs=10, writes=10, reads=100, http=asked, invocations=asked)


BOUNDS = {"alarms": SOME, "never rang": NONE, "never fell silent": NONE}
CHECK = Check(
    name=NAME,
    promise="Each alarm on a dead-letter queue rings when a message is there, and falls silent when it is gone",
    bounds=BOUNDS,
    run=run,
    sends=sends,
    gap=Gap.ALARMS,
)
CHECK_OF_FAULTS = Check(
    name=NAME_OF_FAULTS,
    promise="The alarms on errors, throttles, faults, missing ticks, late jobs and old messages ring, and fall silent",
    bounds=BOUNDS,
    run=run_faults,
    sends=sends_faults,
    gap=Gap.ALARMS,
)
