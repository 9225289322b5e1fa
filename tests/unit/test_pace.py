"""Many jobs at once, against an API that takes as much as it is told to."""

import json
import threading
import uuid

import pytest

from dueline import Client, Job, NewJob, Patience, Unavailable, errors
from dueline.client.http_answer import HttpAnswer
from dueline.client.http_api import HttpApi
from dueline.memory import VirtualClock
from dueline.retry.calls import LANES
from dueline.retry.pace import FIRST_ITEMS, LEAST_ITEMS, SLOW_SECONDS, STEP_ITEMS, Pace
from tests.builders import NOW, an_id
from tests.gate import a_job_told, problem

MOST = 500
BUSY = problem(503, "unavailable", "busy")
THROTTLED = problem(429, "throttled", "slow down")


class FakeGateway:
    """An API that schedules a job a key, and answers a call as `answer` says of its keys: an error of all, or of some.

    A call that it refuses as a whole was carried out all the same: its answer is lost.
    """

    def __init__(self, answer=lambda _: None):
        self.calls = []
        self.jobs = {}
        self._answer = answer
        self._lock = threading.Lock()

    def send(self, method, path, body, *, headers):
        asked = json.loads(body)
        keys = [job["key"] for job in asked.get("jobs", [asked])]
        with self._lock:
            self.calls.append(keys)
            told = self._answer(keys)
            failed = told if isinstance(told, dict) and "status" not in told else {}
            for key in keys:
                if key not in failed:
                    self.jobs.setdefault(key, a_job_told(an_id(uid=str(uuid.uuid4()), due=NOW)))
        if told and not failed:
            return _reply(told["status"], told)
        jobs = [{"error": failed[key]} if key in failed else self.jobs[key] for key in keys]
        return _reply(200, {"jobs": jobs} if "jobs" in asked else jobs[0])


def _reply(status, content):
    return HttpAnswer(asked="POST", status=status, headers={}, body=json.dumps(content).encode())


def a_client(gateway, *, clock=None, **patience):
    clock = clock or VirtualClock(NOW)
    api = HttpApi(gateway, clock=clock, new_key=lambda: str(uuid.uuid4()))
    return Client(api, clock=clock, jitter=lambda: 0.5, patience=Patience(**patience))


def numbered(count):
    return (NewJob(payload=n, key=str(n), delay=7200) for n in range(count))


def assert_all_scheduled_once(results, gateway, count):
    assert [result.id for result in results] == [gateway.jobs[str(n)]["id"] for n in range(count)]
    assert len(gateway.jobs) == count


# Calls that are too large


@pytest.mark.parametrize("fits", [30, 70, 250])
def test_all_of_many_go_through_an_api_for_whose_time_a_full_call_is_too_much(fits):
    gateway = FakeGateway(lambda keys: BUSY if len(keys) > fits else None)
    assert_all_scheduled_once(a_client(gateway).schedule_many("emails", numbered(5000)), gateway, 5000)


