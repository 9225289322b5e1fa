"""How the console's server answers whatever comes, and what it logs."""

import http.client
import threading

import pytest
from starlette.responses import JSONResponse

from dueline.console.application import make_app
from dueline.console.routing import make_route, parse_object
from dueline.console.server import listen, serve
from tests.fake_api_server import json_reply
from tests.unit.console.conftest import read_answer
from tests.waiting import HANG_SECONDS

SECRET = "the-secret-of-a-payload"  # noqa: S105
JOBS = "/api/queues/emails/jobs"


@pytest.mark.parametrize("path", ["/", "/queues/emails", "/queues/emails/jobs?find=x", "/queues/a/schedules/b.c"])
def test_page_allows_no_foreign_content(browser, path):
    page = browser.send("GET", path, x_dueline_console=None, content_type=None, sec_fetch_site="cross-site")
    assert page.status == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.body.startswith(b"<!DOCTYPE html>")
    policy = page.headers["content-security-policy"].split("; ")
    assert {"default-src 'self'", "frame-ancestors 'none'"} <= set(policy)
    assert not [each for each in policy if "unsafe" in each or "*" in each]
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert page.headers["cache-control"] == "no-store"


NO_ROUTES = """
    /../guard.py /vendor/../index.html /..%2fserver.py /%2e%2e/server.py //index.html /app.js /page/index.html
    /server.py {folder}/index.html {folder}/../app.js {folder}//app.js {folder}/%61pp.js {folder}/ {folder}
    /queues/EMAILS /queues/emails/ /queues//emails http://127.0.0.1/ *
    //api/queues /api//queues /api/queues/ /api/queues/../queues /api/queues/emails/jobs/..
    /api/queues/emails/jobs/%2e%2e /api/queues/emails%2fjobs /api/queues/e%6dails
    /api/queues/emails;x/jobs /api/queues/emails\\jobs
    /api/%71ueues /API/queues /api /apiqueues /api@evil.example/queues /api/queues/emails/jobs/x/y /api/docs
"""


@pytest.mark.parametrize("path", NO_ROUTES.split())
def test_only_the_exact_path_reaches_a_file_or_the_api(browser, api_server, path):
    assert browser.send("GET", path.format(folder=browser.folder)).refusal == (404, "route_not_found")
    assert api_server.requests == []


def test_wrong_method_names_those_allowed(browser):
    refused = browser.send("PUT", JOBS, b"")
    assert refused.refusal == (405, "method_not_allowed")
    assert refused.headers["allow"] == "DELETE, GET, PATCH, POST"
    assert browser.send("POST", "/", b"{}").headers["allow"] == "GET"


def test_connection_survives_refused_bodies(browser, api_server):
    api_server.script = [json_reply({}), json_reply({})]
    assert browser.send("POST", "/api/queues/emails/pause", b"{}").status == 200
    used = browser.connection.sock
    assert browser.send("POST", "/api/queues/emails/pause", b"x" * 100_000, x_dueline_console="wrong").status == 401
    assert browser.send("POST", "/api/nothing", b"GET / HTTP/1.1\r\n\r\n").status == 404
    assert browser.send("GET", "/api/queues").status == 200
    assert browser.connection.sock is used


def test_body_over_6_mb_is_refused(browser, api_server):
    body = b"x" * (6 * 1024 * 1024 + 1)
    assert browser.send("POST", JOBS, body).refusal == (413, "payload_too_large")
    assert browser.send("POST", JOBS, body, connection="close").refusal == (413, "payload_too_large")
    assert api_server.requests == []


def test_chunked_body_is_refused_unread(browser, api_server):
    refused = browser.send("POST", JOBS, transfer_encoding="chunked")
    assert (refused.status, refused.headers["connection"], api_server.requests) == (411, "close", [])


# Of two readers of the last one, one would read a body, and the other a request (RFC 9112).
@pytest.mark.parametrize("line", [b"Content-Length: many", b"Content-Length: -1", b"Content-Length : 31"])
def test_malformed_request_is_not_forwarded(browser, api_server, line):
    request = f"POST {JOBS} HTTP/1.1\r\nHost: {browser.host}\r\nX-Dueline-Console: {browser.token}\r\n"
    with browser.raw() as connection:
        connection.sendall(request.encode() + b"Content-Type: application/json\r\n" + line + b"\r\n\r\n")
        response = http.client.HTTPResponse(connection)
        response.begin()
        answer = read_answer(response)
    assert (answer.status, answer.headers["connection"], api_server.requests) == (400, "close", [])


def test_a_request_waits_for_no_other(browser, api_server):
    came, go_on = threading.Event(), threading.Event()

    def api(request):
        if request.path == "/queues/slow":
            came.set()
            assert go_on.wait(HANG_SECONDS)
        return json_reply({"path": request.path})

    api_server.respond = api
    slow = threading.Thread(target=lambda: browser.send("GET", "/api/queues/slow"))
    slow.start()
    assert came.wait(HANG_SECONDS)
    other = http.client.HTTPConnection(browser.host, timeout=HANG_SECONDS)
    other.request("GET", "/api/queues/fast", headers={"x-dueline-console": browser.token})
    assert other.getresponse().read() == b'{"path": "/queues/fast"}'
    assert slow.is_alive()
    go_on.set()
    slow.join()
    other.close()


def test_unexpected_error_shows_no_payload(capfd):
    def fail(request, body):
        raise KeyError(SECRET)

    answer = sent_to(fail, SECRET, path=f"/x?find={SECRET}")
    assert (answer.status, answer.headers["content-type"]) == (500, "application/problem+json")
    assert answer.json["detail"] == "the console failed: KeyError"
    log = "".join(capfd.readouterr())
    assert "KeyError at" in log
    assert not [text for text in (answer.body.decode(), log) if SECRET in text or "Traceback" in text]


def test_no_request_is_logged(browser, api_server, capfd):
    api_server.script = [json_reply({"id": "1"}, 201)]
    browser.send("POST", f"{JOBS}?{SECRET}", SECRET.encode())
    browser.send("GET", f"/nothing/{SECRET}", x_dueline_console=None)
    with browser.raw() as connection:
        connection.sendall(SECRET.encode() + b"\r\n\r\n")
        connection.recv(100)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("body", "status"),
    [('{"a": 1}', 200), ("", 200), ("{", 400), ("[]", 400), ("5", 400), ("\xff", 400), ("[" * 100_000, 400)],
    ids=lambda value: str(value)[:9],
)
def test_console_call_needs_a_json_object(body, status):
    assert sent_to(lambda _, body: JSONResponse(parse_object(body)), body).status == status


def sent_to(handler, body, *, path="/x"):
    """Return the answer of a handler to a body, over HTTP."""
    with serve(make_app([make_route("/x", ["POST"], handler)]), listen()) as url:
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=HANG_SECONDS)
        connection.request("POST", path, body=body.encode("latin-1"))
        answer = read_answer(connection.getresponse())
        connection.close()
    return answer
