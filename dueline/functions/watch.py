"""The watch's function, each five minutes: mails what is wrong, and keeps DynamoDB's TTL from collecting late jobs."""

import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from dueline.aws.aws_deployment import AwsDeployment
from dueline.aws.cloudwatch import LogFigures
from dueline.aws.dynamodb_items import Items
from dueline.aws.sent_mails import Mailer
from dueline.aws.watch_notes import WatchNotes
from dueline.config import metrics
from dueline.config.environment import WatchSettings
from dueline.config.names import runbook
from dueline.core import instant, rows
from dueline.core.job import Partition, new_uid
from dueline.core.queue_settings import PLANNER
from dueline.errors import RETRYABLE, DuelineError
from dueline.functions.declared_queues import DECLARED
from dueline.functions.telemetry import log, report
from dueline.operations.ttl_guard import LATE, LatePartition, TtlGuard
from dueline.operations.watch import (
    Condition,
    Mail,
    Sighting,
    look_at_dead_letters,
    look_at_partitions,
    look_at_shares,
    text_of,
)

SETTINGS = WatchSettings.from_env(os.environ)
LONGEST_REQUEST = timedelta(seconds=10)
DEPLOYMENT = AwsDeployment(SETTINGS.deployment, queue_urls=SETTINGS.queue_urls, longest=LONGEST_REQUEST)
NAMES = DEPLOYMENT.names
TIME_TO_LIVE = DEPLOYMENT.time_to_live()
NOTES = WatchNotes(DEPLOYMENT.clients.of("dynamodb"), table=NAMES.state)
SENT = Items(DEPLOYMENT.clients.of("dynamodb"), lambda _: NAMES.state)
FIGURES = LogFigures(NAMES, client=partial(DEPLOYMENT.clients.of, "logs"))
# Two firings of a tick may be almost two periods apart.
SETTLE = 3 * timedelta(seconds=SETTINGS.tick_period)
_EVERY, _SCHEDULES_EVERY = timedelta(minutes=5), timedelta(hours=1)
_AN_HOUR = timedelta(hours=1)
_MOST_NAMED = 100

logger = log()


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Look at all that is declared and has ticks, mail, switch TTL as it must be, and report.

    Raises Throttled or Unavailable, once all was done that could be, where it is not known what else there is.
    """
    declared = [*DECLARED.partitions(), *PLANNER.all_partitions()]
    ticked, unknown = _ticked()
    faults = [unknown] if unknown else []
    try:
        faults += _mail(_look(declared))
    except RETRYABLE as fault:
        faults.append(fault)
    finally:
        # What has ticks and is not declared any more may have rows.
        _guard(list(dict.fromkeys([*declared, *ticked])), are_all=unknown is None)
    if faults:
        raise faults[0]


def _ticked() -> tuple[Sequence[Partition], DuelineError | None]:
    """Return the partitions that have schedules, or why they are not known: what is declared is guarded anyway."""
    try:
        return DEPLOYMENT.ticked_partitions(), None
    except RETRYABLE as fault:
        return (), fault


def _look(partitions: Sequence[Partition]) -> Sighting:
    """Look at everything, and report the deployment's metrics."""
    now, spread = DEPLOYMENT.clock.now(), DEPLOYMENT.spread
    sighting = look_at_partitions(partitions, table=DEPLOYMENT.table, now=now, spread=spread)
    sighting += look_at_dead_letters(_dead_letters(), spread=spread)
    on_time = partial(FIGURES.on_time, start=now - _AN_HOUR, end=now)
    worst = sighting.figures.get(metrics.WORST_LATENESS) or 0
    sighting += look_at_shares(on_time, list(DECLARED.queues)) + _look_at_ttl(worst) + _look_at_schedules(now)
    report(sighting.figures, deployment=SETTINGS.deployment)
    for state, text in sighting.states.items():
        logger.warning(state.kind, extra={"about": state.about, "reason": text})
    return sighting


