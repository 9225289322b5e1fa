"""The predecessor, this release, the predecessor again and this release again, over one table and its queues.

Here each reads in memory what the other wrote. `python -m tests.e2e.upgrade` deploys both, under traffic and kills.
"""

import json
import pickle
import subprocess
import sys
from collections import Counter
from datetime import timedelta

import pytest

from dueline.model.job import JobId
from dueline.model.pointer import Pointer
from local.template import ROOT
from tests.builders import NOW
from tests.predecessor import UnknownPredecessor, check_out, environment_of
from tests.unit.upgrade import leg

LEGS = 4
# What is due later than the lookahead of the leg that scheduled it.
CROSSING = {"by the table", "of low priority", "of a tenant", "traced", "compressed", "in S3", "under an id"}
CROSSING |= {"under a key"}


class Journey:
    """What all legs told, and what was left in the end."""

    def __init__(self, told, left):
        self.legs, self.left = told, left
        self.jobs = {job["id"]: job for each in told for job in each["jobs"].values()}
        self.cancelled, self.moved, self.again = (
            {old: new for each in told for old, new in each[name].items()} for name in ("cancelled", "moved", "again")
        )
        self.arrived = [
            message | {"level": level, "id": message["attributes"]["dueline-id"]}
            for level, name in enumerate((leg.QUEUE, f"{leg.QUEUE}_p2"), start=1)
            for message in left["queues"][name]
        ]

    def promised(self):
        """Return the jobs that must come, each with the one of which it has the payload."""
        new = {new: self.jobs[old] for old, new in self.moved.items()}
        return {id: job for id, job in self.jobs.items() if id not in self.cancelled | self.moved} | new


@pytest.fixture(scope="module")
def journey(tmp_path_factory):
    folder = tmp_path_factory.mktemp("upgrade")
    try:
        checkout = check_out(folder / "predecessor", "dueline", "tests")
    except UnknownPredecessor as unknown:
        pytest.skip(str(unknown))
    for number in range(LEGS):
        name, code = ("this release", ROOT) if number % 2 else ("the predecessor", checkout)
        command = [sys.executable, leg.__file__, str(number), str(LEGS), str(folder / "kept")]
        done = subprocess.run(command, env=environment_of(code), capture_output=True, text=True, check=False)
        assert not done.returncode, f"{name}, in leg {number}: {done.stderr}"
    return Journey(**pickle.loads((folder / "kept").read_bytes()))  # noqa: S301, our own


def test_what_one_release_accepted_comes_once_from_either_and_what_was_cancelled_or_moved_never(journey):
    jobs = Counter(each["id"] for each in journey.arrived if "dueline-schedule" not in each["attributes"])
    assert jobs == Counter(journey.promised().keys())


def test_it_comes_with_its_payload_at_its_level_and_never_early(journey):
    of = journey.promised()
    for each in (each for each in journey.arrived if each["id"] in of):
        body, job = each["body"], of[each["id"]]
        kept = "ExtendedPayloadSize" in each["attributes"]
        payload = journey.left["payloads"][Pointer.parse(body).key].decode() if kept else body
        assert (payload, each["level"]) == (job["payload"], job["priority"])
        assert each["visible"] >= JobId.parse(each["id"]).due


def test_neither_parks_nor_rejects_what_the_other_wrote(journey):
    left = journey.left["queues"]
    assert [left[name] for name in ("dead_letters", "rejects", "inbound")] == [[], [], []]


def test_a_cancel_is_promised_by_one_release_of_a_job_of_the_other(journey):
    assert len(journey.cancelled) == LEGS - 1
    assert set(journey.cancelled.values()) == {"cancelled"}


def test_a_key_of_one_release_is_known_to_the_other(journey):
    assert len(journey.again) == LEGS - 1
    assert all(id == again for id, again in journey.again.items())


def test_a_schedule_goes_on_from_release_to_release_and_is_changed_by_either(journey):
    runs = [each for each in journey.arrived if "dueline-schedule" in each["attributes"]]
    nominals = sorted((JobId.parse(each["id"]).due - NOW) // timedelta(minutes=1) for each in runs)
    assert nominals == list(range(nominals[0], nominals[0] + len(nominals)))
    assert nominals[-1] > (LEGS - 1) * leg.LEG_MINUTES
    assert {json.loads(each["body"])["leg"] for each in runs} == set(range(LEGS))


def test_each_hands_over_what_the_other_wrote(journey):
    sent = {each["id"]: (each["sent"] - NOW) // timedelta(minutes=leg.LEG_MINUTES) for each in journey.arrived}
    for number, each in enumerate(journey.legs[:-1]):
        assert {kind for kind in CROSSING if sent[each["jobs"][kind]["id"]] == number + 1} == CROSSING
