"""How much memory a page takes whose payloads are small in their rows, and large when they are unpacked."""

import tracemalloc
from datetime import timedelta

import pytest

from dueline.core.job import MAX_PAYLOAD_BYTES
from tests.builders import NOW, a_job
from tests.system import System

JOBS = 450
# Half of what a function has. All payloads at once would be 115 MB of the 450 jobs, and of a full page of 1 MB, 900 MB.
MOST_BYTES = 100 * 1024 * 1024


@pytest.fixture
def system():
    system = System()
    for number in range(JOBS):
        system.put(a_job(payload="x" * MAX_PAYLOAD_BYTES, due=NOW + timedelta(seconds=60, milliseconds=number)))
    # What arrives is another process's to keep.
    system.queues["emails"].deliveries = _Forgetful()
    return system


class _Forgetful(list):
    def __iadd__(self, _):
        return self


@pytest.fixture
def peak():
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()


def test_tick_unpacks_payloads_in_their_turn(system, peak):
    assert system.tick().dispatched == JOBS
    assert peak() < MOST_BYTES


def test_overview_keeps_no_payloads(system, peak):
    assert system.overview().scheduled == JOBS
    assert peak() < MOST_BYTES


def test_list_keeps_the_payloads_of_a_page(system, peak):
    assert len(system.list_jobs(limit=100).jobs) == 4
    assert peak() < MOST_BYTES
