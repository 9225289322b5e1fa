"""The untouched queue is held against what it is alone, and that can fail."""

from datetime import timedelta

import pytest

from dueline.model.job import Partition
from tests.builders import a_job
from tests.simulation.broken import Broken
from tests.simulation.choices import Choices
from tests.simulation.history import UNTOUCHED, History
from tests.simulation.record import Record, Sent
from tests.simulation.run import BACKLOG, compare

JOB = a_job(partition=Partition(queue=UNTOUCHED, number=0))


def a_record(*, late: float, ingested: float = 0.0) -> Record:
    visible = JOB.id.due + timedelta(seconds=late)
    sent = [Sent(id=JOB.id, queue=UNTOUCHED, visible=visible, by="a tick")]
    return Record(accepted={JOB.id: JOB}, submitted={JOB.id: 0.0}, acknowledged={JOB.id: ingested}, sent=sent)


def test_a_job_that_is_over_a_second_later_than_alone_breaks_isolation() -> None:
    with pytest.raises(Broken, match="isolation"):
        compare(a_record(late=1.1), a_record(late=0))


def test_a_job_that_is_as_late_as_alone_keeps_isolation() -> None:
    assert compare(a_record(late=61), a_record(late=60)) == 1


def test_nothing_is_promised_of_a_job_that_waited_long_for_its_ingest() -> None:
    assert compare(a_record(late=60, ingested=BACKLOG), a_record(late=0)) == 0


def test_histories_do_let_one_queue_untouched_and_hold_it_against_itself() -> None:
    compared = 0
    for seed in range(120):
        history = History(Choices(seed=seed))
        if history.climate.isolated:
            alone = History(Choices(seed=seed), alone=True)
            for each in (history, alone):
                each.write()
                each.world.run()
                each.world.calm_down()
            compared += compare(history.world.record, alone.world.record)
    assert compared >= 5
