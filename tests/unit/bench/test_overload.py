"""A flood that the table does not take is buffered or tried again; it loses nothing, and makes nobody else late."""

import json

import pytest

from bench.overload import PART
from bench.overload.flood import CALM, DIRECT, HTTP, ITS_PARTITION, OTHER_QUEUE, OWN, TABLE_WRITES, Plan, flooded
from bench.overload.measure import targets

PLAN = Plan(jobs=3 * TABLE_WRITES, due=300.0, due_for=30.0)


@pytest.mark.parametrize(("by", "is_buffered"), [(HTTP, True), (DIRECT, False)])
def test_a_flood_is_neither_refused_nor_lost_and_makes_no_other_job_late(by, is_buffered):
    told = flooded(by, PLAN)
    assert (told["refused"], told["refused_of_others"], told["lost"], told["failed_ticks"]) == (0, 0, 0, 0)
    assert told["written"] + told["buffered"] == PLAN.jobs
    assert bool(told["buffered"]) is is_buffered
    assert all(told["late"][whose]["max"] < 2 for whose in (ITS_PARTITION, OTHER_QUEUE))


def test_what_a_flood_did_is_told_and_what_it_must_not_do_misses_a_target():
    late = {"jobs": 9, "on_time": 1.0, "p50": 0.5, "p99": 1.0, "max": 1.2}
    calm = {"late": {OWN: {}, ITS_PARTITION: late, OTHER_QUEUE: late}}
    flood = {"jobs": 9, "refused": 0, "buffered": 5, "written": 4, "refused_of_others": 0, "in_table_after": 90.0}
    flood |= {"failed_ticks": 0, "lost": 0, "late": {OWN: late, ITS_PARTITION: late, OTHER_QUEUE: late}}
    figures = {CALM: calm, HTTP: flood, DIRECT: flood}
    told = PART.markdown(json.loads(json.dumps(figures)))
    assert "| HTTP | 9 | 4 | 5 | 0 | 0 | 0 | 1.5 min |" in told
    assert f"| {OTHER_QUEUE}, {CALM} | 0.50 s | 1.00 s | 1.20 s | 100.00 % |" in told
    assert all(target.is_met for target in targets(figures))
    missed = [target.what for target in targets({**figures, HTTP: {**flood, "lost": 1}}) if not target.is_met]
    assert missed == ["flood: jobs that are lost"]
