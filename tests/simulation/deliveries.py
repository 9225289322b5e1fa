"""What a message that reached a queue says of the promises, noted as it happens."""

import json
from datetime import timedelta
from typing import TYPE_CHECKING

from dueline.memory import Delivery
from dueline.model import rows
from dueline.model.job import Job, JobId
from dueline.model.message import REASON
from dueline.model.queue_settings import PLANNER
from dueline.protocol.move import Intent
from tests.simulation import acts
from tests.simulation.record import Parked, Sent
from tests.wire import Call

if TYPE_CHECKING:
    from tests.simulation.world import Running, World


def jobs_of(call: Call) -> dict[JobId, Job]:
    """Return the jobs whose rows a call writes, or that it sends."""
    if call.name.endswith(".send"):
        jobs = [message.job() for message in call.args[0]]
    elif call.name in ("table.write", "table.add"):
        written = call.args[0] if call.name == "table.write" else call.args
        jobs = [rows.read_job(row) for row in written if rows.prefix_and_kind(str(row["sk"]))[1] == rows.JOB]
    else:
        jobs = []
    return {job.id: job for job in jobs}


def note(world: "World", me: "Running", queue: str, delivery: Delivery) -> None:
    job = delivery.message.job()
    match queue:
        case "inbound":
            world.record.put_back[job.id] += isinstance(me.act, acts.PutBack)
            if (old := delivery.message.moves()) is not None:
                world.record.intents[job.id] = Intent(job=job, old=old)
                me.intended.add(job.id)
        case "dead_letters":
            parked = Parked(job=job, reason=delivery.message.attributes[REASON], at=me.process.now())
            world.record.parked.append(parked)
        case _:
            world.record.sent.append(_sent(world, me, queue, delivery, job))
            _excuse(world, me, job.id)


def _sent(world: "World", me: "Running", name: str, delivery: Delivery, job: Job) -> Sent:
    queue, level = world.level_of(name)
    told = {} if queue == PLANNER.name else json.loads(job.payload)
    return Sent(
        id=job.id,
        queue=queue,
        visible=delivery.visible + timedelta(seconds=me.process.skew),
        by=me.process.name,
        level=level,
        schedule=job.schedule,
        nominal=job.nominal,
        **told,
    )


def excuse_what_is_being_ingested(world: "World", me: "Running") -> None:
    """Note the jobs whose ingest goes on as a tick reads their partition: either may send what the other does."""
    ingested = {id for other in world.running for id in other.jobs}
    world.record.excused |= {id for id in ingested if id.partition == me.partition}


def _excuse(world: "World", me: "Running", id: JobId) -> None:
    """Note what may be repeated because of this delivery, by what design allows."""
    is_overtaken = me.partition and id not in world.record.acknowledged
    meets_a_tick = me.jobs and any(other.partition == id.partition for other in world.running)
    if is_overtaken or meets_a_tick:
        world.record.excused.add(id)
