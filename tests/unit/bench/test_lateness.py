"""Who is early, late, lost or repeated, over records that are made up."""

import json

import pytest

from bench.lateness import record
from bench.lateness.books import Books, Run
from bench.lateness.dueline_run import Ours
from bench.lateness.figures import (
    CELERY,
    DYNEIN,
    FLOOR,
    FLOW,
    PLAIN,
    WORKER,
    figures_of,
    ratios,
    targets,
)
from bench.lateness.plan import EXACT, KILLED, LANES, MISSED, RUSH, STEADY, Load, Scheduled, Ticks, Wish, job_of
from bench.lateness.record import Landed
from bench.lateness.redis_server import found
from bench.lateness.report import markdown
from dueline.model.job import Route

BEGIN = 1_800_000_000
TICKS = Ticks(period=15, lookahead=60, missed=2, killed=4)


def a_wish(number=0, **overrides):
    return Wish(**({"number": number, "lane": "mails", "after": 10.0, "rush": False} | overrides))


def books_of(*landed, **overrides):
    """Return the books of three jobs, due 10, 20 and 30 s after 0, of which landed what is told."""
    came = [Landed(number=number, at=at) for number, at in landed]
    return Books(**({"dues": {1: 10.0, 2: 20.0, 3: 30.0}, "landed": came} | overrides))


def test_lateness_is_that_of_the_first_landing_and_every_other_is_a_repeat():
    books = books_of((1, 12.5), (2, 20.5), (1, 10.25), (3, 31.0), (1, 11.0))
    assert books.lateness() == {1: 0.25, 2: 0.5, 3: 1.0}
    assert books.repeated == 2
    assert (books.lost, books.early) == (set(), set())


def test_a_job_is_lost_unless_it_landed_or_was_taken_back():
    assert books_of((1, 10.5)).lost == {2, 3}
    assert books_of((1, 10.5), cancelled={2}, asked={3}).lost == set()
    assert books_of(cancelled={2}).lost == {1, 3}


def test_a_job_is_early_if_it_ever_landed_before_it_was_due():
    assert books_of((1, 10.0), (2, 20.1), (2, 19.999)).early == {2}


def test_a_job_that_landed_after_a_promised_cancel_breaks_it_and_after_another_does_not():
    books = books_of((1, 10.5), (2, 20.5), (3, 30.5), cancelled={1}, asked={2})
    assert books.broken == {1}
    assert books.told()["after a promised cancel"] == 1


def test_what_was_never_scheduled_is_not_counted():
    books = books_of((-1, 0.0), (-1, 0.5), (1, 10.5), (2, 20.5), (3, 30.5))
    assert (books.told()["landed"], books.repeated, books.early) == (3, 0, set())


def test_on_time_is_within_60_s_and_not_before_due():
    assert books_of((1, 70.0), (2, 80.1), (3, 29.9)).on_time_share == pytest.approx(1 / 3)
    assert books_of((1, 10.5), cancelled={2, 3}).on_time_share == 1


def test_what_is_told_has_the_percentiles_and_counts_only_what_must_land():
    told = books_of((1, 10.5), (3, 31.5), asked={2}).told()
    assert (told["jobs"], told["landed"]) == (2, 2)
    assert (told["p50"], told["p99"], told["max"], told["mean"]) == (0.5, 1.5, 1.5, 1.0)


def test_the_shape_goes_from_the_least_to_the_greatest():
    shape = books_of((1, 10.5), (2, 20.25), (3, 31.0)).shape()
    assert (shape[0], shape[100], shape[-1]) == (0.25, 0.5, 1.0)
    assert shape == sorted(shape)
    assert books_of().shape() == []


def test_windows_are_by_when_a_job_is_due():
    books = books_of((1, 10.5), (2, 20.25), (3, 31.0))
    assert books.over_time(begin=8.0) == [(2.5, 0.5), (12.5, 0.25), (22.5, 1.0)]


def test_what_a_tick_that_did_not_end_was_to_hand_over_is_told_apart():
    assert TICKS.handed_over_by(2) == (75, 90)
    assert TICKS.scenario(a_wish(after=75.0)) == STEADY
    assert TICKS.scenario(a_wish(after=75.001)) == TICKS.scenario(a_wish(after=90.0, lane=EXACT)) == MISSED
    assert TICKS.scenario(a_wish(after=110.0)) == KILLED
    assert TICKS.scenario(a_wish(after=110.0, lane="hooks")) == STEADY
    assert TICKS.scenario(a_wish(after=80.0, rush=True)) == RUSH


def test_without_a_missed_and_a_killed_tick_all_is_steady():
    calm = Ticks(period=15, lookahead=60, missed=-1, killed=-1)
    assert {calm.scenario(a_wish(after=float(after))) for after in range(100)} == {STEADY}


