"""How those who plan and change schedules go about their work, and what is noted of them."""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from dueline.errors import RETRYABLE, ScheduleChanged, ScheduleNotFound, TooManyChanges
from dueline.model import instant
from dueline.model.job import Job, JobId
from dueline.model.queue_settings import PLANNER
from dueline.model.schedule_rows import head_key
from dueline.protocol.table_route import TableRoute
from dueline.schedules.changes import Changed, Changes
from dueline.schedules.definition import Definition
from dueline.schedules.head import Head, read_head
from dueline.schedules.plan_step import Received
from dueline.schedules.planner import Planner
from dueline.schedules.reading import get
from dueline.schedules.rule import Rule
from dueline.schedules.watchdog import Watchdog
from tests.builders import NOW
from tests.simulation import acts
from tests.simulation.broken import Broken
from tests.simulation.timetable import Served, Step
from tests.wire import Call

if TYPE_CHECKING:
    from tests.simulation.world import Running, World

VISIBILITY_SECONDS = 30.0
LONGEST_HIDDEN = timedelta(minutes=1)
PLANNER_SECONDS = 14.0
LAST = 1000
Planning = acts.Plan | acts.Alter | acts.Watch


def plan(world: "World", me: "Running", act: acts.Plan) -> str:
    mail = world.mail[PLANNER.name]
    me.decided = me.process.now()
    places = mail.receive(waiting=act.waiting, again=act.again, seconds=VISIBILITY_SECONDS)
    batch = [
        Received(message_id=str(place), message=mail.message(place), first_received=mail.first_received(place))
        for place in places
    ]
    planner = Planner(table=me.core.table, route=_route(me), clock=me.process, spread=me.process.spread)
    planned = planner.run(batch, until=me.process.monotonic() + PLANNER_SECONDS)
    if not planned.again:
        _acknowledge(world, me)
    for number, place in enumerate(places):
        if str(place) in planned.again:
            mail.hide(place, _put_back_for(me.decided - mail.first_received(place)))
        elif number not in act.forgotten:
            mail.delete(place)
    return f"planned {len(places) - len(planned.again)} of {len(places)}"


def _put_back_for(waited: timedelta) -> int:
    """Return for how many seconds a planning job is hidden: the longer the longer it has waited."""
    return max(1, int(min(LONGEST_HIDDEN, waited / 2).total_seconds()))


def alter(world: "World", me: "Running", act: acts.Alter) -> str:
    changes = Changes(table=me.core.table, route=_route(me), clock=me.process)
    tag: str | None = None
    for left in range(act.again, -1, -1):
        began, is_seen = me.process.monotonic(), world.table.is_seen(head_key(act.queue, act.schedule))
        try:
            tag = get(act.queue, act.schedule, table=me.core.table).etag if act.is_matched and tag is None else tag
            changed = _ask(world, changes, act, tag)
        except (ScheduleNotFound, ScheduleChanged, TooManyChanges) as refusal:
            if isinstance(refusal, TooManyChanges) and act.what in ("pause", "delete"):
                raise Broken("as answered", f"{act} was refused: {refusal}") from None
            return f"is refused: {refusal}"
        except RETRYABLE:
            if not left:
                raise
            continue
        _check_answer(world, act, changed, began=began if is_seen else 0.0)
        _acknowledge(world, me)
        return f"{act.what}: generation {changed.head.generation} from {instant.text(changed.effective_from)}"
    return ""


def _ask(world: "World", changes: Changes, act: acts.Alter, tag: str | None) -> Changed:
    if act.rule is not None:
        return changes.put(world.stores.settings[act.queue], act.schedule, definition_of(act.rule), if_match=tag)
    ask = {"pause": changes.pause, "resume": changes.resume, "delete": changes.delete}[act.what]
    return ask(act.queue, act.schedule, if_match=tag)


def definition_of(rule: acts.Rule) -> Definition:
    return Definition(
        rule=Rule(every=timedelta(seconds=rule.every), start=NOW + timedelta(seconds=rule.start), count=rule.count),
        payload=json.dumps({"priority": rule.priority, "rule": rule.number}),
        priority=rule.priority,
        jitter=timedelta(seconds=rule.jitter),
        catch_up=rule.catch_up,  # type: ignore[arg-type]
    )


