"""What the watch sees, and which mails that makes."""

from datetime import timedelta

import pytest

from dueline.config import metrics
from dueline.core import instant, rows
from dueline.core.job import Partition
from dueline.core.ports import BatchRead, Depth
from dueline.errors import QueueNotFound, Unavailable
from dueline.operations.watch import (
    KINDS,
    MOST_SUBJECT,
    Mail,
    Open,
    Sighting,
    State,
    after_mail,
    continued,
    look_at_dead_letters,
    look_at_partitions,
    look_at_shares,
    mails_of,
    text_of,
)
from dueline.testing import MemoryTable
from tests.builders import EMAILS, NOW, a_job

INVOICES = Partition(queue="invoices", number=0)
LATE = State("late", "emails")
OWNED = State("late", "emails", "dueline_emails_alarms")
MINUTES = [NOW + timedelta(minutes=minutes) for minutes in range(0, 300, 5)]


def a_table(*jobs, fence=NOW + timedelta(minutes=4), ticked=(EMAILS, INVOICES)):
    table = MemoryTable()
    for partition in ticked:
        table.acquire_lease(
            partition, owner="a", now=instant.text(NOW), lease=instant.text(NOW), fence=instant.text(fence)
        )
    table.write([rows.job_row(job) for job in jobs])
    return table


def look(table, *partitions):
    return look_at_partitions(partitions or [EMAILS, INVOICES], table=table, now=NOW)


# What it sees


def test_healthy_queue_is_no_state():
    seen = look(a_table(a_job(due=NOW - timedelta(seconds=59)), a_job(due=NOW + timedelta(hours=1))))
    assert (seen.states, seen.unknown) == ({}, frozenset())
    assert seen.figures == {metrics.WORST_LATENESS: 0.0, metrics.QUEUES_LATE: 0, metrics.MISSING_TICKS: 0}


def test_late_queue_has_its_lateness():
    seen = look(a_table(a_job(due=NOW - timedelta(seconds=90)), a_job(due=NOW - timedelta(seconds=70))))
    assert seen.states == {LATE: "its oldest unsent job is 90 s late"}
    assert seen.figures == {metrics.WORST_LATENESS: 90.0, metrics.QUEUES_LATE: 1, metrics.MISSING_TICKS: 0}


@pytest.mark.parametrize("kind", [rows.HANDLED, rows.CANCELLED])
def test_sent_and_cancelled_jobs_are_not_late(kind):
    old, late = a_job(due=NOW - timedelta(seconds=500)), a_job(due=NOW - timedelta(seconds=100))
    table = a_table(old, late)
    pk, sk = rows.job_key(old.id)
    table.write([{"pk": pk, "sk": f"{sk.removesuffix(rows.JOB)}{kind}", "at": instant.text(NOW)}])
    assert look(table).states == {LATE: "its oldest unsent job is 100 s late"}


def test_partitions_without_ticks_are_named():
    second = Partition(queue="emails", number=1)
    seen = look(a_table(fence=NOW - timedelta(seconds=1), ticked=[EMAILS, second]), EMAILS, second, INVOICES)
    assert seen.states == {
        State("missing_ticks", "emails"): "no tick reads partitions 0, 1",
        State("never_ticked", "invoices"): "no tick ever read partition 0",
    }
    assert seen.figures[metrics.MISSING_TICKS] == 2


class Unread(MemoryTable):
    """Leaves some keys unread, and no row of others can be read."""

    unread = frozenset[rows.Key]()
    gone: Partition | None = None

    def read(self, keys, *, consistent=True):
        answer = super().read(keys, consistent=consistent)
        return BatchRead(rows=answer.rows, unread=self.unread & set(keys))

    def page(self, partition, **request):
        if partition == self.gone:
            raise Unavailable("no answer")
        return super().page(partition, **request)


@pytest.mark.parametrize("what", ["state", "rows"])
def test_unread_partition_is_unknown(what):
    table = Unread()
    table.unread = frozenset({rows.state_key(EMAILS)} if what == "state" else ())
    table.gone = EMAILS
    seen = look(table)
    assert State("unknown", "emails") in seen.states
    assert State("missing_ticks", "emails") in seen.unknown
    assert State("never_ticked", "emails") not in seen.states
    # A figure that is not known is no zero.
    assert set(seen.figures.values()) == {None}


def test_dead_letters_are_counted():
    depths = {
        State("dead_letters", "emails"): lambda: Depth(waiting=2, in_flight=1, delayed=0),
        State("dead_letters", "invoices"): lambda: Depth(waiting=0, in_flight=0, delayed=0),
    }
    seen = look_at_dead_letters(depths)
    assert (seen.states, seen.figures) == ({State("dead_letters", "emails"): "3 messages"}, {metrics.DEAD_LETTERS: 3})


def test_unread_depth_is_unknown():
    def failing(error):
        def depth():
            raise error

        return depth

    emails, texts = State("dead_letters", "emails"), State("dead_letters", "texts")
    seen = look_at_dead_letters({emails: failing(Unavailable("no answer")), texts: failing(QueueNotFound("none yet"))})
    assert seen.unknown == {emails}
    assert list(seen.states) == [State("unknown", "dead letters of emails")]
    assert seen.figures == {metrics.DEAD_LETTERS: None}


