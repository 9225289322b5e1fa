"""Runs over dead letters: look at them, put them back, delete them."""

import pytest

from dueline.console import dead_letter_runs
from dueline.core import instant
from dueline.core.message import ID, KEY, KIND, OFFLOADED_BYTES, PRIORITY, REASON, STACK, TENANT, Message
from dueline.core.ports import Pointer
from dueline.errors import Forbidden
from tests.builders import NOW, a_job
from tests.unit.console.memory_console import Held, MemoryConsole, a_dead_letter
from tests.wire import failing, losing_the_answer, on

LOOK, REDRIVE, DELETE = (f"/console/queues/emails/dead-letters/{name}" for name in ("look", "redrive", "delete"))


def numbered(count, **options):
    return [a_dead_letter(f"{number:04}", **options) for number in range(count)]


def counts(run):
    return {group["error"]: group["count"] for group in run["result"]["groups"]}


def a_group(error, kind=None):
    return {"error": error, "kind": kind}


KEY_ERROR, TYPE_ERROR = a_group("KeyError"), a_group("TypeError")


def dead_letters(console, run, query=""):
    """Return a page of the dead letters that a look read, and how many there are."""
    status, page = console.get(f"/console/runs/{run['run']}/dead-letters?{query}")
    assert status == 200
    return page["dead_letters"], page["count"]


def payloads(console, run, query=""):
    return [each["payload_text"] for each in dead_letters(console, run, query)[0]]


def test_look_counts_errors():
    console = MemoryConsole(*numbered(12), *numbered(2, error="TypeError"))
    run = console.run("look", {})
    assert (run["state"], run["done"], run["of"], run["error"]) == ("done", 14, 14, None)
    assert (counts(run), len(console.left())) == ({"KeyError": 12, "TypeError": 2}, 14)


def test_pages_of_a_look_show_each_dead_letter_once():
    console = MemoryConsole(*numbered(30), *numbered(15, error="TypeError"))
    run = console.run("look", {})
    pages = [dead_letters(console, run, f"from={start}") for start in (0, 20, 40, 60)]
    assert [(len(page), count) for page, count in pages] == [(20, 45), (20, 45), (5, 45), (0, 45)]
    assert len({each["message"] for page, _ in pages for each in page}) == 45
    (first, *_), count = dead_letters(console, run, "group=1")
    assert (first["error"], count) == ("TypeError", 15)
    counted = [dead_letters(console, run, query)[1] for query in ("group=0", "group=0&group=1")]
    assert counted == [30, 45]


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("group=2", "group is '2': it must be a whole number from 0 to 1"),
        ("group=0&group=-1", "group is '-1'"),
        ("group=zz", "group is 'zz'"),
        ("group=", "group is ''"),
        ("from=-1", "from is '-1': it must be a whole number from 0 to 9999"),
        ("from=99999999999999999999", "from is '99999999999999999999'"),
    ],
)
def test_wrong_place_in_a_look_is_refused(query, wrong):
    console = MemoryConsole(*numbered(2), *numbered(1, error="TypeError"))
    run = console.run("look", {})
    status, problem = console.get(f"/console/runs/{run['run']}/dead-letters?{query}")
    assert (status, wrong in problem["detail"]) == (400, True)


def test_run_without_groups_refuses_any():
    run = (console := MemoryConsole()).run("look", {})
    status, problem = console.get(f"/console/runs/{run['run']}/dead-letters?group=0")
    assert (status, problem["detail"]) == (400, "group is '0': it must be left out: this run has none")


def test_look_keeps_little_of_texts_beyond_its_bound(monkeypatch):
    """The last 40 of 60 dead letters come once the bound is reached: a few hundred characters of each are kept."""
    monkeypatch.setattr(dead_letter_runs, "_MOST_TEXT_BYTES", 2_000_000)
    long = {name: name[-1] * 50_000 for name in (REASON, STACK, KEY, TENANT, KIND, ID)}
    console = MemoryConsole(*numbered(60, error="e" * 50_000, **long))
    run = console.run("look", {})
    kept = [page for start in (0, 20, 40) for page in dead_letters(console, run, f"from={start}&group=0")[0]]
    sizes = [sum(len(value) for value in each.values() if isinstance(value, str)) for each in kept]
    assert (len(sizes), max(sizes) < 120_000, sum(size > 10_000 for size in sizes)) == (60, True, 20)
    assert sum(sizes) < 2_300_000
    assert {*kept[-1]["cut"]} == {"id", "reason", "stack", "key", "tenant"}


