"""Runs over dead letters: look at them, put them back, delete them."""

from threading import Event

import pytest

from dueline.console import dead_letter_runs
from dueline.core import instant
from dueline.core.message import ID, KIND, OFFLOADED_BYTES, STACK, Message
from dueline.core.ports import Pointer
from dueline.errors import Forbidden
from tests.builders import NOW, a_job
from tests.unit.console.memory_console import MemoryConsole, a_dead_letter
from tests.waiting import HANG_SECONDS
from tests.wire import failing, meanwhile, on

LOOK, REDRIVE, DELETE = (f"/console/queues/emails/dead-letters/{name}" for name in ("look", "redrive", "delete"))


def numbered(count, **options):
    return [a_dead_letter(f"{number:04}", **options) for number in range(count)]


def a_group(error, kind=None):
    return {"error": error, "kind": kind}


def dead_letters(console, run, query=""):
    """Return a page of the dead letters that a look read, and how many there are."""
    status, page = console.get(f"/console/runs/{run['run']}/dead-letters?{query}")
    assert status == 200
    return page["dead_letters"], page["count"]


def hold_up(console):
    """Have the next requests for dead letters wait; return an event that says that one does, and one to go on."""
    waits, may_go = Event(), Event()
    console.wire.around = on("dead.receive", meanwhile(lambda: (waits.set(), may_go.wait(HANG_SECONDS))))
    return waits, may_go


def test_look_counts_errors_and_shows_each_dead_letter_once():
    console = MemoryConsole(*numbered(30), *numbered(15, error="TypeError"))
    run = console.run("look", {})
    assert (run["state"], run["done"], run["of"], run["error"]) == ("done", 45, 45, None)
    counts = {group["error"]: group["count"] for group in run["result"]["groups"]}
    assert (counts, len(console.left())) == ({"KeyError": 30, "TypeError": 15}, 45)
    pages = [dead_letters(console, run, f"from={start}") for start in (0, 20, 40, 60)]
    assert [(len(page), count) for page, count in pages] == [(20, 45), (20, 45), (5, 45), (0, 45)]
    assert len({each["message"] for page, _ in pages for each in page}) == 45
    (first, *_), count = dead_letters(console, run, "error=TypeError")
    assert (first["error"], count) == ("TypeError", 15)
    status, problem = console.get(f"/console/runs/{run['run']}/dead-letters?from=-1")
    assert (status, problem["detail"]) == (400, "from is '-1': it must be a whole number from 0 to 9999")


