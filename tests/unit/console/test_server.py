"""How the console's server answers: whatever comes, in full, and as a problem where it fails."""

import http.client
import socket
import threading
from http import HTTPMethod

import pytest

from dueline.console.routes import Call, Route, Routes
from dueline.console.server import served
from dueline.console.web import Answer
from tests.gate import told
from tests.waiting import HANG_SECONDS

SECRET = "the-secret-of-a-payload"  # noqa: S105


@pytest.mark.parametrize("path", ["/", "/queues/emails", "/queues/emails/jobs?find=x", "/queues/a/schedules/b.c"])
def test_the_page_is_at_each_views_path_and_allows_no_script_and_no_frame_of_others(browser, path):
    page = browser.ask("GET", path, x_dueline_console=None, content_type=None, sec_fetch_site="cross-site")
    assert page.status == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.body.startswith(b"<!DOCTYPE html>")
    policy = page.headers["content-security-policy"].split("; ")
    assert {"default-src 'self'", "frame-ancestors 'none'"} <= set(policy)
    assert not [each for each in policy if "unsafe" in each or "*" in each]
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert page.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(("path", "kind"), [("/api.js", "text/javascript"), ("/vendor/uPlot.min.css", "text/css")])
def test_a_file_of_the_page_is_no_call_whatever_its_name_begins_with(browser, path, kind):
    file = browser.ask("GET", browser.place + path, x_dueline_console=None)
    assert (file.status, file.headers["content-type"]) == (200, f"{kind}; charset=utf-8")


def test_a_head_has_a_gets_headers_and_nothing_after_them(browser, gate):
    gate.script = [told({"queues": []})] * 2
    for path in ("/", "/api/queues"):
        got, head = browser.ask("GET", path), browser.ask("HEAD", path)
        assert (head.status, head.body) == (200, b"")
        assert head.headers["content-length"] == got.headers["content-length"] == str(len(got.body))
    assert [asked.method for asked in gate.asked] == ["GET", "GET"]
    host, port = browser.host.split(":")
    with socket.create_connection((host, int(port)), timeout=HANG_SECONDS) as connection:
        connection.sendall(f"HEAD / HTTP/1.1\r\nHost: {browser.host}\r\nConnection: close\r\n\r\n".encode())
        assert connection.makefile("rb").read().endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    "path",
    [
        "/../console.py",
        "/vendor/../index.html",
        "/..%2fserver.py",
        "/%2e%2e/server.py",
        "//index.html",
        "/index.html",
        "/app.js",
        "/api.js",
        "{place}/index.html",
        "{place}/../app.js",
        "{place}//app.js",
        "{place}/",
        "{place}",
        "/index.html/",
        "/page/index.html",
        "/server.py",
        "/queues/EMAILS",
        "/queues/emails/",
        "/queues//emails",
        "http://127.0.0.1/",
        "*",
    ],
)
def test_no_path_reaches_a_file_but_by_its_name(browser, path):
    assert browser.ask("GET", path.format(place=browser.place)).refusal == (404, "route_not_found")


def test_what_a_path_does_not_allow_is_told_with_what_it_does(browser):
    refused = browser.ask("DELETE", "/api/queues/emails/jobs", b"")
    assert refused.refusal == (405, "method_not_allowed")
    assert refused.headers["allow"] == "GET, POST"
    assert browser.ask("POST", "/", b"{}").headers["allow"] == "GET"


def test_one_connection_serves_many_requests_refused_ones_with_a_body_among_them(browser, gate):
    gate.script = [told({}), told({})]
    assert browser.ask("POST", "/api/queues/emails/pause", b"{}").status == 200
    used = browser.connection.sock
    assert browser.ask("POST", "/api/queues/emails/pause", b"x" * 100_000, x_dueline_console="wrong").status == 401
    assert browser.ask("POST", "/api/nothing", b"GET / HTTP/1.1\r\n\r\n").status == 404
    assert browser.ask("GET", "/api/queues").status == 200
    assert browser.connection.sock is used


def test_a_body_of_over_6_mb_is_refused_and_whoever_sent_it_told(browser, gate):
    body = b"x" * (6 * 1024 * 1024 + 1)
    assert browser.ask("POST", "/api/queues/emails/jobs", body).refusal == (413, "payload_too_large")
    assert gate.asked == []
    assert browser.ask("GET", "/").status == 200


@pytest.mark.parametrize("length", ["many", "-1", "1e3", "+5", "\u00b2", "9" * 30])
def test_a_length_that_is_none_is_refused(browser, gate, length):
    refused = browser.ask("POST", "/api/queues/emails/jobs", content_length=length)
    assert (refused.status, refused.headers["connection"], gate.asked) == (400, "close", [])