def test_a_load_is_the_same_each_time_and_evenly_in_all_lanes():
    load = Load(first=5, steady=10, rush=100)
    wishes = load.wishes()
    assert wishes == load.wishes()
    assert [wish.number for wish in wishes] == list(range(300))
    assert all(sum(wish.lane == lane for wish in wishes) == 75 for lane in LANES)
    assert all(5 <= wish.after <= 15 for wish in wishes if not wish.rush)
    assert {wish.after for wish in wishes if wish.rush} == {load.rush_at} == {18.0}


def test_a_job_goes_by_the_table_and_is_due_to_the_millisecond():
    scheduled = Scheduled(begin=BEGIN, wishes=(a_wish(7, after=12.345),))
    (wish,) = scheduled.wishes
    job = job_of(wish, scheduled)
    assert (job.id.route, job.payload, job.id.queue) == (Route.TABLE, "7", "mails")
    assert job.id.due.timestamp() == scheduled.dues[7] == BEGIN + 12.345


def test_a_record_is_read_as_it_was_written(tmp_path, monkeypatch):
    monkeypatch.setenv(record.PLACE, str(tmp_path / "record"))
    record.write([(1, BEGIN + 0.5), (2, BEGIN + 0.25)])
    record.write([(3, float(BEGIN))])
    assert [(each.number, each.at) for each in record.read(tmp_path / "record")] == [
        (1, BEGIN + 0.5),
        (2, BEGIN + 0.25),
        (3, float(BEGIN)),
    ]
    assert list(record.read(tmp_path / "none")) == []


def test_without_redis_the_error_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="apt-get install -y --no-install-recommends redis-server"):
        found()


def a_run(load, *, late, repeated=(), **of_books):
    scheduled = Scheduled(begin=BEGIN, wishes=tuple(load.wishes()))
    landed = [Landed(number=number, at=due + late) for number, due in scheduled.dues.items()]
    again = [Landed(number=number, at=scheduled.dues[number] + 1) for number in repeated]
    return Run(scheduled=scheduled, books=Books(dues=scheduled.dues, landed=landed + again, **of_books))


@pytest.fixture
def figures():
    load, short = Load(first=5, steady=115, rush=40), Load(first=5, steady=5, rush=40)
    by_a_kill, by_nothing = _one_of(load, KILLED), _one_of(load, STEADY)
    run = a_run(load, late=0.25, repeated=(by_a_kill, by_nothing))
    own = Ours(run=run, ingested=True, killed_at=60.5, cancels={"200": 3, "202": 1})
    others = {name: a_run(short, late=0.5) for name in (FLOOR, DYNEIN, CELERY)}
    return json.loads(json.dumps(figures_of(own, others, TICKS)))


def _one_of(load, scenario):
    return next(wish.number for wish in load.wishes() if TICKS.scenario(wish) == scenario)


def test_lanes_are_told_apart_by_who_consumes_them(figures):
    contenders = figures["contenders"]
    assert contenders[PLAIN][FLOW]["jobs"] == 3 * contenders[WORKER][FLOW]["jobs"] == 1725
    assert contenders[PLAIN][RUSH]["jobs"] == 30
    assert set(figures["scenarios"][PLAIN]) == {STEADY, MISSED, KILLED, RUSH}
    assert set(figures["scenarios"][WORKER]) == {STEADY, MISSED, RUSH}
    assert sum(told["jobs"] for told in figures["scenarios"][PLAIN].values()) == 1755


def test_ratios_are_of_the_same_consumer_under_the_same_flow(figures):
    assert list(ratios(figures).values()) == pytest.approx([2.0, 2.0])


def test_a_miss_is_told_with_what_sqs_takes_by_itself(figures):
    figures["contenders"][PLAIN][RUSH]["p99"] = 1.501
    missed = [target for target in targets(figures) if not target.is_met and target.unit == " s"]
    assert [target.what for target in missed] == ["lateness p99 to a plain SQS consumer, all at :00"]
    assert "without Dueline it is 0.5 s" in missed[0].why


def test_a_quick_run_has_no_sqs_alone_and_tells_its_targets_all_the_same(figures):
    del figures["contenders"][FLOOR]
    assert [target.got for target in targets(figures) if target.unit == " s"] == [0.25] * 4


def test_a_repeat_counts_against_us_unless_a_kill_explains_it(figures):
    got = {target.what: target for target in targets(figures)}
    assert got["repeats by a killed tick"].got == 1
    assert got["repeats that no kill explains"].got == 1
    assert not got["repeats that no kill explains"].is_met


def test_the_tables_name_every_contender_and_scenario(figures):
    told = markdown(figures)
    assert all(name in told for name in (PLAIN, WORKER, DYNEIN, CELERY, FLOOR, STEADY, MISSED, KILLED, RUSH))
    assert "3 were taken back with a promise (200), of which 0 came" in told
    assert "killed 60.5 s after" in told
    assert "## " not in told
