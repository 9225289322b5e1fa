"""Looks at the functions: whether Lambda may run them, and whether their queues reach them."""

from typing import Any

from botocore.exceptions import ClientError

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
    """Return the states of the deployment's stacks; one that is not there has none."""
    client, names = place.client("cloudformation"), place.names
    wanted = [names.core_stack, *(names.queue_stack(queue.name) for queue in place.deployment.queues)]
    found: dict[str, str] = {}
    for name in wanted:
        try:
            found[name] = client.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"]
        except ClientError as error:
            # https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStacks.html
            if error.response["Error"].get("Code") != "ValidationError":
                raise
    return {"stacks": found}
