"""What the watch sees, and which mails that makes."""

from datetime import timedelta

import pytest

from dueline.config import metrics
from dueline.core import instant, rows
from dueline.core.ports import Depth
from dueline.errors import QueueNotFound, Unavailable
from dueline.operations.watch import (
    KINDS,
    MOST_SUBJECT,
    Condition,
    Mail,
    Open,
    Sighting,
    after_mail,
    continued,
    look_at_dead_letters,
    look_at_partitions,
    look_at_shares,
    mails_of,
    text_of,
)
from tests.builders import EMAILS, NOW, due_in, emails
from tests.unit.test_ttl_guard import INVOICES, Unread, World
from tests.wire import failing

LATE = Condition("late", "emails")
OWNED = Condition("late", "emails", "dueline_emails_alarms")
MINUTES = [NOW + timedelta(minutes=minutes) for minutes in range(0, 300, 5)]


def a_table(*jobs, fence=NOW + timedelta(minutes=4), ticked=(EMAILS, INVOICES)):
    world = World()
    for partition in ticked:
        world.is_ticked(at=fence, partition=partition)
    world.table.write([rows.job_row(job) for job in jobs])
    return world.table


def look(table, *partitions):
    return look_at_partitions(partitions or [EMAILS, INVOICES], table=table, now=NOW)


# What it sees


def test_late_queue_has_its_lateness():
    jobs = [due_in(-90), due_in(-70), due_in(-70, partition=emails(1))]
    on_time = [due_in(-59, partition=INVOICES), due_in(3600, partition=INVOICES)]
    partitions = [EMAILS, emails(1), INVOICES]
    sighting = look(a_table(*jobs, *on_time, ticked=partitions), *partitions)
    assert (sighting.states, sighting.unknown) == ({LATE: "its oldest unsent job is 90 s late"}, frozenset())
    assert sighting.figures == {metrics.WORST_LATENESS: 90.0, metrics.QUEUES_LATE: 1, metrics.MISSING_TICKS: 0}


@pytest.mark.parametrize("kind", [rows.HANDLED, rows.CANCELLED])
def test_sent_and_cancelled_jobs_are_not_late(kind):
    old, late = due_in(-500), due_in(-100)
    table = a_table(old, late)
    pk, sk = rows.job_key(old.id)
    table.write([{"pk": pk, "sk": f"{sk.removesuffix(rows.JOB)}{kind}", "at": instant.text(NOW)}])
    assert look(table).states == {LATE: "its oldest unsent job is 100 s late"}


def test_partitions_without_ticks_are_named():
    ticked = [EMAILS, emails(1)]
    sighting = look(a_table(fence=NOW - timedelta(seconds=1), ticked=ticked), *ticked, INVOICES)
    assert sighting.states == {
        Condition("missing_ticks", "emails"): "no tick reads partitions 0, 1",
        Condition("never_ticked", "invoices"): "no tick ever read partition 0",
    }
    assert sighting.figures[metrics.MISSING_TICKS] == 2


@pytest.mark.parametrize("what", ["state", "rows", "all states"])
def test_unread_partition_is_unknown(what):
    table = Unread(*[EMAILS] if what == "state" else [], gone=EMAILS)
    if what == "all states":
        table.read = failing(Unavailable("no answer"))
    sighting = look(table)
    assert Condition("unknown", "emails") in sighting.states
    assert {Condition(kind, "emails") for kind in ("late", "missing_ticks", "never_ticked")} <= sighting.unknown
    assert Condition("never_ticked", "emails") not in sighting.states
    # A figure that is not known is no zero.
    assert set(sighting.figures.values()) == {None}


def test_dead_letters_are_counted():
    depths = {
        Condition("dead_letters", "emails"): lambda: Depth(waiting=2, in_flight=1, delayed=0),
        Condition("dead_letters", "invoices"): lambda: Depth(waiting=0, in_flight=0, delayed=0),
    }
    sighting = look_at_dead_letters(depths)
    assert (sighting.states, sighting.figures) == (
        {Condition("dead_letters", "emails"): "3 messages"},
        {metrics.DEAD_LETTERS: 3},
    )


def test_unread_depth_is_unknown():
    emails, texts = Condition("dead_letters", "emails"), Condition("dead_letters", "texts")
    sighting = look_at_dead_letters(
        {emails: failing(Unavailable("no answer")), texts: failing(QueueNotFound("none yet"))}
    )
    assert sighting.unknown == {emails}
    assert list(sighting.states) == [Condition("unknown", "dead letters of emails")]
    assert sighting.figures == {metrics.DEAD_LETTERS: None}


def test_share_on_time_is_of_all_queues():
    sighting = look_at_shares(lambda: {"emails": (998.0, 2.0), "invoices": (1000.0, 0.0)}, ["emails", "invoices"])
    assert sighting.states == {Condition("not_on_time", "emails"): "99.8 % of its jobs of the last hour were on time"}
    assert sighting.figures == {metrics.ON_TIME_SHARE: pytest.approx(99.9)}
    assert look_at_shares(dict, ["emails"]).figures == {metrics.ON_TIME_SHARE: None}


def test_unread_log_is_unknown():
    sighting = look_at_shares(failing(Unavailable("no answer")), ["emails"])
    assert (list(sighting.states), sighting.unknown) == (
        [Condition("unknown", "on time")],
        {Condition("not_on_time", "emails")},
    )
    assert not sighting.figures


# Its mails


def mailed(*sightings):
    """Return the mails of runs of the watch, each five minutes, as states and whether they are over."""
    opened, result = {}, []
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
    started, over = [(*LATE, False)], [(*LATE, True)]
    assert mailed(*runs) == [started, [], [], over, [], started]


def test_ticket_ends_without_a_mail():
    dead = Condition("dead_letters", "emails")
    assert mailed(seeing(dead), NOTHING, seeing(dead)) == [[(*dead, False)], [], [(*dead, False)]]


def test_state_that_was_not_mailed_ends_silently():
    silent = Condition("missing_ticks", "emails")
    assert mailed(seeing(silent), NOTHING, seeing(silent), seeing(silent)) == [[], [], [], [(*silent, False)]]


def test_unknown_is_no_end():
    """What cannot be read is neither over nor new, and is mailed itself if it lasts."""
    blind = Condition("unknown", "emails")
    blinded = Sighting(states={blind: "no answer"}, unknown=frozenset({LATE}))
    runs = mailed(seeing(LATE), blinded, blinded, blinded, seeing(LATE), NOTHING)
    assert runs == [[(*LATE, False)], [], [], [(*blind, False)], [], [(*LATE, True)]]


@pytest.mark.parametrize(("kind", "runs"), [("late", 1), ("missing_ticks", 2), ("unknown", 3), ("never_ticked", 25)])
def test_state_is_mailed_when_it_lasts(kind, runs):
    state = Condition(kind, "emails")
    result = mailed(*[seeing(state)] * 30)
    assert [number for number, mails in enumerate(result, start=1) if mails] == [runs]


def test_queues_of_a_kind_share_a_mail():
    invoices = Condition("late", "invoices")
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
    many = {Condition("dead_letters", f"queue-{number}"): "1 message" for number in range(100)}
    cut, _ = text_of(
        Mail(kind=KINDS["dead_letters"], topic="", is_over=False, figures=many), deployment="d", runbook=""
    )
    assert len(cut) == MOST_SUBJECT
    assert cut.startswith("[ticket] d: There are dead letters: queue-0, ")
