"""The ids of an import: made of one token and a line's number."""

import uuid
from collections import Counter
from datetime import timedelta

import pytest

from dueline.cli.import_ids import ImportIds
from dueline.client.dated import Moment
from dueline.client.id_terms import IdTerms
from dueline.errors import InvalidJob
from dueline.model.job import Route
from tests.builders import NOW

NUMBER = uuid.UUID("5f0f3f5e-0000-4000-8000-000000000000")
SECOND = timedelta(seconds=1)
TERMS = IdTerms(partitions=8, direct_horizon=timedelta(seconds=890), moment=Moment(earliest=NOW, latest=NOW + SECOND))


def ids(*, at=None, delay=None):
    return ImportIds.begun(NUMBER, TERMS, at=at, delay=delay)


def test_a_token_tells_all_ids():
    begun = ids(delay=timedelta(hours=1))
    assert ImportIds.parse(str(begun)) == begun
    assert str(begun) == f"{NUMBER}.8.t.{int((NOW + SECOND).timestamp() * 1000) + 3_600_000}"


@pytest.mark.parametrize(
    ("asked", "due", "route"),
    [
        ({}, NOW, Route.DIRECT),
        ({"at": NOW - 9 * SECOND}, NOW, Route.DIRECT),
        ({"at": NOW + timedelta(seconds=889.9995)}, NOW + timedelta(seconds=890), Route.DIRECT),
        ({"delay": 890 * SECOND}, NOW + 891 * SECOND, Route.TABLE),
    ],
)
def test_all_lines_are_due_at_once_and_never_early_and_go_one_way(asked, due, route):
    begun = ids(**asked)
    assert {(each.due, each.route) for line in (1, 99, 12_345) for each in [begun.id("emails", line)]} == {(due, route)}


def test_a_hundred_lines_share_a_partition_and_thousands_have_them_all_alike():
    begun = ids()
    partitions = [begun.id("emails", line).partition.number for line in range(0, 80_000, 50)]
    assert partitions[0::2] == partitions[1::2]
    assert sorted(Counter(partitions)) == list(range(8))
    assert min(Counter(partitions).values()) > 140


def test_a_time_beyond_what_the_deployment_takes_is_refused_by_name():
    with pytest.raises(InvalidJob, match=r"^at is 20"):
        ids(at=NOW + timedelta(days=4000))
