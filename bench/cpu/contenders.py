"""Who carries out each step: Dueline, its requests alone by boto3 and by plain HTTP, and Dynein's protocol."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import boto3

from bench.cpu import dynein_steps, floors, steps
from bench.cpu.figures import BATCHED, BOTO3, DYNEIN, HTTP, INGEST, INGEST_FEW, OURS, SUBMIT, TICK, WORKER
from bench.cpu.loopback import Loopback, Request
from bench.cpu.steps import Step, timed
from dueline.aws import clients
from dueline.model.job import Job
from dueline.ports import A, B, Spread

_BATCH, _FEW, _DUE, _SINGLY = 1000, 100, 2000, 200
_LONGEST = timedelta(seconds=10)


class Lanes:
    """As many calls at once as ours makes, until they are to come one after the other, in this thread."""

    def __init__(self) -> None:
        self._map: Spread = ThreadPoolExecutor(clients.LANES).map

    def __call__(self, call: Callable[[A], B], items: Iterable[A], /) -> Iterable[B]:
        return self._map(call, items)

    def close(self) -> None:
        self._map = map


LANES = Lanes()
_COUNTED = b'"Id"'


def contenders(loopback: Loopback, of_table: Sequence[Job]) -> dict[str, dict[str, Step]]:
    """Return who carries out each step, by its name. What the floors ask is what ours asked before."""
    floor = {service: boto3.client(service, config=clients.config(_LONGEST)) for service in ("sqs", "dynamodb")}
    ours: dict[str, Step] = {
        SUBMIT: steps.submit(_BATCH),
        INGEST_FEW: steps.ingest(of_table[:_FEW]),
        INGEST: steps.ingest(of_table[:_BATCH]),
        TICK: steps.tick(_DUE),
        WORKER: steps.Working(_BATCH),
    }
    all = {name: {OURS: step} | _floors(step, loopback, floor) for name, step in ours.items()}
    for name, each in _dyneins(of_table).items():
        all[name] |= each
    return all


def _floors(ours: Step, loopback: Loopback, clients: dict[str, Any]) -> dict[str, Step]:
    loopback.record()
    jobs, _ = ours()
    # What a process asks once, of SSM, is no job's.
    asked = [request for request in loopback.recorded() if floors.service_of(request[0]) in clients]
    count = _worked_off(asked) or jobs
    return {
        BOTO3: timed(floors.by_boto3(asked, clients, spread=LANES), jobs=count),
        HTTP: timed(floors.ByHttp(asked, port=loopback.port), jobs=count),
    }


def _worked_off(asked: Sequence[Request]) -> int:
    """Return how many messages were deleted."""
    return sum(body.encode().count(_COUNTED) for target, body in asked if target.endswith("DeleteMessageBatch"))


def _dyneins(of_table: Sequence[Job]) -> dict[str, dict[str, Step]]:
    singly, batched = (dynein_steps.dynein(batched=each, queue_urls=steps.QUEUE_URLS) for each in (False, True))
    return {
        SUBMIT: {
            DYNEIN: dynein_steps.submit(singly, of_table[:_SINGLY]),
            BATCHED: dynein_steps.submit(batched, of_table[:_BATCH]),
        },
        INGEST: {
            DYNEIN: dynein_steps.ingest(singly, count=_SINGLY),
            BATCHED: dynein_steps.ingest(batched, count=_BATCH),
        },
        TICK: {
            DYNEIN: dynein_steps.tick(singly, count=_SINGLY),
            BATCHED: dynein_steps.tick(batched, count=_BATCH),
        },
    }
