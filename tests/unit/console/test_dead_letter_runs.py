"""Looking at dead letters, putting them back and deleting them, as the page does."""

import pytest

from dueline.console import dead_letters
from dueline.errors import Forbidden
from dueline.model import instant
from dueline.model.message import Message
from tests.builders import NOW, a_job
from tests.unit.console.reached import Held, Place, a_letter
from tests.wire import failing, on

LOOK, REDRIVE, DELETE = (f"/console/queues/emails/dead-letters/{name}" for name in ("look", "redrive", "delete"))


def numbered(count, **given):
    return [a_letter(f"{number:04}", **given) for number in range(count)]


def counts(run):
    return {kind["error"]: kind["count"] for kind in run["result"]["kinds"]}


def test_a_look_counts_by_error_with_some_samples_and_leaves_all_as_it_was():
    place = Place(*numbered(12), *numbered(2, error="TypeError"))
    run = place.run("look", {})
    assert (run["state"], run["done"], run["of"], run["error"]) == ("done", 14, 14, None)
    assert counts(run) == {"KeyError": 12, "TypeError": 2}
    assert [len(kind["samples"]) for kind in run["result"]["kinds"]] == [3, 2]
    assert (run["result"]["found"], run["result"]["there"], len(place.left())) == (14, 14, 14)


def test_a_sample_tells_why_and_shows_the_beginning_of_the_payload():
    job = a_job(tenant="acme")
    told = Message.of(job).attributes | {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}
    place = Place(a_letter("x" * 3000, **told), Message(body="anyone's", attributes={"dueline-attempts": "9" * 99}))
    (own,), (other,) = (kind["samples"] for kind in place.run("look", {})["result"]["kinds"])
    assert own == {
        "id": str(job.id),
        "payload": "x" * 2000,
        "cut": True,
        "reason": f"why {'x' * 3000}",
        "attempts": 3,
        "sent": instant.text(NOW),
        "tenant": "acme",
        "trace": "a" * 32,
    }
    assert (other["id"], other["payload"], other["cut"], other["attempts"]) == (None, "anyone's", False, None)


def test_a_look_at_a_full_queue_ends_at_its_limit_and_tells_how_many_there_are(monkeypatch):
    monkeypatch.setattr(dead_letters, "LOOKED_AT", 100)
    place = Place(*numbered(300))
    result = place.run("look", {})["result"]
    assert result["there"] == 300
    assert 100 <= result["found"] < 200
    assert len(place.left()) == 300


def test_a_dry_redrive_changes_nothing_and_one_that_is_applied_moves_those_of_an_error():
    place = Place(*numbered(12), *numbered(2, error="TypeError"))
    asked = {"errors": ["TypeError"], "limit": None, "apply": False}
    dry = place.run("redrive", asked)["result"]
    assert (dry["applied"], dry["wanted"], dry["moved"], len(place.left())) == (False, 2, 0, 14)
    done = place.run("redrive", asked | {"apply": True})["result"]
    assert (done["applied"], done["wanted"], done["moved"], len(place.left())) == (True, 2, 2, 12)
    assert len(place.queue.deliveries) == 2
    assert place.run("redrive", {"errors": [], "apply": True})["result"]["moved"] == 12


def test_what_cannot_be_put_back_stays_with_the_reason():
    place = Place(a_letter(**{"dueline-priority": "3"}))
    result = place.run("redrive", {"apply": True})["result"]
    assert (result["moved"], result["failed"], len(place.left())) == (0, [], 1)
    assert result["stay"] == [{"reason": "the queue has no level 3: it has 1", "count": 1}]


def test_those_of_an_error_are_deleted_and_the_rest_is_visible():
    place = Place(*numbered(12), *numbered(2, error="TypeError"))
    result = place.run("delete", {"confirm": "emails", "errors": ["KeyError"]})["result"]
    assert (result["found"], result["wanted"], result["deleted"], result["failed"]) == (14, 12, 12, [])
    assert place.left() == ["0000", "0001"]
    assert place.queue.deliveries == []


@pytest.mark.parametrize(
    ("path", "body", "wrong"),
    [
        (DELETE, {}, "confirm is None: it must be the queue's name, 'emails'"),
        (DELETE, {"confirm": "email"}, "confirm is 'email'"),
        (DELETE, {"confirm": "emails", "error": ["KeyError"]}, "'error' is no field: there is confirm, errors"),
        (REDRIVE, {"errors": "KeyError", "apply": True}, "errors is 'KeyError': it must be a list"),
        (REDRIVE, {"errors": [""], "apply": True}, "errors is ['']"),
        (REDRIVE, {"apply": "no"}, "apply is 'no': it must be true or false"),
        (REDRIVE, {"limit": 0, "apply": True}, "limit is 0: it must be a whole number"),
        (REDRIVE, {"limit": True, "apply": True}, "limit is True"),
        (LOOK, {"limit": 100}, "'limit' is no field: there is none"),
    ],
)
def test_a_wrong_field_is_refused_before_anything_is_begun(path, body, wrong):
    place = Place(a_letter())
    status, problem = place.ask(path, body)
    assert (status, wrong in problem["detail"]) == (400, True)
    assert place.run("redrive", {"apply": True})["result"]["moved"] == 1


def test_a_queue_has_one_run_at_a_time():
    place = Place(a_letter())
    place.wire.around = held = Held("dead.receive")
    status, begun = place.ask(LOOK, {})
    assert held.is_met.wait(60)
    status, problem = place.ask(REDRIVE, {"apply": True})
    assert (status, problem["code"]) == (409, "busy")
    assert place.ask(f"/console/runs/{begun['run']}")[1]["state"] == "running"
    held.may_go.set()
    place.runs.find(begun["run"]).thread.join()
    assert place.run("redrive", {"apply": True})["result"]["moved"] == 1


def test_a_console_that_ends_shows_what_its_run_holds_again():
    place = Place(*numbered(500))
    place.wire.around = held = Held("dead.receive")
    _, begun = place.ask(REDRIVE, {"errors": ["TypeError"], "apply": True})
    run = place.runs.find(begun["run"])
    assert held.is_met.wait(60)
    place.runs.close(seconds=0)
    held.may_go.set()
    run.thread.join()
    assert (run.state, run.error["detail"], run.done < 500) == ("failed", "the console was ended", True)
    assert len(place.left()) == 500


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
def test_a_read_only_console_looks_and_does_nothing_else(path, body, status):
    place = Place(a_letter())
    assert place.ask(path, body, read_only=True)[0] == status


def test_a_run_that_fails_says_why():
    place = Place(a_letter())
    assert place.run("look", {}, queue="nothing")["error"]["status"] == 404
    place.wire.around = on("dead.receive", failing(Forbidden("receiving: AccessDenied")))
    run = place.run("look", {})
    assert (run["state"], run["result"], run["error"]["detail"]) == ("failed", None, "receiving: AccessDenied")
    place.wire.around = on("dead.receive", failing(ZeroDivisionError("secret")))
    assert place.run("look", {})["error"]["detail"] == "the console failed: ZeroDivisionError"


def test_old_runs_are_forgotten():
    place = Place()
    first = place.ask(LOOK, {})[1]["run"]
    assert place.ask(f"/console/runs/{first}")[0] == 200
    place.runs.find(first).thread.join()
    for _ in range(50):
        place.run("look", {})
    status, problem = place.ask(f"/console/runs/{first}")
    assert (status, problem["code"]) == (404, "run_not_found")
