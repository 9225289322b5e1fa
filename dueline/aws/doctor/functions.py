"""Looks at the functions: whether Lambda may run them, and whether their queues reach them."""

from typing import Any

from dueline.aws.doctor.place import Place
from dueline.doctor.functions import SOURCES
from dueline.doctor.seen import FUNCTIONS
from dueline.model.queue_settings import PLANNER


def reserved(place: Place) -> dict[str, Any]:
    """Return the concurrency that is reserved for each function, None for none."""
    client = place.client("lambda")
    asked = {name: client.get_function_concurrency(FunctionName=place.names.function(name)) for name in FUNCTIONS}
    return {"reserved": {name: answer.get("ReservedConcurrentExecutions") for name, answer in asked.items()}}


def sources(place: Place) -> dict[str, Any]:
    """Return the states of the event source mappings of each function that reads a queue."""
    client, names = place.client("lambda"), place.names
    # By the queue: they are of an alias of the function, or of the function itself in a deployment of before.
    queues = {"ingest": names.inbound, "planner": names.queue(PLANNER.name)}
    asked = {name: client.list_event_source_mappings(EventSourceArn=place.queue(queues[name])) for name in SOURCES}
    told = {name: answer["EventSourceMappings"] for name, answer in asked.items()}
    return {"sources": {name: [each["State"] for each in mappings] for name, mappings in told.items()}}


def concurrency(place: Place) -> dict[str, Any]:
    """Return how many functions of the account may run at once."""
    limit = place.client("lambda").get_account_settings()["AccountLimit"]
    return {"concurrency": limit["ConcurrentExecutions"]}


def stacks(place: Place) -> dict[str, Any]:
    """Return the states of the deployment's stacks, those among them that were never published or are to go."""
    names, pages = place.names, place.client("cloudformation").get_paginator("describe_stacks").paginate()
    found = {each["StackName"]: each["StackStatus"] for page in pages for each in page["Stacks"]}
    of_ours = (names.core_stack, names.groups_stack)
    return {"stacks": {n: told for n, told in found.items() if n in of_ours or n.startswith(names.queue_stack(""))}}
