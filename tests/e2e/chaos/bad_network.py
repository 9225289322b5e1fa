"""Scenarios `network-faults` and `throttling`: requests go wrong in every way, and tables that throttle."""

import random
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import count, cycle
from typing import Any

import httpx

from dueline.core import instant
from tests.e2e.chaos.bad_messages import id_of
from tests.e2e.chaos.deployment import Deployment, reasons
from tests.e2e.chaos.kills import API, INGEST
from tests.e2e.chaos.ledger import Ledger, Report
from tests.e2e.chaos.network_faults import KINDS, RandomFaults, writes_of_jobs_throttled
from tests.e2e.chaos.proxy import Record, straight
from tests.e2e.chaos.repeats import Invocations
from tests.e2e.deployed import not_slow
from tests.waiting import wait_until

QUEUES = ("emails", "invoices")
LANES, JOBS_OF_A_CALL = 4, (1, 5, 1, 3)
# Some callers give up after the first fault: their jobs may come or not.
TRIES = (1, 9)
SOON, BY_THE_TABLE = (0, 10), (25, 29)
CANCELLED_SHARE = 0.15
FEWEST_OF_A_KIND = 3
# What a caller is answered: done, or try again.
ANSWERS = {200, 201, 202, 429, 503}


def network_faults(deployment: Deployment, *, jobs: int, seed: int) -> Report:
    """Schedule and cancel while requests go wrong, until there was enough of each fault and half of the jobs came."""
    deployment.start()
    ledger, report = Ledger(), Report(details=[f"seed {seed}"])
    faults = deployment.proxy.around = RandomFaults(seed=seed)
    with ledger.receiving(deployment, *QUEUES):
        _schedule_and_cancel(deployment, ledger, faults, jobs=jobs, seed=seed)
        arrived = wait_until(lambda: len(ledger.lost) < len(ledger.expected) / 2)
        report.expect(arrived, "half of the jobs did not arrive in spite of the faults")
        deployment.proxy.around = straight
        wait_until(lambda: not ledger.lost)
        report.expect(deployment.wait_for_ticks(ledger.last_due, QUEUES), "ticks have ended")
    dead_letters = deployment.dead_letters()
    report.expect(not dead_letters, f"parked for a fault that passes: {reasons(dead_letters)}")
    report.expect(set(ledger.statuses) <= ANSWERS, f"callers were answered {dict(ledger.statuses)}, beyond {ANSWERS}")
    ledger.check(report, deployment)
    report.figures["faults"] = dict(faults.counts)
    return report


def _schedule_and_cancel(deployment: Deployment, ledger: Ledger, faults: RandomFaults, *, jobs: int, seed: int) -> None:
    choices, sizes, queues, laters = random.Random(seed), cycle(JOBS_OF_A_CALL), cycle(QUEUES), count()

    def call(_: int) -> None:
        # On a slow machine jobs are scheduled ever further ahead, until a cancel comes in time to be a promise.
        later = next(laters) if len(ledger.expected) >= jobs else 0
        new = [_new(choices, later) for _ in range(next(sizes))]
        for id in ledger.schedule(deployment.http, next(queues), new, tries=choices.choice(TRIES)):
            if choices.random() < CANCELLED_SHARE:
                ledger.cancel(deployment.http, id)

    def is_enough() -> bool:
        has_answers = {httpx.codes.OK, httpx.codes.ACCEPTED} <= set(ledger.cancels.values())
        has_faults = all(faults.counts[kind] >= FEWEST_OF_A_KIND for kind in KINDS)
        return len(ledger.expected) >= jobs and has_answers and has_faults

    with ThreadPoolExecutor(LANES) as lanes:
        wait_until(lambda: bool(list(lanes.map(call, range(LANES)))) and is_enough(), every=0)


def _new(choices: random.Random, later: float) -> dict[str, Any]:
    soonest, latest = choices.choice((SOON, BY_THE_TABLE))
    later = later if soonest else 0
    return {"payload": {"n": 1}, "delay": round(choices.uniform(soonest + later, latest + later), 3)}


# Ticks send jobs up to 21 s before they are due, and ingest takes its time before that.
FIRST_DUE, SOONEST, SPREAD = timedelta(seconds=29), timedelta(seconds=28), timedelta(seconds=3)
DIRECT_JOBS = 6