def test_look_finds_the_dead_letters_of_a_job():
    dead = a_dead_letter("mine")
    console = MemoryConsole(*numbered(12), dead, *numbered(12))
    run = console.run("look", {"ids": [dead.attributes[ID]]})
    assert (payloads(console, run), run["result"]["received"], len(console.left())) == (["mine"], 25, 25)


def test_dead_letter_has_its_reason_job_and_payload():
    job = a_job(tenant="acme", key="ann", kind="welcome")
    attributes = Message.of(job).attributes | {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01", STACK: "in send"}
    console = MemoryConsole(
        a_dead_letter("x" * 30_000, **attributes),
        Message(body="anyone's", attributes={"dueline-attempts": "9" * 99}),
        a_dead_letter(
            Pointer(bucket="b", key="7/emails/k").text, **Message.of(job).attributes, **{OFFLOADED_BYTES: "50"}
        ),
    )
    by_reason = {each["reason"]: each for each in dead_letters(console, console.run("look", {}))[0]}
    own, other = by_reason[f"why {'x' * 19_996}"], by_reason[None]
    assert own == {
        "id": str(job.id),
        "message": own["message"],
        "error": "KeyError",
        "kind": "welcome",
        "payload_text": "x" * 20_000,
        "cut": ["reason", "payload_text"],
        "reason": f"why {'x' * 19_996}",
        "attempts": 3,
        "stack": "in send",
        "sent": instant.text(NOW),
        "died": instant.text(NOW),
        "key": "ann",
        "tenant": "acme",
        "trace": "a" * 32,
    }
    assert (other["payload_text"], other["died"], other["id"], other["attempts"]) == ("anyone's", None, None, None)
    [offloaded] = [each for each in by_reason.values() if "payload_at" in each]
    assert offloaded["payload_at"] == {"bucket": "b", "key": "7/emails/k", "bytes": 50}


@pytest.mark.parametrize(("action", "counted"), [("redrive", "moved"), ("delete", "deleted")])
def test_chosen_dead_letters_alone_are_changed(action, counted):
    console = MemoryConsole(*numbered(30))
    chosen = dead_letters(console, console.run("look", {}))[0][3:6]
    messages = [each["message"] for each in chosen]
    more = {"apply": True} if action == "redrive" else {"confirm": "emails"}
    result = console.run(action, {"messages": [*messages, "gone"], **more})["result"]
    assert (result[counted], result["wanted"], result["missing"]) == (3, 3, 1)
    assert {each["payload_text"] for each in chosen}.isdisjoint(console.left())
    assert (len(console.left()), len(console.queue.deliveries)) == (27, 3 if action == "redrive" else 0)


def test_dead_letter_of_a_level_that_is_gone_stays_or_is_deleted():
    console = MemoryConsole(a_dead_letter(**{PRIORITY: "3"}))
    [dead_letter], _ = dead_letters(console, console.run("look", {}))
    chosen = {"messages": [dead_letter["message"]]}
    result = console.run("redrive", chosen | {"apply": True})["result"]
    assert (result["moved"], result["stay"]) == (0, [{"reason": "the queue has no level 3: it has 1", "count": 1}])
    assert console.run("delete", chosen | {"confirm": "emails"})["result"]["deleted"] == 1


@pytest.mark.parametrize(
    ("action", "body", "left"),
    [
        ("look", {}, 300),
        ("delete", {"confirm": "emails"}, 205),
        ("delete", {"confirm": "emails", "groups": [KEY_ERROR]}, 205),
    ],
)
def test_limit_of_received_messages_holds(monkeypatch, action, body, left):
    monkeypatch.setattr(dead_letter_runs, "MOST_RECEIVED", 95)
    console = MemoryConsole(*numbered(300))
    result = console.run(action, body)["result"]
    assert (result["received"], result.get("total", 300), len(console.left())) == (95, 300, left)


def test_dry_redrive_moves_nothing():
    console = MemoryConsole(*numbered(12), *numbered(2, error="TypeError"))
    body = {"groups": [TYPE_ERROR], "limit": None, "apply": False}
    dry = console.run("redrive", body)["result"]
    assert (dry["applied"], dry["wanted"], dry["moved"], len(console.left())) == (False, 2, 0, 14)
    done = console.run("redrive", body | {"apply": True})["result"]
    assert (done["applied"], done["wanted"], done["moved"], len(console.left())) == (True, 2, 2, 12)
    assert len(console.queue.deliveries) == 2
    assert console.run("redrive", {"groups": [], "apply": True})["result"]["moved"] == 12


@pytest.mark.parametrize("shown", ["KeyError", "moved by a consumer", "ReceivedTooOften"])
def test_runs_select_one_error_group(shown):
    """Groups are selected by the same key that shows them: an error, a reason without one, or neither."""
    moved = Message(body="moved", attributes={REASON: "moved by a consumer"})
    console = MemoryConsole(*numbered(2), moved, Message(body="neither", attributes={}))
    ticked = counts(console.run("look", {}))[shown]
    dry = console.run("redrive", {"groups": [a_group(shown)], "apply": False})["result"]
    assert (dry["wanted"], [group["error"] for group in dry["groups"]]) == (ticked, [shown])
    assert console.run("delete", {"confirm": "emails", "groups": [a_group(shown)]})["result"]["deleted"] == ticked
    assert shown not in counts(console.run("look", {}))
    assert len(console.left()) == 4 - ticked


def test_runs_select_an_error_with_its_kind_alone():
    """Each choice is of one error and one kind: two of them select no error of the other's kind."""
    welcome = {KIND: "welcome"}
    both = [*numbered(3, **welcome), *numbered(2, error="TypeError", **welcome)]
    console = MemoryConsole(*both, *numbered(1), *numbered(1, error="TypeError"))
    groups = console.run("look", {})["result"]["groups"]
    counted = [(each["error"], each["kind"], each["count"]) for each in groups]
    others = [("KeyError", None, 1), ("TypeError", None, 1)]
    assert counted == [("KeyError", "welcome", 3), ("TypeError", "welcome", 2), *others]
    chosen = [a_group("KeyError", "welcome"), TYPE_ERROR]
    assert console.run("delete", {"confirm": "emails", "groups": chosen})["result"]["deleted"] == 4
    assert len(console.left()) == 3


@pytest.mark.parametrize(
    ("path", "body", "wrong"),
    [
        (DELETE, {}, "confirm is None: it must be the queue's name, 'emails'"),
        (DELETE, {"confirm": "email"}, "confirm is 'email'"),
        (DELETE, {"confirm": "emails", "errors": []}, "'errors' is no field: there is confirm, groups, messages"),
        (REDRIVE, {"groups": "KeyError", "apply": True}, "groups is 'KeyError': it must be a list"),
        (REDRIVE, {"groups": [{"error": "", "kind": None}], "apply": True}, "groups is [{'error': ''"),
        (REDRIVE, {"groups": [{"error": "KeyError"}], "apply": True}, "groups is [{'error': 'KeyError'}]"),
        (REDRIVE, {"groups": [{"error": "KeyError", "kind": ""}], "apply": True}, "with null for no kind"),
        (REDRIVE, {"apply": "no"}, "apply is 'no': it must be true or false"),
        (REDRIVE, {"limit": 0, "apply": True}, "limit is 0: it must be a whole number"),
        (REDRIVE, {"limit": True, "apply": True}, "limit is True"),
        (LOOK, {"limit": 100}, "'limit' is no field: there is ids"),
        (LOOK, {"ids": "x"}, "ids is 'x': it must be a list of up to 10000 ids"),
        (DELETE, {"confirm": "emails", "messages": [""]}, "messages is ['']: it must be a list"),
    ],
)
def test_wrong_field_starts_no_run(path, body, wrong):
    console = MemoryConsole(a_dead_letter())
    status, problem = console.post(path, body)
    assert (status, wrong in problem["detail"]) == (400, True)
    assert console.run("redrive", {"apply": True})["result"]["moved"] == 1


def test_a_queue_has_one_run_at_a_time():
    console = MemoryConsole(a_dead_letter())
    console.wire.around = held = Held("dead.receive")
    status, started = console.post(LOOK, {})
    assert held.is_met.wait(60)
    status, problem = console.post(REDRIVE, {"apply": True})
    assert (status, problem["code"]) == (409, "busy")
    assert console.get(f"/console/runs/{started['run']}")[1]["state"] == "running"
    held.may_go.set()
    console.runs.find(started["run"]).thread.join()
    assert console.run("redrive", {"apply": True})["result"]["moved"] == 1


def test_closing_shows_messages_again():
    console = MemoryConsole(*numbered(500))
    console.wire.around = held = Held("dead.receive")
    _, started = console.post(REDRIVE, {"groups": [TYPE_ERROR], "apply": True})
    run = console.runs.find(started["run"])
    assert held.is_met.wait(60)
    console.runs.close(seconds=0)
    held.may_go.set()
    run.thread.join()
    assert (run.state, run.error["detail"], run.done < 500) == ("failed", "the console was ended", True)
    assert len(console.left()) == 500
    assert console.run("redrive", {"apply": True})["error"]["code"] == "console_ended"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        (LOOK, {}, 202),
        (REDRIVE, {"apply": False}, 202),
        (REDRIVE, {"apply": True}, 403),
        (REDRIVE, {}, 403),
        (DELETE, {"confirm": "emails"}, 403),
    ],
)
def test_read_only_console_deletes_nothing(path, body, status):
    console = MemoryConsole(a_dead_letter())
    assert console.post(path, body, read_only=True)[0] == status


