"""How AWS has the deployment set: what keeps jobs from being lost, and tells when something is wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dueline.config.names import Names
from dueline.model.queue_settings import PLANNER, QueueSettings
from dueline.verify.bound import NONE, SOME, Gap
from dueline.verify.check import Check, Found
from dueline.verify.price import Sends
from dueline.verify.sandbox import AsDeployed
from dueline.verify.trial import Scale, Trial

NAME = "settings"
# The longest that SQS keeps a message: nobody who is on holiday loses one.
_DAYS = 14


def run(trial: Trial) -> Found:
    """Look at everything that is deployed; name what is not as it must be."""
    trial.tell("looking at what is deployed", 0, 1)
    seen = trial.sandbox.as_deployed()
    wrong = wrong_in(seen, Names(trial.sandbox.name), trial.sandbox.client.queues())
    return Found(
        figures={"alarms": len(seen.alarms), **{what: len(names) for what, names in wrong.items()}},
        notes=[f"{what}: {', '.join(names)}" for what, names in wrong.items() if names],
    )


def wrong_in(seen: AsDeployed, names: Names, queues: Sequence[QueueSettings]) -> Mapping[str, Sequence[str]]:
    """Return the names of resources that are not as they must be, by what is wrong with them."""
    dead_letters = _dead_letters(names, queues)
    keeping = {*dead_letters.values(), names.dispatch_dlq, names.tick_dlq}
    days, tables = seen.days, (names.table, names.state, names.once)
    there = [queue for queue in dead_letters if queue in days]
    return {
        "schedules that do not fire": [each for each in _schedules(names, queues) if not seen.schedules.get(each)],
        "queues that are not there": sorted({*dead_letters, *keeping} - set(days)),
        "queues without their dead-letter queue": [
            queue for queue in there if seen.dead_letters.get(queue) != dead_letters[queue]
        ],
        "dead-letter queues that forget within 14 days": sorted(
            queue for queue in keeping if days.get(queue, _DAYS) < _DAYS
        ),
        "tables that keep rows for ever": [table for table in tables if not seen.expiring.get(table)],
        "tables that can be deleted": [table for table in tables if seen.deletable.get(table, True)],
        "alarms that notify nobody": sorted(alarm for alarm, notifies in seen.alarms.items() if not notifies),
    }


def _schedules(names: Names, queues: Sequence[QueueSettings]) -> list[str]:
    partitions = [partition for queue in (*queues, PLANNER) for partition in queue.all_partitions()]
    ticks = [names.schedule(each.queue, each.number) for each in partitions]
    return [*ticks, names.watch, names.planner_watch]


def _dead_letters(names: Names, queues: Sequence[QueueSettings]) -> dict[str, str]:
    """Return the dead-letter queue that each SQS queue must have. The planner's keeps messages for a day only."""
    levels = {
        names.queue(queue.name, priority): names.queue_dlq(queue.name)
        for queue in queues
        for priority in range(1, queue.priorities + 1)
    }
    return {names.inbound: names.inbound_dlq, **levels}


def sends(_: Scale) -> Sends:
    return Sends(sqs=100)


CHECK = Check(
    name=NAME,
    promise="Every schedule fires, each queue has its dead-letter queue, which keeps for 14 days, and alarms notify",
    bounds={
        "alarms": SOME,
        "schedules that do not fire": NONE,
        "queues that are not there": NONE,
        "queues without their dead-letter queue": NONE,
        "dead-letter queues that forget within 14 days": NONE,
        "tables that keep rows for ever": replace(NONE, gap=Gap.EXPIRY),
        "tables that can be deleted": NONE,
        "alarms that notify nobody": NONE,
    },
    run=run,
    sends=sends,
    lane=NAME,
)
