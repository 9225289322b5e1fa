"""What workers note of a job, as a value and as a row."""

from datetime import timedelta

import pytest

from dueline.core import rows
from dueline.core.job import JobId, State
from dueline.core.status import OF_WORKERS, Outcome, outcome_row, read_outcome
from dueline.errors import InvalidJob
from tests.builders import NOW, a_job, an_id


def an_outcome(state=State.FAILED, **overrides):
    ended = None if state is State.RUNNING else NOW + timedelta(seconds=2)
    return Outcome(**({"state": state, "attempts": 3, "started": NOW, "ended": ended} | overrides))


@pytest.mark.parametrize("state", OF_WORKERS)
@pytest.mark.parametrize("error", [None, "", "TimeoutError"])
def test_outcome_is_read_as_it_was_written(state, error):
    outcome, job = an_outcome(state, error=error), a_job()
    row = outcome_row(job.id, outcome, expires=job.expires)
    assert read_outcome(row) == outcome
    assert row["ttl"] == rows.job_row(job)["ttl"]
    assert ("ended" in row, "error" in row) == (state is not State.RUNNING, error is not None)


def test_outcome_keys_sort_by_due_time():
    id = JobId.parse("emails.7.d.1795244700123.00000000-0000-4000-8000-000000000001")
    key = ("emails#outcome#7", "2026-11-21T07:05:00.123Z#00000000-0000-4000-8000-000000000001")
    assert rows.outcome_key(id) == key
    assert rows.key(outcome_row(id, an_outcome(), expires=NOW)) == key


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        *(
            ({"state": state}, f"an outcome is {state}: it must be one of")
            for state in State
            if state not in OF_WORKERS
        ),
        ({"attempts": 0}, "attempts is 0: it must be 1 or more"),
        ({"ended": None}, "ended is None of an outcome that is failed"),
        ({"state": State.RUNNING, "ended": NOW}, "of an outcome that is running"),
        ({"started": NOW.replace(tzinfo=None)}, "each must have a time zone"),
        ({"ended": NOW.replace(tzinfo=None)}, "each must have a time zone"),
    ],
)
def test_invalid_outcome_is_refused_with_the_reason(wrong, reason):
    with pytest.raises(InvalidJob, match=reason):
        an_outcome(**wrong)


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        ("x" * 200, "x" * 200),
        ("x" * 201, "x" * 200),
        ("no\nline\x7f\0", "no\\nline\\x7f\\x00"),
        ("ü€😀", "\\xfc\\u20ac\\U0001f600"),
        ("\ud800", "\\ud800"),
        ("ü" * 200, "\\xfc" * 50),
        ('it\'s "so"\\', 'it\'s "so"\\'),
    ],
)
def test_of_an_error_200_printable_characters_of_ascii_are_kept(error, kept):
    outcome = an_outcome(error=error)
    assert outcome.error == kept
    assert an_outcome(error=outcome.error) == outcome
    assert read_outcome(outcome_row(an_id(), outcome, expires=NOW)) == outcome


@pytest.mark.parametrize(
    "broken",
    [
        {"state": "scheduled"},
        {"state": "asleep"},
        {"state": 5},
        {"attempts": 0},
        {"attempts": "many"},
        {"attempts": []},
        {"started": "now"},
        {"started": "2026-11-21T07:05:00"},
        {"started": "0001-01-01T00:00:00+23:59"},
        {"ended": None},
        {"ttl": "soon"},
    ],
)
def test_row_that_cannot_be_read_says_why(broken):
    row = outcome_row(an_id(), an_outcome(), expires=NOW)
    with pytest.raises(InvalidJob, match=r"row \('emails#outcome#0', .* cannot be read"):
        read_outcome({**row, **broken})
