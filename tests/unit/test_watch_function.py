"""The watch's function: what it reports, mails and guards, whatever of it fails."""

import json
from datetime import timedelta
from types import SimpleNamespace

import pytest

from dueline.config.environment import WatchSettings
from dueline.config.registry import Registry
from dueline.core import instant
from dueline.core.ports import Depth
from dueline.core.rows import WatchNote
from dueline.errors import NotYet, Unavailable
from dueline.operations.watch import KINDS, Condition, Mail
from tests.api_harness import CONTEXT, import_function
from tests.builders import EMAILS, NOW, a_queue
from tests.unit.test_ttl_guard import INVOICES, World
from tests.wire import failing

SETTINGS = WatchSettings(
    deployment="d",
    queue_urls="http://localhost/",
    tick_period=60,
    topics="arn:aws:sns:eu-west-1:123456789012:",
    runbook_url="https://wiki/runbooks",
)
OWNER = "arn:aws:sns:eu-west-1:123456789012:theirs"


@pytest.fixture
def watch(monkeypatch):
    """The function, read as on Lambda, with a queue and no network; what it sees, and what it would mail of that."""
    registry = Registry({"emails": a_queue()}, owners={"emails": "d_emails_alarms"})
    module, world = import_function(monkeypatch, "watch", SETTINGS, registry), World()
    viewed = SimpleNamespace(
        module=module, world=world, depths={}, notes={"schedules": WatchNote(at=NOW, count=0)}, mailed=[]
    )
    viewed.faults, viewed.on_time, viewed.ticked = [], dict, lambda: [EMAILS, INVOICES]

    def depth_of(name):
        return SimpleNamespace(depth=lambda: Depth(waiting=viewed.depths.get(name, 0), in_flight=0, delayed=0))

    deployment = SimpleNamespace(table=world.table, clock=world.clock, spread=map, queue=depth_of)
    deployment.dead_letter_queue = lambda queue: depth_of(f"{queue}_dlq")
    deployment.ticked_partitions, deployment.clients = lambda: viewed.ticked(), SimpleNamespace(of=lambda _: None)
    figures = SimpleNamespace(on_time=lambda *, start, end: viewed.on_time())
    notes = SimpleNamespace(
        read=lambda: viewed.notes, put=lambda watch, *, now, count: viewed.notes.update({watch: count})
    )
    mailer = SimpleNamespace(run=lambda sighting, *, now: [viewed.mailed.append(sighting), *viewed.faults][1:])
    monkeypatch.setattr(module, "Mailer", lambda **_: mailer)
    for name, each in {"DEPLOYMENT": deployment, "FIGURES": figures, "NOTES": notes, "TIME_TO_LIVE": world.ttl}.items():
        monkeypatch.setattr(module, name, each)
    for partition in (EMAILS, INVOICES, *module.PLANNER.all_partitions()):
        world.is_ticked(at=NOW + timedelta(minutes=4), partition=partition)
    return viewed


def run(watch, capsys):
    """Run it; return the line of figures, and the states that it saw."""
    watch.module.handler({}, CONTEXT)
    (line,) = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    return line, {*watch.mailed[-1].states}


def test_healthy_deployment_reports_zeros(watch, capsys):
    line, viewed = run(watch, capsys)
    assert viewed == set()
    reported = [metric["Name"] for metric in line.pop("_aws")["CloudWatchMetrics"][0]["Metrics"]]
    assert reported == ["WorstLateness", "QueuesLate", "MissingTicks", "DeadLetters"]
    assert line == {"deployment": "d", "TtlOff": 0, **dict.fromkeys(reported, 0)}
    assert watch.notes["ticks"] == 0


def test_states_are_mailed_to_owners_too(watch, capsys, caplog):
    watch.depths = {"emails_dlq": 3, "d-dispatch-dlq": 1}
    watch.on_time = lambda: {"emails": (9.0, 1.0)}
    line, viewed = run(watch, capsys)
    assert (line["DeadLetters"], line["OnTimeShare"]) == (4, 90.0)
    poor, dead = Condition("not_on_time", "emails"), Condition("dead_letters", "emails")
    owners = {each._replace(topic="d_emails_alarms") for each in (poor, dead)}
    assert viewed == {poor, dead, Condition("parked_jobs", "d-dispatch-dlq"), *owners}
    assert {(line.message, line.about) for line in caplog.records if hasattr(line, "about")} >= {tuple(dead)[:2]}


