"""Each check passes in a sandbox that keeps its promises, and tells of one that is broken in its way."""

import random
from datetime import timedelta

import pytest

from dueline.verify.check import NotJudged, Verdict, judged
from dueline.verify.checks import CHECKS
from dueline.verify.checks.alarms import ON_FAULTS
from dueline.verify.checks.alarms_by_figure import BY_FIGURE
from dueline.verify.sandbox import MOVED, PARTITIONS_OF_MOVED
from dueline.verify.trial import Scale, Trial
from tests.unit.verify.sandbox import FakeSandbox

# What takes days, test_command.py follows.
BY_NAME = {check.name: check for check in CHECKS if not check.takes_days}
WITHOUT_DEAD_LETTERS = "queues without their dead-letter queue"
FORGETFUL = "dead-letter queues that forget within 14 days"
TOO_MUCH, TOO_LITTLE = "allowed, and must not be", "denied, and must be allowed"
# How it is broken, and the figure that tells of it.
BROKEN = [
    ("timers", {"early": timedelta(milliseconds=1)}, "visible before its time"),
    ("timers", {"late": timedelta(seconds=2)}, "visible after its time, p95"),
    ("timers", {"loses": 90}, "lost"),
    ("firings", {"skips": (2, 3)}, "longest gap"),
    ("firings", {"fires": False}, "firings more than minutes"),
    ("lateness", {"early": timedelta(milliseconds=1)}, "table: early"),
    ("lateness", {"late": timedelta(seconds=1.6)}, "direct: p95"),
    ("lateness", {"loses": 50}, "direct: lost"),
    ("precise", {"late": timedelta(milliseconds=60)}, "p95"),
    ("precise", {"early": timedelta(milliseconds=1)}, "certainly early"),
    ("precise", {"loses": 20}, "lost"),
    ("cancels", {"drops_cancels": True}, "came though it was promised not to"),
    ("cancels", {"loses": 30}, "not cancelled, and lost"),
    ("moves", {"moves_twice": True}, "came under two ids"),
    ("moves", {"loses": 31}, "lost"),
    ("keys", {"forgets_keys": True}, "keys with several jobs, by what came"),
    ("keys", {"loses": 9}, "lost"),
    ("payloads", {"changes_payloads": True}, "came as something else"),
    ("payloads", {"takes_any_upload": True}, "wrong uploads accepted"),
    ("payloads", {"loses": 17}, "lost"),
    ("rights", {"widened": frozenset({"get jobs plain-vip#0"})}, "allowed, and must not be"),
    ("rights", {"widened": frozenset({"GET /queues/plain%2Dvip/jobs"})}, "allowed, and must not be"),
    ("rights", {"narrowed": frozenset({"POST /queues/plain/jobs"})}, "denied, and must be allowed"),
    ("redrive", {"never_dead": True}, "did not reach the dead-letter queue"),
    ("redrive", {"keeps_letters": True}, "not put back"),
    ("redrive", {"loses": 7}, "did not reach the dead-letter queue"),
    ("level-gone", {"keeps_letters": True}, "not put back"),
    ("redrive", {"forgets_levels": True}, "came in another level"),
    ("level-gone", {"loses_parked": True}, "not parked"),
    ("level-gone", {"forgets_levels": True}, "lost"),
    ("level-gone", {"early": timedelta(milliseconds=1)}, "early"),
    ("settings", {"set_otherwise": {"schedules": {"plain.0": False}}}, "schedules that do not fire"),
    ("settings", {"set_otherwise": {"schedules": {"flood.3": None}}}, "schedules that do not fire"),
    ("settings", {"set_otherwise": {"schedules": {"dueline-verify-watch-ticks": False}}}, "schedules that do not fire"),
    ("settings", {"set_otherwise": {"days": {"dueline-verify_levels_p2": None}}}, "queues that are not there"),
    ("settings", {"set_otherwise": {"dead_letters": {"dueline-verify_plain": ""}}}, WITHOUT_DEAD_LETTERS),
    ("settings", {"set_otherwise": {"dead_letters": {"dueline-verify-inbound": None}}}, WITHOUT_DEAD_LETTERS),
    ("settings", {"set_otherwise": {"days": {"dueline-verify_plain_dlq": 13.9}}}, FORGETFUL),
    ("settings", {"set_otherwise": {"days": {"dueline-verify-dispatch-dlq": 4}}}, FORGETFUL),
    ("settings", {"set_otherwise": {"expiring": {"dueline-verify-jobs": False}}}, "tables that keep rows for ever"),
    ("settings", {"set_otherwise": {"deletable": {"dueline-verify-state": True}}}, "tables that can be deleted"),
    ("settings", {"set_otherwise": {"alarms": {"late": False}}}, "alarms that notify nobody"),
    ("policies", {"widened": frozenset({"GET /queues/plain-vip/jobs"})}, f"requests and queues: {TOO_MUCH}"),
    ("policies", {"widened": frozenset({"write jobs plain-vip#0"})}, f"rows: {TOO_MUCH}"),
    ("policies", {"narrowed": frozenset({"receive plain"})}, f"requests and queues: {TOO_LITTLE}"),
    ("policies", {"narrowed": frozenset({"get jobs plain#0"})}, f"rows: {TOO_LITTLE}"),
    ("policies", {"deeds": frozenset({"tick: sqs:PurgeQueue plain"})}, "deeds that a function may do"),
    ("fair", {"unfair": True}, "of the flood, before the quiet tenant's"),
    ("fair", {"loses": 100}, "lost"),
    ("throttled", {"never_buffers": True}, "buffered"),
    ("throttled", {"loses": 600}, "lost"),
    ("throttled", {"early": timedelta(milliseconds=1)}, "early"),
    ("cold-starts", {"starting": 3.1}, "p95"),
    ("cold-starts", {"answers": 503}, "not answered"),
    ("chain", {"chain_ends": 16}, "rounds"),
    ("flood", {"partitions": 1}, "partitions"),
    ("flood", {"late": timedelta(seconds=70)}, "handed over after the instant"),
    ("flood", {"loses": 999}, "lost"),
    ("schedule-off", {"loses_in_faults": True}, "lost"),
    ("ticks-stopped", {"loses_in_faults": True}, "lost"),
    ("table-denied", {"loses": 25}, "lost"),
    ("bill", {"uses": {"writes": 2.0}}, "write units a job"),
    ("bill", {"uses": {"reads": 1.6}}, "read units a job, less one a tick"),
    ("bill", {"uses": {"messages": 1.2}}, "messages a job"),
    ("bill", {"uses": {"requests": 2.0}}, "requests a job"),
    ("bill", {"uses": {"log_bytes": 1250.0}}, "log bytes a job"),
    ("bill", {"loses": 40}, "lost"),
    ("alarms", {"silent": frozenset({"InboundDeadLetters"})}, "never rang"),
    ("alarms", {"silent": frozenset({"InboundDeadLettersGrowing"})}, "never rang"),
    ("alarms", {"stuck": frozenset({"InboundDeadLetters"})}, "never fell silent"),
    ("partitions", {"never_raised": True}, "partitions that took no job"),
    ("partitions", {"never_lowered": True}, "jobs in partitions that had gone"),
    ("partitions", {"unguarded": True}, "lowered with jobs in them"),
    ("partitions", {"unguarded": True}, "lowerings refused for their jobs"),
    ("partitions", {"without_schedule": 3}, "lost"),
    ("partitions", {"loses": 40}, "lost"),
    *(("partitions", {"refuses": (number,)}, "deployments that failed") for number in (1, 2, 4)),
    ("partitions", {"twice": 40}, "came twice"),
    ("partitions", {"early": timedelta(milliseconds=1)}, "early"),
    *(("alarms-by-figure", {"silent": frozenset({name})}, "never rang") for name in BY_FIGURE),
    *(("alarms-by-figure", {"stuck": frozenset({name})}, "never fell silent") for name in BY_FIGURE),
    *(("alarms-of-faults", {"silent": frozenset({name})}, "never rang") for name in ON_FAULTS),
    ("alarms-of-faults", {"stuck": frozenset({"plain Lateness"})}, "never fell silent"),
]