@pytest.mark.parametrize(
    ("action", "body", "call", "counted"),
    [
        ("redrive", {"apply": True}, "queue.send", "moved"),
        ("delete", {"confirm": "emails"}, "dead.delete", "deleted"),
    ],
)
def test_failed_run_shows_what_it_had_done(action, body, call, counted):
    console = MemoryConsole(*numbered(300))
    console.wire.around = on(call, failing(Forbidden("AccessDenied")), skip=12)
    run = console.run(action, body)
    assert (run["state"], run["error"]["detail"], run["result"][counted]) == ("failed", "AccessDenied", 120)
    assert len(console.dead.deliveries) == 180


def test_run_reports_messages_of_a_lost_receive():
    console = MemoryConsole(*numbered(400))
    console.wire.around = on("dead.receive", losing_the_answer, times=2)
    result = console.run("redrive", {"apply": True})["result"]
    assert (result["moved"], result["not_received"]) == (380, 20)
    assert console.run("look", {})["result"]["not_received"] == 0


def test_failed_run_shows_no_secrets():
    console = MemoryConsole(a_dead_letter())
    assert console.run("look", {}, queue="nothing")["error"]["status"] == 404
    console.wire.around = on("dead.receive", failing(Forbidden("receiving: AccessDenied")))
    run = console.run("look", {})
    assert (run["state"], run["result"], run["error"]["detail"]) == ("failed", None, "receiving: AccessDenied")
    console.wire.around = on("dead.receive", failing(ZeroDivisionError("secret")))
    assert console.run("look", {})["error"]["detail"] == "the console failed: ZeroDivisionError"


def test_dead_letters_of_old_looks_are_forgotten():
    console = MemoryConsole(*numbered(3))
    first, *_, last = [console.run("look", {}) for _ in range(4)]
    assert dead_letters(console, last)[1] == 3
    assert console.get(f"/console/runs/{first['run']}/dead-letters")[0] == 404


def test_old_runs_are_forgotten():
    console = MemoryConsole()
    first = console.runs.start("emails", lambda _: {})
    first.thread.join()
    assert console.get(f"/console/runs/{first.id}")[0] == 200
    for _ in range(50):
        console.runs.start("emails", lambda _: {}).thread.join()
    status, problem = console.get(f"/console/runs/{first.id}")
    assert (status, problem["code"]) == (404, "run_not_found")