def _check_answer(world: "World", act: acts.Alter, changed: Changed, *, began: float) -> None:
    head = changed.head
    world.record.timetable.check_answer((act.queue, act.schedule), head, changed.effective_from, began=began)
    is_as_asked = {
        "put": lambda: act.rule is not None and head.definition == definition_of(act.rule) and not head.deleted,
        "pause": lambda: head.paused and not head.deleted,
        "resume": lambda: head.is_live,
        "delete": lambda: head.deleted,
    }[act.what]()
    if not is_as_asked:
        raise Broken("as answered", f"{act} was answered with {head}")


def last_change(head: Head) -> acts.Alter:
    """Return a change that nothing hinders: another rule, or that what was paused goes on."""
    if head.paused and not head.deleted:
        return acts.Alter(head.name, head.queue, "resume")
    return acts.Alter(head.name, head.queue, rule=acts.Rule(LAST, 60, 7))


def watch(world: "World", me: "Running", act: acts.Watch) -> str:
    watchdog = Watchdog(table=me.core.table, route=_route(me), clock=me.process, tick_period=world.periods.period)
    revived = watchdog.revive(act.queue, until=me.process.monotonic() + PLANNER_SECONDS)
    _acknowledge(world, me)
    return f"set {revived} going"


def _route(me: "Running") -> TableRoute:
    return TableRoute(table=me.core.table, dispatcher=me.core.dispatcher, clock=me.process, spread=me.process.spread)


def _acknowledge(world: "World", me: "Running") -> None:
    for id in me.jobs:
        world.record.acknowledged.setdefault(id, me.process.monotonic())


# What is noted


def note_what_is_submitted(world: "World", me: "Running", call: Call, jobs: Mapping[JobId, Job]) -> None:
    """Note jobs. Who submits again what a head said was planned before it began has no excuse for it."""
    timetable = world.record.timetable
    for id, job in jobs.items():
        is_repeat = id in timetable.jobs and (id not in me.jobs or call.name == "table.write")
        if is_repeat and (isinstance(me.act, acts.Watch) or timetable.planned.get(id, me.began) >= me.began):
            world.record.excused.add(id)
        timetable.jobs[id] = job
        me.jobs.add(id)


def note_answer(me: "Running", call: Call) -> None:
    """Note when a caller has read the head, and confirmed that it is the latest: from then on it decides."""
    is_read = call.name == "table.read" and any(pk.endswith("#schedules") for pk, _ in call.args[0])
    if is_read or call.name == "table.plan":
        me.decided = me.process.now()


def note_effect(world: "World", me: "Running", call: Call, args: tuple[Any, ...]) -> bool:
    took_effect = bool(call.do(*args))
    if took_effect and call.name == "table.plan":
        pk, name = args[0]
        after, until = instant.parse(call.kwargs["planned_to"]), instant.parse(call.kwargs["to"])
        step = Step(generation=call.kwargs["generation"], after=after, until=until, decided=me.decided)
        world.record.timetable.note_step((pk.partition("#")[0], name), step, at=world.turns.elapsed)
    elif took_effect:
        _note_change(world, me, read_head(args[0].head), args[0].planned_to)
    return took_effect


def _note_change(world: "World", me: "Running", head: Head, planned_to: str) -> None:
    timetable, schedule, at = world.record.timetable, (head.queue, head.name), world.turns.elapsed
    served = timetable.served[schedule]
    if head.generation != len(served) + 1 or (served and head.start < served[-1].head.start):
        raise Broken("never both", f"generation {head.generation} of {schedule} from {head.start} follows {served}")
    served.append(Served(head=head, at=at, decided=me.decided))
    if planned_to and instant.parse(planned_to) < head.start:
        after = instant.parse(planned_to)
        step = Step(generation=head.generation - 1, after=after, until=head.start, decided=me.decided)
        timetable.note_step(schedule, step, at=at)