def test_look_finds_the_dead_letters_of_a_job():
    dead = a_dead_letter("mine")
    console = MemoryConsole(*numbered(12), dead, *numbered(12))
    run = console.run("look", {"ids": [dead.attributes[ID]]})
    [mine], _ = dead_letters(console, run)
    assert (mine["payload_text"], run["result"]["received"], len(console.left())) == ("mine", 25, 25)


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
    own, other = by_reason[f"why {'x' * 4_996}"], by_reason[None]
    assert own == {
        "id": str(job.id),
        "message": own["message"],
        "error": "KeyError",
        "kind": "welcome",
        "payload_text": "x" * 5_000,
        "cut": ["reason", "payload_text"],
        "reason": f"why {'x' * 4_996}",
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


@pytest.mark.parametrize("action", ["redrive", "delete"])
def test_chosen_dead_letters_alone_are_changed(action):
    console = MemoryConsole(*numbered(30))
    chosen = dead_letters(console, console.run("look", {}))[0][3:6]
    messages = [each["message"] for each in chosen]
    result = console.run(action, {"messages": [*messages, "gone"]})["result"]
    assert (result["changed"], result["missing"]) == (3, 1)
    assert {each["payload_text"] for each in chosen}.isdisjoint(console.left())
    assert (len(console.left()), len(console.queue.deliveries)) == (27, 3 if action == "redrive" else 0)


@pytest.mark.parametrize(("action", "left"), [("look", 300), ("delete", 205)])
def test_limit_of_received_messages_holds(monkeypatch, action, left):
    monkeypatch.setattr(dead_letter_runs, "MOST_RECEIVED", 95)
    console = MemoryConsole(*numbered(300))
    result = console.run(action, {})["result"]
    assert (result["received"], result.get("total", 300), len(console.left())) == (95, 300, left)


def test_runs_select_an_error_with_its_kind_alone():
    """Each choice is of one error and one kind: two of them select no error of the other's kind."""
    both = [*numbered(3, **{KIND: "welcome"}), *numbered(2, error="TypeError", **{KIND: "welcome"})]
    console = MemoryConsole(*both, *numbered(1), *numbered(1, error="TypeError"))
    chosen = [a_group("KeyError", "welcome"), a_group("TypeError")]
    assert console.run("delete", {"groups": chosen})["result"]["changed"] == 4
    assert len(console.left()) == 3


def test_a_queue_has_one_run_at_a_time():
    console = MemoryConsole(a_dead_letter())
    waits, may_go = hold_up(console)
    status, started = console.post(LOOK, {})
    assert waits.wait(HANG_SECONDS)
    status, problem = console.post(REDRIVE, {})
    assert (status, problem["code"]) == (409, "busy")
    assert console.get(f"/console/runs/{started['run']}")[1]["state"] == "running"
    may_go.set()
    console.runs.find(started["run"]).thread.join()
    assert console.run("redrive", {})["result"]["changed"] == 1


def test_closing_shows_messages_again():
    console = MemoryConsole(*numbered(500))
    waits, may_go = hold_up(console)
    _, started = console.post(REDRIVE, {"groups": [a_group("TypeError")]})
    run = console.runs.find(started["run"])
    assert waits.wait(HANG_SECONDS)
    console.runs.close(seconds=0)
    may_go.set()
    run.thread.join()
    assert (run.state, run.error["detail"], run.done < 500) == ("failed", "the console was ended", True)
    assert len(console.left()) == 500
    assert console.run("redrive", {})["error"]["code"] == "console_ended"


@pytest.mark.parametrize(("path", "body", "status"), [(LOOK, {}, 202), (REDRIVE, {}, 403), (DELETE, {}, 403)])
def test_read_only_console_deletes_nothing(path, body, status):
    console = MemoryConsole(a_dead_letter())
    assert console.post(path, body, read_only=True)[0] == status


@pytest.mark.parametrize(
    ("path", "body", "wrong"),
    [
        (DELETE, {"errors": ["KeyError"]}, "'errors' is no field: there is groups, messages"),
        (LOOK, {"ids": "x"}, "ids is 'x': it must be a list of 1 to 10000 ids"),
        (DELETE, {"messages": []}, "messages is []: it must be a list of 1"),
        (DELETE, {"messages": [""]}, "messages is ['']: it must be a list"),
        (REDRIVE, {"groups": [a_group("")]}, "groups is [{'error': ''"),
        (REDRIVE, {"groups": [{"error": "KeyError"}]}, "groups is [{'error': 'KeyError'}]: it must be a list of 1"),
        (REDRIVE, {"groups": [a_group("KeyError", "")]}, "groups as a look shows them"),
    ],
)
def test_wrong_field_starts_no_run(path, body, wrong):
    console = MemoryConsole(a_dead_letter())
    status, problem = console.post(path, body)
    assert (status, wrong in problem["detail"]) == (400, True)
    assert console.run("redrive", {})["result"]["changed"] == 1


@pytest.mark.parametrize(("action", "call"), [("redrive", "queue.send"), ("delete", "dead.delete")])
def test_failed_run_shows_what_it_had_done(action, call):
    console = MemoryConsole(*numbered(300))
    console.wire.around = on(call, failing(Forbidden("AccessDenied")), skip=12)
    run = console.run(action, {})
    assert (run["state"], run["error"]["detail"], run["result"]["changed"]) == ("failed", "AccessDenied", 120)
    assert len(console.dead.deliveries) == 180


def test_failed_run_shows_no_secrets():
    console = MemoryConsole(a_dead_letter())
    assert console.run("look", {}, queue="nothing")["error"]["status"] == 404
    console.wire.around = on("dead.receive", failing(Forbidden("receiving: AccessDenied")))
    run = console.run("look", {})
    assert (run["state"], run["result"], run["error"]["detail"]) == ("failed", None, "receiving: AccessDenied")
    console.wire.around = on("dead.receive", failing(ZeroDivisionError("secret")))
    assert console.run("look", {})["error"]["detail"] == "the console failed: ZeroDivisionError"


def test_old_runs_are_forgotten():
    console = MemoryConsole()
    first = console.runs.start("emails", lambda _: {})
    first.thread.join()
    assert console.get(f"/console/runs/{first.id}")[0] == 200
    for _ in range(4):
        console.runs.start("emails", lambda _: {}).thread.join()
    status, problem = console.get(f"/console/runs/{first.id}")
    assert (status, problem["code"]) == (404, "run_not_found")