def test_share_on_time_is_of_all_queues():
    seen = look_at_shares(lambda: {"emails": (998.0, 2.0), "invoices": (1000.0, 0.0)}, ["emails", "invoices"])
    assert seen.states == {State("not_on_time", "emails"): "99.8 % of its jobs of the last hour were on time"}
    assert seen.figures == {metrics.ON_TIME_SHARE: pytest.approx(99.9)}
    assert look_at_shares(dict, ["emails"]).figures == {metrics.ON_TIME_SHARE: None}


def test_unread_log_is_unknown():
    def failing():
        raise Unavailable("no answer")

    seen = look_at_shares(failing, ["emails"])
    assert (list(seen.states), seen.unknown) == ([State("unknown", "on time")], {State("not_on_time", "emails")})
    assert not seen.figures


# Its mails


def mailed(*sightings, opened=None):
    """Return the mails of runs of the watch, each five minutes, as states and whether they are over."""
    opened, result = opened or {}, []
    for now, sighting in zip(MINUTES, sightings, strict=False):
        opened = continued(opened, sighting, now=now)
        mails = mails_of(opened, sighting, now=now)
        for mail in mails:
            opened = after_mail(opened, mail)
        result.append([(*state, mail.is_over) for mail in mails for state in mail.figures])
    return result


def seeing(*states):
    return Sighting(states=dict.fromkeys(states, "so"))


NOTHING = Sighting()


def test_state_is_mailed_once_and_its_end_once():
    runs = [seeing(LATE)] * 3 + [NOTHING] * 2 + [seeing(LATE)]
    begun, over = [(*LATE, False)], [(*LATE, True)]
    assert mailed(*runs) == [begun, [], [], over, [], begun]


def test_ticket_ends_without_a_mail():
    dead = State("dead_letters", "emails")
    assert mailed(seeing(dead), NOTHING, seeing(dead)) == [[(*dead, False)], [], [(*dead, False)]]


def test_state_that_was_not_mailed_ends_silently():
    silent = State("missing_ticks", "emails")
    assert mailed(seeing(silent), NOTHING, seeing(silent), seeing(silent)) == [[], [], [], [(*silent, False)]]


def test_unknown_is_no_end():
    """What cannot be read is neither over nor new, and is mailed itself if it lasts."""
    blind = State("unknown", "emails")
    blinded = Sighting(states={blind: "no answer"}, unknown=frozenset({LATE}))
    runs = mailed(seeing(LATE), blinded, blinded, blinded, seeing(LATE), NOTHING)
    assert runs == [[(*LATE, False)], [], [], [(*blind, False)], [], [(*LATE, True)]]


def test_unknown_ticket_is_not_mailed_again():
    dead = State("dead_letters", "emails")
    assert mailed(seeing(dead), Sighting(unknown=frozenset({dead})), seeing(dead)) == [[(*dead, False)], [], []]


@pytest.mark.parametrize(("kind", "runs"), [("late", 1), ("missing_ticks", 2), ("unknown", 3), ("never_ticked", 25)])
def test_state_is_mailed_when_it_lasts(kind, runs):
    state = State(kind, "emails")
    result = mailed(*[seeing(state)] * 30)
    assert [number for number, mails in enumerate(result, start=1) if mails] == [runs]


def test_queues_of_a_kind_share_a_mail():
    invoices = State("late", "invoices")
    sighting = seeing(LATE, invoices).with_owners({"emails": OWNED.topic})
    mails = mails_of(continued({}, sighting, now=NOW), sighting, now=NOW)
    assert [(mail.topic, set(mail.figures)) for mail in mails] == [("", {LATE, invoices}), (OWNED.topic, {OWNED})]


def test_owners_unknown_states_stay_open():
    blinded = Sighting(unknown=frozenset({LATE})).with_owners({"emails": OWNED.topic})
    opened = dict.fromkeys((LATE, OWNED), Open(since=instant.text(NOW), is_mailed=True))
    assert continued(opened, blinded, now=NOW) == opened
    assert mails_of(opened, blinded, now=NOW) == []


def test_mail_has_queue_figure_and_link():
    mail = Mail(kind=KINDS["late"], topic="", is_over=False, figures={LATE: "its oldest unsent job is 90 s late"})
    subject, text = text_of(mail, deployment="shop", runbook="https://wiki/late-jobs.md")
    assert subject == "[page] shop: Jobs are late: emails"
    assert "emails: its oldest unsent job is 90 s late\n\nRunbook: https://wiki/late-jobs.md" in text
    many = {State("dead_letters", f"queue-{number}"): "1 messages" for number in range(100)}
    cut, _ = text_of(
        Mail(kind=KINDS["dead_letters"], topic="", is_over=False, figures=many), deployment="d", runbook=""
    )
    assert len(cut) == MOST_SUBJECT
    assert cut.startswith("[ticket] d: There are dead letters: queue-0, ")
