"""Promises that hold though all are killed in mid-work who have a part in it; `python -m tests.e2e.kills` does more."""

import json
from pathlib import Path

import pytest

from dueline.aws.dynamodb import updates
from tests.e2e.faults.exchange import Exchange
from tests.e2e.faults.killing import TICK, step_of
from tests.e2e.faults.ordeal import Plan, endure
from tests.e2e.faults.processes import PROC, Process, Told
from tests.e2e.faults.stage import Play

PLAN = Plan(kills=9, jobs=80, seconds=4, spread=3, again_after=8, seed=3)


@pytest.mark.skipif(not PROC.exists(), reason="only Linux tells when a process is dead")
def test_kills_lose_no_job_bring_none_early_or_after_a_promised_cancel_or_move_and_none_twice_without_a_cause(
    play: Play, tmp_path: Path
) -> None:
    story = endure(PLAN, play, tmp_path)
    assert not story.complaints, story


@pytest.mark.parametrize(
    ("update", "step"),
    [
        (updates.TAKE, "take the lease"),
        (updates.RENEW, "checkpoint"),
        (updates.RELEASE, "checkpoint"),
        (updates.ASK, "ask what a move did"),
        (updates.MARK_EXACT, "note a promise"),
        (updates.MARK_DONE, "note that a key is done"),
        (updates.PLAN, "note what is planned"),
    ],
)
def test_each_update_is_a_step_of_its_own(update: updates.Update, step: str) -> None:
    asked = {"Key": {"sk": {"S": "#cancelled"}}, "UpdateExpression": update.expression}
    told = Told(process=Process(pid=0, function=TICK), turn="", number=0, unheard=frozenset())
    body = json.dumps(asked).encode()
    assert step_of(Exchange(operation="UpdateItem", body=body, told=told, carry=lambda _: pytest.fail("sent"))) == step
