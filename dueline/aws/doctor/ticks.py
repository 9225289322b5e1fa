"""Looks at what ticks leave: their schedules, the fences of partitions, and what controls a queue's workers."""

from typing import Any

from botocore.exceptions import ClientError

from dueline.aws.doctor.place import Place
from dueline.aws.dynamodb.items import Items
from dueline.errors import Unavailable
from dueline.lookup.control import Control
from dueline.model import rows
from dueline.model.control_rows import is_paused, paused_key, rate_key, read_rate
from dueline.model.rows import Key, Row
from dueline.ports import READ_KEYS

_MOST_A_PAGE = 100


def schedules(place: Place) -> dict[str, Any]:
    """Return the states of the schedules of ticks, and of those that the watches are fired by, by their names."""
    names = place.names
    of_ticks = _states(place, GroupName=names.schedule_group)
    watches = _states(place, GroupName=names.watch_group)
    return {"schedules": of_ticks, "watches": watches}


def _states(place: Place, **asked: str) -> dict[str, str]:
    pages = place.client("scheduler").get_paginator("list_schedules").paginate(**asked, MaxResults=_MOST_A_PAGE)
    try:
        return {each["Name"]: each["State"] for page in pages for each in page["Schedules"]}
    except ClientError as error:
        # Whoever deleted the group deleted all that is in it.
        if error.response["Error"].get("Code") != "ResourceNotFoundException":
            raise
        return {}


def states(place: Place) -> dict[str, Any]:
    """Return the fences of all partitions, and the pause and rate of all queues."""
    deployment = place.deployment
    partitions = deployment.partitions()
    controls = [(paused_key(queue.name), rate_key(queue.name)) for queue in deployment.queues]
    found = _read(place, [*map(rows.state_key, partitions), *(key for each in controls for key in each)])
    fences = {each: rows.read_state(found.get(rows.state_key(each))).fence for each in partitions}
    return {
        "fences": fences,
        "controls": {
            queue.name: _control(found.get(paused), found.get(rate))
            for queue, (paused, rate) in zip(deployment.queues, controls, strict=True)
        },
    }


def _control(paused: Row | None, limit: Row | None) -> Control:
    rate, rate_set = read_rate(limit)
    return Control(paused=is_paused(paused), rate=rate, rate_set=rate_set)


def _read(place: Place, keys: list[Key]) -> dict[Key, Row]:
    items, found = Items(place.client("dynamodb")), dict[Key, Row]()
    for start in range(0, len(keys), READ_KEYS):
        reading = items.read({place.names.state: keys[start : start + READ_KEYS]}, consistent=True)
        if reading.unread:
            raise Unavailable(f"{len(reading.unread)} rows of {place.names.state} were left unread: try again")
        found |= reading.rows
    return found