def test_a_body_that_is_cut_off_is_not_passed_on(browser, gate):
    host, port = browser.host.split(":")
    head = {"Host": browser.host, "X-Dueline-Console": browser.token, "Content-Type": "application/json"}
    lines = [f"{name}: {value}" for name, value in (head | {"Content-Length": "9"}).items()]
    with socket.create_connection((host, int(port)), timeout=HANG_SECONDS) as connection:
        connection.sendall("\r\n".join(["POST /api/queues/emails/jobs HTTP/1.1", *lines, "", "{}"]).encode())
        connection.shutdown(socket.SHUT_WR)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        assert (answer.status, gate.asked) == (400, [])


def test_a_body_in_chunks_is_refused_before_a_byte_of_it_is_taken_for_a_request(browser, gate):
    refused = browser.ask("POST", "/api/queues/emails/jobs", transfer_encoding="chunked")
    assert (refused.status, refused.headers["connection"]) == (411, "close")
    assert gate.asked == []


@pytest.mark.parametrize(
    ("line", "status"),
    [(b"GET / NONSENSE", 400), (b"TRACE / HTTP/1.1", 501), (b"GET /" + b"x" * 70_000 + b" HTTP/1.1", 414)],
)
def test_what_is_no_request_is_told_so(browser, line, status):
    host, port = browser.host.split(":")
    with socket.create_connection((host, int(port)), timeout=HANG_SECONDS) as connection:
        connection.sendall(line + b"\r\n\r\n")
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")


def test_a_request_waits_for_no_other(browser, browse, gate):
    asked, go_on = threading.Event(), threading.Event()

    def api(request):
        if request.path == "/queues/slow":
            asked.set()
            assert go_on.wait(HANG_SECONDS)
        return told({"path": request.path})

    gate.api = api
    slow = threading.Thread(target=lambda: browser.ask("GET", "/api/queues/slow"))
    slow.start()
    assert asked.wait(HANG_SECONDS)
    other = http.client.HTTPConnection(browser.host, timeout=HANG_SECONDS)
    other.request("GET", "/api/queues/fast", headers={"x-dueline-console": browser.token})
    assert other.getresponse().read() == b'{"path": "/queues/fast"}'
    assert slow.is_alive()
    go_on.set()
    slow.join()
    other.close()


def test_what_fails_within_is_told_without_a_traceback_and_logged_without_what_was_asked(capfd):
    def fail(_: Call) -> Answer:
        raise KeyError(SECRET)

    routes = Routes([Route(method=HTTPMethod.POST, form="/console/queues/{queue}/fail", answer=fail)])

    def answering(request):
        route, call = routes.find(request)
        return route.answer(call)

    with served(lambda _: answering) as url:
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=HANG_SECONDS)
        connection.request("POST", f"/console/queues/emails/fail?find={SECRET}", body=SECRET)
        answer = connection.getresponse()
        content = answer.read().decode()
        connection.close()
    assert (answer.status, answer.headers["content-type"]) == (500, "application/problem+json")
    assert "KeyError" in content
    told_of = "".join(capfd.readouterr())
    assert "KeyError at" in told_of
    assert not [text for text in (content, told_of) if SECRET in text or "Traceback" in text]


def test_nothing_is_logged_of_what_is_asked(browser, gate, capfd):
    gate.script = [told({"id": "1"}, 201)]
    browser.ask("POST", f"/api/queues/emails/jobs?{SECRET}", SECRET.encode())
    browser.ask("GET", f"/nothing/{SECRET}", x_dueline_console=None)
    assert capfd.readouterr() == ("", "")


NO_OBJECTS = ["{", "[]", "5", "\xff", pytest.param("[" * 100_000, id="deep")]


@pytest.mark.parametrize("body", ['{"a": 1}', ""])
def test_a_call_of_the_consoles_own_takes_a_json_object_and_reads_it_as_often_as_it_likes(body):
    def twice(call):
        assert call.json() == call.json()
        return Answer.json(call.json())

    assert asked_of_its_own(twice, body) == 200


@pytest.mark.parametrize("body", NO_OBJECTS)
def test_a_call_of_the_consoles_own_that_is_no_json_object_is_refused(body):
    assert asked_of_its_own(lambda call: Answer.json(call.json()), body) == 400


def asked_of_its_own(answer, body):
    """Return the status of a call with a body that is answered so."""
    routes = Routes([Route(method=HTTPMethod.POST, form="/console/x", answer=answer)])
    with served(lambda _: lambda request: (found := routes.find(request))[0].answer(found[1])) as url:
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=HANG_SECONDS)
        connection.request("POST", "/console/x", body=body.encode("latin-1"))
        status = connection.getresponse().status
        connection.close()
    return status