def _dead_letters() -> dict[Condition, Any]:
    own = {"inbound_dead_letters": NAMES.inbound_dlq, "parked_jobs": NAMES.dispatch_dlq}
    own |= {"planner_dead_letters": NAMES.queue_dlq(PLANNER.name)}
    depths = {Condition(kind, name): DEPLOYMENT.queue(name).depth for kind, name in own.items()}
    return depths | {
        Condition("dead_letters", each): DEPLOYMENT.dead_letter_queue(each).depth for each in DECLARED.queues
    }


def _look_at_ttl(worst: float) -> Sighting:
    """See whether TTL is off, or should be for hours by the worst lateness."""
    state = Condition("ttl_off", NAMES.table)
    try:
        is_on = TIME_TO_LIVE.is_on()
    except RETRYABLE as fault:
        return Sighting(states={Condition("unknown", NAMES.table): f"its TTL: {fault}"}, unknown=frozenset({state}))
    should_be_off = worst > (LATE + SETTLE + _EVERY).total_seconds()
    what = {state: "it should be off, and is not"} if is_on and should_be_off else {} if is_on else {state: "it is off"}
    return Sighting(states=what, figures={metrics.TTL_OFF: len(what)})


def _look_at_schedules(now: datetime) -> Sighting:
    """See when the planner's watch ran last, and whether it found schedules that stood still."""
    stood, unwatched = Condition("schedules_stood_still", "schedules"), Condition("schedules_unwatched", "schedules")
    try:
        note = NOTES.read().get(rows.SCHEDULES)
    except RETRYABLE as fault:
        missed = frozenset({stood, unwatched})
        return Sighting(states={Condition("unknown", "schedules"): f"the planner's watch: {fault}"}, unknown=missed)
    states = {stood: f"{note.count} were started again"} if note and note.count else {}
    if note is None or note.at < now - _SCHEDULES_EVERY - _EVERY:
        since = f"since {instant.text(note.at)}" if note else "yet"
        states[unwatched] = f"the planner has not looked at them {since}"
    return Sighting(states=states)


def _mail(sighting: Sighting) -> list[DuelineError]:
    mailer = Mailer(
        sent=SENT, client=DEPLOYMENT.clients.of("sns"), topic_of=_topic_of, text_of=_text_of, new_owner=new_uid
    )
    now = DEPLOYMENT.clock.now()
    NOTES.put(rows.TICKS, now=now, count=len(sighting.states))
    return mailer.run(sighting.with_owners(DECLARED.owners), now=now)


def _topic_of(mail: Mail) -> str:
    topic = mail.topic or (NAMES.alarms if mail.kind.pages else NAMES.tickets)
    return topic if topic.startswith("arn:") else SETTINGS.topics + topic


def _text_of(mail: Mail) -> tuple[str, str]:
    page = runbook(mail.kind.page, base=SETTINGS.runbook_url)
    return text_of(mail, deployment=SETTINGS.deployment, runbook=page)


def _guard(partitions: Sequence[Partition], *, are_all: bool) -> None:
    table, clock, spread = DEPLOYMENT.table, DEPLOYMENT.clock, DEPLOYMENT.spread
    guard = TtlGuard(table=table, time_to_live=TIME_TO_LIVE, clock=clock, settle=SETTLE, spread=spread)
    done = guard.run(partitions, are_all=are_all)
    behind = {"partitions": [_describe(each) for each in done.behind[:_MOST_NAMED]]}
    if done.switched is False:
        logger.error("ttl switched off", extra=behind)
    elif done.switched:
        logger.warning("ttl switched on")
    elif done.fault:
        logger.error("ttl not switched", extra={"reason": done.fault, **behind})
    elif not done.is_on:
        logger.warning("ttl is off", extra={"unknown": done.unknown, **behind})


def _describe(behind: LatePartition) -> dict[str, Any]:
    last = instant.text(behind.fence) if behind.fence else None
    first_due = instant.text(behind.due)
    return {"partition": str(behind.partition), "fence": last, "first_due": first_due}
