"""The alarms on dead-letter queues: each rings when a message is there, and falls silent when it is gone."""

from datetime import timedelta

from dueline.verify.bound import NONE, SOME, Gap
from dueline.verify.check import Check, Found
from dueline.verify.price import Sends
from dueline.verify.trial import Scale, Trial

NAME = "alarms"
RINGING, SILENT = "ALARM", "OK"
# CloudWatch has SQS's metrics a minute or two later, of a queue that nobody used for hours up to 15 minutes later:
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/monitoring-using-cloudwatch.html
_LONGEST = timedelta(minutes=20)


def run(trial: Trial) -> Found:
    """Put a message into each dead-letter queue; wait until the alarms ring, take it out, and wait until they end."""
    names = sorted(trial.sandbox.dead_letter_alarms())
    with trial.sandbox.ringing():
        rang = _wait_until_all_are(trial, names, RINGING)
    silent = _wait_until_all_are(trial, names, SILENT)
    return Found(
        figures={
            "alarms": len(names),
            "never rang": len(names) - len(rang),
            "never fell silent": len(names) - len(silent),
        },
        notes=[
            f"{name}: {said}"
            for said, did in (("never rang", rang), ("never fell silent", silent))
            for name in names
            if name not in did
        ],
    )


def _wait_until_all_are(trial: Trial, names: list[str], state: str) -> set[str]:
    """Return those that are in a state in the end."""
    found = set[str]()

    def count() -> int:
        found.clear()
        found.update(name for name, is_now in trial.sandbox.dead_letter_alarms().items() if is_now == state)
        return len(found)

    trial.wait(f"waiting until alarms are {state}", count, of=len(names), until=trial.now + _LONGEST)
    return found


def sends(_: Scale) -> Sends:
    return Sends(sqs=100)


CHECK = Check(
    name=NAME,
    promise="Each alarm on a dead-letter queue rings when a message is there, and falls silent when it is gone",
    bounds={"alarms": SOME, "never rang": NONE, "never fell silent": NONE},
    run=run,
    sends=sends,
    gap=Gap.ALARMS,
)
