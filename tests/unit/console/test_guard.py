"""Who may ask the console: its own page, and nobody else."""

import json

import pytest

from tests.gate import told

PAUSE = "/api/queues/emails/pause"
WRITES = [("POST", PAUSE), ("PATCH", "/api/queues/emails/jobs/x"), ("PUT", "/api/queues/emails/rate")]


@pytest.mark.parametrize("path", ["/api/queues", "/console/about"])
def test_nobody_asks_anything_without_the_token_of_this_run(browser, gate, path):
    for token in (None, "", "wrong", browser.token[:-1], browser.token + "x", "tökén"):
        assert browser.ask("GET", path, x_dueline_console=token).refusal == (401, "wrong_token")
    assert gate.asked == []
    gate.script = [told({"queues": []})]
    assert browser.ask("GET", path).status == 200


def test_the_token_is_another_in_each_run_and_taken_from_the_header_alone(browse, gate):
    with browse() as first, browse() as second:
        assert first.token != second.token
        assert len(first.token) >= 43
        elsewhere = {"cookie": f"token={first.token}", "authorization": first.token, "x_dueline_console": None}
        assert first.ask("GET", f"/api/queues?token={first.token}", **elsewhere).status == 401
    assert gate.asked == []


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "", "http://127.0.0.1", "http://127.0.0.1:1", "https://{host}", "http://{host}/"],
)
def test_a_page_from_elsewhere_is_refused_though_it_had_the_token(browser, gate, origin):
    refused = browser.ask("POST", PAUSE, b"{}", origin=origin.format(host=browser.host))
    assert refused.refusal == (403, "wrong_origin")
    assert gate.asked == []


@pytest.mark.parametrize("site", ["cross-site", "same-site", ""])
def test_what_the_browser_itself_says_comes_from_another_site_is_refused(browser, gate, site):
    assert browser.ask("GET", "/api/queues", sec_fetch_site=site).refusal == (403, "wrong_origin")
    assert gate.asked == []


def test_the_page_itself_is_let_through_under_both_its_names(browser, gate):
    gate.script = [told({})] * 2
    for name in ("127.0.0.1", "localhost"):
        host = f"{name}:{browser.host.partition(':')[2]}"
        asked = {"host": host, "origin": f"http://{host}", "sec_fetch_site": "same-origin"}
        assert browser.ask("POST", PAUSE, b"{}", **asked).status == 200


@pytest.mark.parametrize("path", ["/", "/queues/emails", "/api/queues", "/console/about"])
@pytest.mark.parametrize(
    "host",
    [None, "", "evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.example:{port}"],
)
def test_a_name_that_was_rebound_to_this_machine_gets_nothing_not_even_the_page(browser, gate, path, host):
    given = host and host.format(port=browser.host.partition(":")[2])
    assert browser.ask("GET", path, host=given).refusal == (421, "wrong_host")
    assert gate.asked == []


@pytest.mark.parametrize(
    ("name", "ours", "other"),
    [
        ("host", "{host}", "evil.example"),
        ("origin", "http://{host}", "https://evil.example"),
        ("sec-fetch-site", "same-origin", "cross-site"),
    ],
)
def test_a_header_that_is_there_twice_is_none_of_its_values(browser, gate, name, ours, other):
    ours = ours.format(host=browser.host)
    for values in ((ours, other), (other, ours)):
        browser.connection.putrequest("GET", "/api/queues", skip_host=True)
        browser.connection.putheader("x-dueline-console", browser.token)
        if name != "host":
            browser.connection.putheader("host", browser.host)
        for value in values:
            browser.connection.putheader(name, value)
        browser.connection.endheaders()
        answer = browser.connection.getresponse()
        assert (answer.read() != b"", answer.status in (403, 421)) == (True, True)
    assert gate.asked == []


@pytest.mark.parametrize("method_and_path", WRITES)
@pytest.mark.parametrize(
    "content_type", [None, "", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
)
def test_a_forged_form_is_refused(browser, gate, method_and_path, content_type):
    method, path = method_and_path
    assert browser.ask(method, path, b"{}", content_type=content_type).refusal == (415, "no_json")
    assert gate.asked == []


def test_a_preflight_is_answered_with_no_leave_for_anyone(browser):
    asked = {"origin": "https://evil.example", "access_control_request_method": "POST", "x_dueline_console": None}
    refused = browser.ask("OPTIONS", PAUSE, **asked)
    assert refused.status == 403
    assert not [name for name in refused.headers if name.startswith("access-control")]


def test_a_read_only_console_refuses_whatever_changes_anything(browse, gate):
    with browse(read_only=True) as browser:
        for method, path in [*WRITES, ("DELETE", "/api/queues/emails/jobs/x"), ("POST", "/api/queues/emails/uploads")]:
            assert browser.ask(method, path, b"{}").refusal == (403, "read_only")
        assert gate.asked == []
        gate.script = [told({"queues": []}), told({"runs": []})]
        assert browser.ask("GET", "/api/queues").status == 200
        assert browser.ask("POST", "/api/schedules/preview", json.dumps({"cron": "@daily"}).encode()).status == 200
        assert browser.ask("GET", "/console/about").json["read_only"] is True
