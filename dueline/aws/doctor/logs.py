"""Looks at the functions' logs: what they told in the last hour of what went wrong."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from dueline.aws.doctor.place import Place
from dueline.doctor.examine import PARTLY
from dueline.doctor.finding import Unseen
from dueline.doctor.functions import PAGES_OF_LINES
from dueline.doctor.seen import FUNCTIONS, LOOKED_BACK, LogLine

# Besides those with a page of their own.
_MESSAGES = (*PAGES_OF_LINES, "parked", "rejected")
# An unhandled error, as Lambda itself logs it.
_ERROR = "errorMessage"
_PATTERN = " || ".join([*(f'($.message = "{message}")' for message in _MESSAGES), "($.errorType = *)"])
# Of 1 MB each: so much of a log is looked at, and no more, which is told.
_MOST_PAGES = 20
_MOST_CHARACTERS = 300
# Where the functions tell why, the plainest first.
_REASONS = ("reason", "reasons", "steps", "queues")


def logs(place: Place) -> dict[str, Any]:
    """Return what the functions logged of what went wrong, each reason once with its count."""
    texts = {function: _Texts(place, place.names.function_log(function)) for function in FUNCTIONS}
    counted = Counter(line for function, its in texts.items() for line in _lines(function, its))
    return {
        "logs_gone": [function for function, its in texts.items() if its.are_gone],
        PARTLY: [_left_out(function) for function, its in texts.items() if its.are_cut],
        "logged": [
            LogLine(function=function, message=message, reason=reason, queue=queue, count=count)
            for (function, message, reason, queue), count in counted.most_common()
        ],
    }


def _left_out(function: str) -> Unseen:
    reason = f"the log of the last hour is too long: of its pages, the first {_MOST_PAGES} were read"
    return Unseen(what=f"all of the log of the function {function}", needs="", reason=reason)


def _lines(function: str, texts: Iterable[str]) -> Iterator[tuple[str, str, str, str | None]]:
    for text in texts:
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


class _Texts:
    """The lines of a log that may tell of what went wrong. `are_cut`: there is more than was read.

    `are_gone`: there is no such log, which stacks make and functions cannot.
    """

    def __init__(self, place: Place, group: str) -> None:
        start = int((place.now - LOOKED_BACK).timestamp() * 1000)
        asked = {"logGroupName": group, "startTime": start, "filterPattern": f"{{ {_PATTERN} }}"}
        self._pages = place.client("logs").get_paginator("filter_log_events").paginate(**asked)
        self.are_cut = self.are_gone = False

    def __iter__(self) -> Iterator[str]:
        try:
            for number, page in enumerate(self._pages, start=1):
                yield from (event["message"] for event in page["events"])
                self.are_cut = number == _MOST_PAGES and "nextToken" in page
                if self.are_cut:
                    return
        except ClientError as error:
            if error.response["Error"].get("Code") != "ResourceNotFoundException":
                raise
            self.are_gone = True