@pytest.mark.parametrize(
    ("note", "kinds"),
    [
        (None, {"schedules_unwatched"}),
        (WatchNote(at=NOW - timedelta(minutes=66), count=0), {"schedules_unwatched"}),
        (WatchNote(at=NOW - timedelta(minutes=64), count=0), set()),
        (WatchNote(at=NOW, count=2), {"schedules_stood_still"}),
    ],
)
def test_planners_watch_is_watched(watch, capsys, note, kinds):
    watch.notes = {"schedules": note} if note else {}
    assert {state.kind for state in run(watch, capsys)[1]} == kinds


@pytest.mark.parametrize("how", ["notes", "ttl"])
def test_what_cannot_be_seen_is_unknown(watch, capsys, monkeypatch, how):
    if how == "notes":
        monkeypatch.setattr(watch.module.NOTES, "read", failing(Unavailable("no answer")))
    else:
        is_on = iter([failing(Unavailable("no answer")), watch.world.ttl.is_on])
        monkeypatch.setattr(watch.world.ttl, "is_on", lambda: next(is_on)())
    assert {state.kind for state in run(watch, capsys)[1]} == {"unknown"}


def test_mail_that_failed_fails_the_watch_last(watch, capsys):
    watch.faults = [Unavailable("no topic")]
    watch.world.waits(since=timedelta(hours=7), partition=INVOICES)
    with pytest.raises(Unavailable, match="no topic"):
        watch.module.handler({}, CONTEXT)
    assert not watch.world.ttl.is_on()


@pytest.mark.parametrize(
    ("topic", "pages", "arn"),
    [
        ("", True, f"{SETTINGS.topics}d-alarms"),
        ("", False, f"{SETTINGS.topics}d-tickets"),
        ("d_emails_alarms", True, f"{SETTINGS.topics}d_emails_alarms"),
        (OWNER, True, OWNER),
    ],
)
def test_mail_goes_to_its_topic_with_a_link(watch, topic, pages, arn):
    kind = "late" if pages else "dead_letters"
    mail = Mail(kind=KINDS[kind], topic=topic, is_over=False, figures={Condition(kind, "emails", topic): "so"})
    assert watch.module._topic_of(mail) == arn
    assert "Runbook: https://wiki/runbooks/" in watch.module._text_of(mail)[1]


# Its guard of TTL


def test_removed_partition_is_guarded(watch, capsys, caplog):
    watch.world.waits(since=timedelta(hours=7), partition=INVOICES)
    assert run(watch, capsys)[1] == set()
    (line,) = [line for line in caplog.records if line.message == "ttl switched off"]
    due = instant.text(NOW - timedelta(hours=7))
    assert [(each["partition"], each["first_due"]) for each in line.partitions] == [("invoices#0", due)]
    line, viewed = run(watch, capsys)
    assert (line["TtlOff"], viewed & {Condition("ttl_off", "d-jobs")}) == (1, {Condition("ttl_off", "d-jobs")})


def test_unknown_schedules_fail_last(watch, capsys, caplog):
    watch.ticked = failing(Unavailable("no answer"))
    watch.world.waits(since=timedelta(hours=7))
    with pytest.raises(Unavailable, match="no answer"):
        watch.module.handler({}, CONTEXT)
    watch.world.clock.sleep(3600)
    watch.world.passes(watch.world.clock.now())
    with pytest.raises(Unavailable, match="no answer"):
        watch.module.handler({}, CONTEXT)
    assert "ttl is off" in {line.message for line in caplog.records}


def test_ttl_that_cannot_be_switched_off_rings(watch, monkeypatch, capsys, caplog):
    refused = NotYet("TimeToLive is active on a different AttributeName")
    monkeypatch.setattr(watch.world.ttl, "switch", failing(refused))
    watch.world.waits(since=timedelta(hours=7))
    line, viewed = run(watch, capsys)
    assert (line["TtlOff"], Condition("ttl_off", "d-jobs") in viewed) == (1, True)
    assert "ttl not switched" in {line.message for line in caplog.records}
