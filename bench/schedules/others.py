"""What calls cost by how many other schedules there are: nothing looks at them.

Over the tables in memory, whose calls are counted at the port, each with its rows: what a call asks of DynamoDB follows
from those alone.
"""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from bench.part import Figures
from bench.schedules.made import RULES, a_head, waiting_job
from dueline.memory import MemoryTable
from dueline.model import rows
from dueline.model.message import Message
from dueline.model.queue_settings import QueueSettings
from dueline.model.schedule_rows import MOST_SCHEDULES, count_key
from dueline.schedules.head import head_row
from dueline.schedules.occurrence import between, occurrence, step
from dueline.schedules.plan_step import Received
from dueline.schedules.reading import get, page
from tests.builders import NOW
from tests.scheduled import Scheduled
from tests.wire import Call, straight

# So that the one that is measured finds room in its queue.
_IN_A_QUEUE = MOST_SCHEDULES - 1
_PAGE = 20
_PAYLOAD = '{"report":"all"}'


def costs(others: int) -> dict[str, Figures]:
    """Return the calls of each step, and their rows, with so many other daily schedules."""
    world = Scheduled()
    _load(world.stores.table, others)
    return {name: _counted(world, act) for name, act in _steps(world).items()}


def _steps(world: Scheduled) -> dict[str, Callable[[], object]]:
    return {
        "create": lambda: world.define(cron="0 9 * * *"),
        "the planner's step": lambda: _plan(world),
        "look up": lambda: get("emails", "digest", table=world.table),
        "change": lambda: world.define(cron="0 10 * * *"),
        f"list a page of {_PAGE}": lambda: page("emails", table=world.table, after="digest", limit=_PAGE),
        "delete": lambda: world.changes.delete("emails", "digest"),
    }


def _plan(world: Scheduled) -> None:
    message = Message.of(waiting_job(get("emails", "digest", table=world.stores.table)))
    planned = world.planner.run(
        [Received(message_id="m", message=message, first_received=world.clock.now())],
        until=world.clock.monotonic() + 10,
    )
    if planned.submitted.total() != 1:
        raise RuntimeError(f"a step went wrong: {planned}")


def _counted(world: Scheduled, act: Callable[[], object]) -> Figures:
    calls, touched = Counter[str](), Counter[str]()

    def around(call: Call) -> Any:
        answer = straight(call)
        name = call.name.partition(".")[2]
        calls[name] += 1
        touched[name] += _rows(call, answer)
        return answer

    world.wire.around = around
    try:
        act()
    finally:
        world.wire.around = straight
    return {"calls": dict(sorted(calls.items())), "rows": touched.total()}


def _rows(call: Call, answer: Any) -> int:
    """Return how many rows a call asked for, or put; of a page of schedules no more than are on each page count."""
    if hasattr(answer, "more"):
        return len(answer.rows)
    return len(call.args[0]) if isinstance(call.args[0], list | tuple | set) else 1


def _load(table: MemoryTable, others: int) -> None:
    """Put schedules of many queues, each with its next run and its planning job, and a page of them in any case."""
    count = max(others, 2 * _PAGE)
    for start in range(0, count, _IN_A_QUEUE):
        queue = f"queue-{start}" if start else "emails"
        of_one = _of_one(queue)
        for number in range(start, min(count, start + _IN_A_QUEUE)):
            table.write([{**row, "sk": sk.format(number)} for sk, row in of_one])
    pk, sk = count_key("emails")
    table.write([{"pk": pk, "sk": sk, "count": min(count, _IN_A_QUEUE)}])


def _of_one(queue: str) -> list[tuple[str, rows.Row]]:
    """Return the rows of a schedule of a queue, each with the form of its sort key, which has the schedule's number."""
    settings = QueueSettings(name=queue, partitions=1, retention=timedelta(days=7))
    head = a_head("z", RULES["daily"], queue=settings, planned_to=NOW)
    (run,) = between(RULES["daily"], NOW, step(RULES["daily"], NOW))
    jobs = occurrence(head, run), waiting_job(head)
    return [
        ("z{:06d}", head_row(head)),
        *((rows.job_key(job.id)[1].replace(job.id.uid, queue + "-{:06d}"), rows.job_row(job)) for job in jobs),
    ]