def throttling(deployment: Deployment, *, jobs: int) -> Report:
    """Throttle both tables until jobs are overdue, then what writes the table of jobs alone, as a flood would.

    Then ticks, whose states are in the other table, send all that waits. All the while callers schedule and cancel.
    """
    deployment.start()
    ledger, report, http, proxy = Ledger(), Report(), deployment.http, deployment.proxy

    def schedule(first: datetime) -> list[str]:
        dues = [first + SPREAD * n / jobs for n in range(jobs)]
        return ledger.schedule(http, "emails", [{"payload": 1, "at": instant.text(due)} for due in dues])

    with ledger.receiving(deployment, *QUEUES):
        waiting = deployment.throttle_with_jobs_in_the_table(
            lambda lead: schedule(datetime.now(UTC) + lead), lead=FIRST_DUE
        )
        direct = ledger.schedule(http, "emails", [{"payload": 1, "delay": n} for n in range(DIRECT_JOBS)])
        buffered = schedule(datetime.now(UTC) + SOONEST)
        cancels = [http.delete(f"/queues/emails/jobs/{waiting[0]}")]
        last = max(ledger.accepted[id].due for id in waiting)
        assert wait_until(
            lambda: datetime.now(UTC) > last and bool(deployment.tick_faults) and set(direct) <= ledger.times.keys()
        ), "direct jobs do not arrive, or no tick fails, while the tables throttle"
        flooded, proxy.around = datetime.now(UTC), writes_of_jobs_throttled
        late = [{"payload": 1, "id": id_of(due=flooded + SPREAD)} for _ in range(jobs)]
        # The first of them alone.
        buffered += [id for some in (late[:1], late[1:]) for id in ledger.schedule(http, "emails", some)]
        cancels.append(http.delete(f"/queues/emails/jobs/{waiting[0]}"))
        report.expect(wait_until(lambda: set(waiting) <= ledger.times.keys()), "ticks need to write the table of jobs")
        ended, proxy.around = datetime.now(UTC), straight
        wait_until(lambda: not ledger.lost)
    sent_after = all(ledger.first_arrival(id) > flooded for id in waiting if id in ledger.times)
    report.expect(sent_after, "jobs were sent while both tables throttled")
    came_before = all(ledger.first_arrival(id) < flooded for id in direct if id in ledger.times)
    report.expect(came_before, "the direct route needs the tables")
    answers = {(ledger.accepted[id].route, ledger.accepted[id].state) for id in buffered}
    report.expect(len(buffered) == 2 * jobs, f"of {2 * jobs} jobs, {len(buffered)} were accepted while throttled")
    report.expect(answers == {("table", "accepted")}, f"jobs in the inbound queue are answered as {answers}")
    for answer in cancels:
        is_refused = answer.status_code == httpx.codes.TOO_MANY_REQUESTS and answer.headers.get("retry-after")
        report.expect(is_refused, f"a cancel that cannot be written: {answer.status_code} {dict(answer.headers)}")
    records = [record for record in list(proxy.records) if record.at > flooded.timestamp()]
    _check_ticks(report, deployment, waiting, records)
    throttled = {each.sender.function for each in records if each.at < ended.timestamp() and each.fault}
    report.expect(throttled == {API, INGEST}, f"in the flood, {throttled} were throttled")
    ledger.check(report, deployment)
    return report


def _check_ticks(report: Report, deployment: Deployment, waiting: list[str], records: list[Record]) -> None:
    """See that the first tick that nothing hinders sends all that waits: it need not write the table of jobs."""
    left = [id for id in waiting if not _is_sent_by_the_first_unhindered_tick(id, records)]
    report.expect(not left, f"ticks after the throttling left {len(left)} jobs to later ones")
    others = set(not_slow(deployment.tick_faults, "ProvisionedThroughputExceeded"))
    report.expect(not others, f"ticks failed for another reason: {others}")
    dead_letters = deployment.dead_letters()
    report.expect(not dead_letters, f"parked: {reasons(dead_letters)}")
    report.figures["ticks that failed"] = len(deployment.tick_faults)


def _is_sent_by_the_first_unhindered_tick(id: str, records: list[Record]) -> bool:
    queue, partition, *_, uid = id.split(".")
    invocations, delivered = Invocations(records=records), set[str]()
    for record in records:
        delivered |= set(record.delivered)
        change, by = record.state, record.invocation
        releases = change and change.partition == f"{queue}#{partition}" and change.cursor and not change.lease
        if releases and invocations.acquired_its_lease(by) and not invocations.fell_short(by):
            break
    return uid in delivered