def result_of(name, sandbox):
    trial = Trial(sandbox=sandbox, scale=Scale.QUICK, run="r", chance=random.Random(7))
    return judged(BY_NAME[name], BY_NAME[name].run(trial), is_local=sandbox.is_local)


@pytest.mark.parametrize("name", BY_NAME)
def test_a_sandbox_that_keeps_its_promises_passes(name):
    result = result_of(name, FakeSandbox())
    assert result.verdict is Verdict.PASSED, result.why


@pytest.mark.parametrize(("name", "broken", "figure"), BROKEN)
def test_a_broken_sandbox_is_told_by_the_figure_that_is_about_it(name, broken, figure):
    result = result_of(name, FakeSandbox(**broken))
    told = {measure.name for measure in result.measures if measure.holds is False}
    assert result.verdict is Verdict.FAILED
    assert figure in told
    assert figure in result.why


def test_whatever_is_set_otherwise_is_told_by_its_name_and_by_one_figure_alone():
    for name, broken, figure in (each for each in BROKEN if each[0] == "settings"):
        result = result_of(name, FakeSandbox(**broken))
        ((changed,),) = broken["set_otherwise"].values()
        assert [measure.name for measure in result.measures if measure.holds is False] == [figure]
        assert result.notes == [f"{figure}: {changed}"]


def test_an_account_that_lets_few_functions_run_at_once_is_not_held_to_cold_starts():
    with pytest.raises(NotJudged, match="lets 10 functions run at once"):
        result_of("cold-starts", FakeSandbox(most_at_once=10))


def test_where_nothing_can_be_deployed_partitions_are_not_judged():
    with pytest.raises(NotJudged, match="nothing was said to deploy with"):
        result_of("partitions", FakeSandbox(deploys=False))


def test_partitions_are_as_many_in_the_end_as_before():
    sandbox = FakeSandbox()
    result_of("partitions", sandbox)
    assert sandbox.partitions[MOVED] == PARTITIONS_OF_MOVED
    assert all(each.cancelled for each in sandbox.waiting[MOVED])


def test_every_check_has_a_sandbox_that_it_tells_of():
    assert {name for name, _, _ in BROKEN} == set(BY_NAME)


@pytest.mark.parametrize("name", ["schedule-off", "ticks-stopped", "table-denied", "level-gone", "throttled"])
def test_what_a_check_breaks_is_mended_before_it_waits_for_jobs(name):
    sandbox = FakeSandbox()
    result_of(name, sandbox)
    assert len(sandbox.mended) == 1
