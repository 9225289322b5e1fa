"""The prices of bench/prices.json, and what is paid by the month for a deployment that does nothing."""

import json
from math import ceil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from dueline.aws.clients import LANES

MILLION, GB = 1_000_000, 1_000_000_000
MONTH_DAYS, MONTH_HOURS = 365 / 12, 730
# "Single-digit milliseconds", rounded up: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Introduction.html
DYNAMODB_SECONDS = 0.010
# Mean time of one SQS request as the documentation has it:
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-throughput-horizontal-scaling-and-batching.html
SQS_SECONDS = 0.020
# What an event source mapping reads with at least; one that finds nothing receives again after SQS's longest wait.
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
POLLERS, LONG_POLL_SECONDS = 5, 20


def written_prices() -> dict[str, dict[str, Any]]:
    """Return every price as bench/prices.json has it, with its unit, its source and the day when it was read."""
    prices: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("prices.json").read_text())["prices"]
    return prices


# Dollars, by the names that the file has.
PRICES: Any = SimpleNamespace(**{name: price["value"] for name, price in written_prices().items()})


def watch_price(*, metrics: int, alarms: int) -> float:
    """Return what so many metrics cost a month, and alarms on so many."""
    return float(metrics * PRICES.metric_month + alarms * PRICES.alarm_month)


def looks_month(*, partitions: int, dead_letters: int) -> float:
    """Return what the watch's looks cost a month at partitions and dead-letter queues.

    It reads the state and the first row of each partition, and the guard of TTL does so again. Its time is that of its
    requests, ten at once, and a second.
    """
    seconds = 1 + ceil(partitions / LANES) * 4 * DYNAMODB_SECONDS + ceil(dead_letters / LANES) * SQS_SECONDS
    gb_seconds = seconds / 2 * PRICES.lambda_gb_second * MILLION
    requests = 4 * partitions * PRICES.read_units_million + dead_letters * PRICES.sqs_million
    return float(requests + PRICES.lambda_million + gb_seconds) * MONTH_HOURS * 12 / MILLION


def polls_month() -> float:
    """Return what Lambda's receives from an empty queue cost in a month."""
    return POLLERS * MONTH_HOURS * 3600 / LONG_POLL_SECONDS * float(PRICES.sqs_million) / MILLION