def test_all_of_many_go_through_an_api_that_finishes_a_part_of_each_call():
    seen = set()

    def a_third(keys):
        new = [key for key in keys if key not in seen]
        seen.update(new[: 1 + len(new) // 3])
        return {key: BUSY for key in keys if key not in seen}

    gateway = FakeGateway(a_third)
    assert_all_scheduled_once(a_client(gateway).schedule_many("emails", numbered(3000)), gateway, 3000)


def test_a_call_that_was_too_large_is_asked_again_in_smaller_ones_with_the_same_keys():
    gateway = FakeGateway(lambda keys: BUSY if len(keys) > 40 else None)
    results = a_client(gateway).schedule_many("emails", numbered(100))
    assert_all_scheduled_once(results, gateway, 100)
    assert [len(keys) for keys in gateway.calls][:3] == [100, 50, 25]
    assert {key for keys in gateway.calls for key in keys} == {str(n) for n in range(100)}


def test_calls_grow_to_500_while_they_are_answered_in_good_time():
    gateway = FakeGateway()
    a_client(gateway).schedule_many("emails", numbered(20_000))
    assert max(map(len, gateway.calls)) == MOST
    assert len(gateway.calls) < 100


def test_what_is_slow_is_asked_for_less():
    clock = VirtualClock(NOW)
    gateway = FakeGateway(lambda keys: clock.sleep(len(keys) / 10))
    results = a_client(gateway, clock=clock).schedule_many("emails", numbered(5000))
    assert_all_scheduled_once(results, gateway, 5000)
    assert min(map(len, gateway.calls)) <= FIRST_ITEMS // 2


# Patience


def test_patience_is_renewed_by_progress():
    gateway = FakeGateway(lambda keys: dict.fromkeys(keys[1:], BUSY))
    assert_all_scheduled_once(a_client(gateway, attempts=2).schedule_many("emails", numbered(60)), gateway, 60)


def test_patience_that_is_over_ends_what_can_make_no_progress_and_each_job_has_its_error_and_key():
    gateway = FakeGateway(lambda _: BUSY)
    results = a_client(gateway, attempts=3).schedule_many("emails", numbered(80))
    assert [(type(each), each.key) for each in results] == [(Unavailable, str(n)) for n in range(80)]
    assert [len(keys) for keys in gateway.calls] == [80, 40, 20, 10, 10]


def test_what_was_not_tried_any_more_says_so():
    gateway = FakeGateway(lambda _: BUSY)
    clock = VirtualClock(NOW)
    results = a_client(gateway, clock=clock, attempts=1000, seconds=30).schedule_many("emails", numbered(5000))
    assert all(isinstance(each, Unavailable) for each in results)
    tried = {key for keys in gateway.calls for key in keys}
    assert {each.key for each in results if "not tried" in str(each)} == {str(n) for n in range(5000)} - tried
    # Once patience is over, a batch is asked for once.
    assert len(gateway.calls) < 500


def test_jobs_that_fail_to_the_end_do_not_hold_up_the_others():
    gateway = FakeGateway(lambda keys: {key: BUSY for key in keys if key.endswith("7")})
    results = a_client(gateway, attempts=3).schedule_many("emails", numbered(1000))
    assert {n for n, each in enumerate(results) if not isinstance(each, Job)} == set(range(7, 1000, 10))


def test_one_try_each_is_one_try_each():
    gateway = FakeGateway(lambda keys: {keys[0]: BUSY})
    results = a_client(gateway, attempts=1).schedule_many("emails", numbered(250))
    assert sorted(key for keys in gateway.calls for key in keys) == sorted(str(n) for n in range(250))
    assert sum(isinstance(each, Unavailable) for each in results) == len(gateway.calls)


def test_a_call_that_gets_smaller_has_patience_of_its_own():
    clock = VirtualClock(NOW)

    def out_of_time(keys):
        clock.sleep(29)
        return BUSY if len(keys) > LEAST_ITEMS else None

    gateway = FakeGateway(out_of_time)
    assert_all_scheduled_once(a_client(gateway, clock=clock).schedule_many("emails", numbered(100)), gateway, 100)


# Streams


def test_a_stream_of_jobs_is_taken_as_it_is_sent_and_few_are_held():
    taken = 0

    def jobs():
        nonlocal taken
        for job in numbered(20_000):
            taken += 1
            yield job

    held = []
    for told, result in enumerate(a_client(FakeGateway()).schedule_each("emails", jobs())):
        assert isinstance(result, Job)
        held.append(taken - told)
    assert len(held) == 20_000
    assert max(held) <= (2 * LANES + 2) * MOST


def test_a_stream_refuses_what_is_no_queue_before_it_takes_a_job():
    with pytest.raises(errors.QueueNotFound):
        a_client(FakeGateway()).schedule_each("no/queue", iter([]))


def test_whoever_leaves_a_stream_early_leaves_the_rest_unsent():
    gateway = FakeGateway()
    results = iter(a_client(gateway).schedule_each("emails", numbered(100_000)))
    assert isinstance(next(results), Job)
    del results
    assert len(gateway.jobs) < 20_000


# The pace itself


def noted(pace, *asked, finished=None, too_much=False, seconds=1.0):
    for count in asked:
        finished_of = count if finished is None else finished
        pace.note(count, finished=finished_of, too_much=too_much, begun=0.0, now=seconds)
    return pace.items


def test_a_pace_doubles_until_it_meets_its_limit_and_then_grows_by_steps():
    pace = Pace(most=MOST)
    assert pace.items == FIRST_ITEMS
    assert [noted(pace, pace.items) for _ in range(3)] == [200, 400, 500]
    assert noted(pace, 500, seconds=SLOW_SECONDS + 1) == 250
    assert [noted(pace, pace.items) for _ in range(2)] == [250 + STEP_ITEMS, 250 + 2 * STEP_ITEMS]


def test_calls_that_were_too_much_together_halve_a_pace_once():
    assert noted(Pace(most=MOST), *[100] * LANES, too_much=True, finished=0) == 50


def test_calls_that_were_answered_together_double_a_pace_once():
    assert noted(Pace(most=MOST), *[100] * LANES) == 200


def test_a_pace_has_a_least_and_a_most():
    pace = Pace(most=MOST)
    for _ in range(9):
        noted(pace, pace.items, too_much=True, finished=0)
    assert pace.items == LEAST_ITEMS
    assert Pace(most=1).items == 1
    assert noted(Pace(most=1), 1) == 1


def test_a_call_that_is_much_smaller_says_nothing_of_a_paces_size():
    assert noted(Pace(most=MOST), 3, too_much=True, finished=0) == FIRST_ITEMS
    assert noted(Pace(most=MOST), 3) == FIRST_ITEMS


def test_the_apis_throttle_counts_calls_and_makes_none_smaller():
    refusals = [THROTTLED] * 3
    gateway = FakeGateway(lambda _: refusals.pop() if refusals else None)
    a_client(gateway).schedule_many("emails", numbered(100))
    assert list(map(len, gateway.calls)) == [100] * 4
