"""Looks at the functions' logs: what they told in the last hour of what went wrong."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from dueline.aws.doctor.place import Place
from dueline.doctor.functions import PAGES_OF_LINES
from dueline.doctor.seen import FUNCTIONS, LOOKED_BACK, LogLine

# Besides those with a page of their own.
_MESSAGES = (*PAGES_OF_LINES, "parked", "rejected")
# An unhandled error, as Lambda itself logs it.
_ERROR = "errorMessage"
_PATTERN = " || ".join([*(f'($.message = "{message}")' for message in _MESSAGES), "($.errorType = *)"])
# Of 1 MB each: so much of a log is looked at, and no more.
_MOST_PAGES = 20
_MOST_CHARACTERS = 300
# Where the functions tell why, the plainest first.
_REASONS = ("reason", "reasons", "steps", "queues")


def logs(place: Place) -> dict[str, Any]:
    """Return what the functions logged of what went wrong, each reason once with its count."""
    counted = Counter(line for function in FUNCTIONS for line in _lines(place, function))
    return {
        "logged": [
            LogLine(function=function, message=message, reason=reason, queue=queue, count=count)
            for (function, message, reason, queue), count in counted.most_common()
        ]
    }


def _lines(place: Place, function: str) -> Iterator[tuple[str, str, str, str | None]]:
    for text in _texts(place, place.names.function_log(function)):
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and (told := _told(line)):
            yield function, *told


def _told(line: Mapping[str, Any]) -> tuple[str, str, str | None] | None:
    """Return what a line tells: its message, its reason, and its queue if it has one."""
    queue = line.get("queue")
    if line.get("message") in _MESSAGES:
        told = next((line[field] for field in _REASONS if line.get(field)), None)
        reason = told if isinstance(told, str) else json.dumps(told)
        # Without a reason a caller was at fault.
        return None if told is None else (line["message"], reason[:_MOST_CHARACTERS], queue)
    if "errorType" in line:
        return "failed", f"{line['errorType']}: {line.get(_ERROR, '')}"[:_MOST_CHARACTERS], queue
    return None


def _texts(place: Place, group: str) -> Iterator[str]:
    start = int((place.now - LOOKED_BACK).timestamp() * 1000)
    asked = {"logGroupName": group, "startTime": start, "filterPattern": f"{{ {_PATTERN} }}"}
    pages = place.client("logs").get_paginator("filter_log_events").paginate(**asked)
    try:
        for number, page in enumerate(pages, start=1):
            yield from (event["message"] for event in page["events"])
            if number == _MOST_PAGES:
                return
    except ClientError as error:
        # A function that never ran has no log.
        if error.response["Error"].get("Code") != "ResourceNotFoundException":
            raise
