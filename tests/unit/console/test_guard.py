"""Who may send requests to the console: its own page, and nobody else."""

import asyncio

import httpx
import pytest
from starlette.applications import Starlette

from dueline.cli.connect import Target
from dueline.console.guard import Guard, new_token
from tests.fake_api_server import json_reply
from tests.unit.console.conftest import browsing

PAUSE = "/api/queues/emails/pause"
WRITES = [("POST", PAUSE), ("PATCH", "/api/queues/emails/jobs/x"), ("PUT", "/api/queues/emails/rate")]


@pytest.mark.parametrize("path", ["/api/queues", "/console/about"])
def test_a_call_needs_the_token_of_this_run(browser, api_server, path):
    for token in (None, "", "wrong", browser.token[:-1], browser.token + "x", "tökén"):
        assert browser.send("GET", path, x_dueline_console=token).refusal == (401, "wrong_token")
    assert api_server.requests == []
    api_server.script = [json_reply({"queues": []})]
    assert browser.send("GET", path).status == 200


def test_token_is_new_and_only_in_the_header(browser, api_server):
    with browsing(Target(url=api_server.url)) as other:
        assert other.token != browser.token
        assert len(other.token) >= 43
        elsewhere = {"cookie": f"token={other.token}", "authorization": other.token, "x_dueline_console": None}
        assert other.send("GET", f"/api/queues?token={other.token}", **elsewhere).status == 401
    assert api_server.requests == []


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "", "http://127.0.0.1", "http://127.0.0.1:1", "https://{host}", "http://{host}/"],
)
def test_another_origin_is_refused(browser, api_server, origin):
    refused = browser.send("POST", PAUSE, b"{}", origin=origin.format(host=browser.host))
    assert refused.refusal == (403, "wrong_origin")
    assert api_server.requests == []


@pytest.mark.parametrize("site", ["cross-site", "same-site", ""])
def test_another_sec_fetch_site_is_refused(browser, api_server, site):
    assert browser.send("GET", "/api/queues", sec_fetch_site=site).refusal == (403, "wrong_origin")
    assert api_server.requests == []


def test_both_names_of_loopback_are_allowed(browser, api_server):
    api_server.script = [json_reply({})] * 2
    for name in ("127.0.0.1", "localhost"):
        host = f"{name}:{browser.port}"
        headers = {"host": host, "origin": f"http://{host}", "sec_fetch_site": "same-origin"}
        assert browser.send("POST", PAUSE, b"{}", **headers).status == 200


@pytest.mark.parametrize(("port", "status"), [(80, 401), (81, 421)])
def test_browsers_leave_out_port_80(port, status):
    async def get():
        transport = httpx.ASGITransport(Guard(Starlette(), port=port, token=new_token()))
        async with httpx.AsyncClient(transport=transport) as client:
            return await client.get("http://localhost/api/queues")

    assert asyncio.run(get()).status_code == status


@pytest.mark.parametrize("path", ["/", "/queues/emails", "/api/queues", "/console/about"])
@pytest.mark.parametrize(
    "host", ["", "evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.example:{port}"]
)
def test_dns_rebinding_gets_nothing(browser, api_server, path, host):
    refused = browser.send("GET", path, host=host.format(port=browser.port))
    assert refused.refusal == (421, "wrong_host")
    assert api_server.requests == []


@pytest.mark.parametrize(
    ("name", "ours", "other"),
    [("origin", "http://{host}", "https://evil.example"), ("sec-fetch-site", "same-origin", "cross-site")],
)
def test_repeated_header_is_refused(browser, api_server, name, ours, other):
    ours = ours.format(host=browser.host)
    usual = [("host", browser.host), ("x-dueline-console", browser.token)]
    for values in ((ours, other), (other, ours)):
        sent = [*usual, *((name, value) for value in values)]
        assert browser.send_lines("GET", "/api/queues", None, sent).refusal == (403, "wrong_origin")
    assert api_server.requests == []


@pytest.mark.parametrize("hosts", [(), ("{host}", "evil.example"), ("evil.example", "{host}")])
def test_request_needs_exactly_one_host(browser, api_server, hosts):
    """HTTP itself forbids those (RFC 9112), so the server refuses them before the console sees them."""
    sent = [("x-dueline-console", browser.token), *(("host", each.format(host=browser.host)) for each in hosts)]
    refused = browser.send_lines("GET", "/api/queues", None, sent)
    assert (refused.status, refused.headers["connection"], api_server.requests) == (400, "close", [])


@pytest.mark.parametrize("method_and_path", WRITES)
@pytest.mark.parametrize(
    "content_type", [None, "", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
)
def test_a_forged_form_is_refused(browser, api_server, method_and_path, content_type):
    method, path = method_and_path
    assert browser.send(method, path, b"{}", content_type=content_type).refusal == (415, "no_json")
    assert api_server.requests == []


def test_cors_preflight_is_refused(browser):
    headers = {"origin": "https://evil.example", "access_control_request_method": "POST", "x_dueline_console": None}
    refused = browser.send("OPTIONS", PAUSE, **headers)
    assert refused.status == 403
    assert not [name for name in refused.headers if name.startswith("access-control")]


def test_a_read_only_console_refuses_every_change(api_server):
    with browsing(Target(url=api_server.url), read_only=True) as browser:
        for method, path in [*WRITES, ("DELETE", "/api/queues/emails/jobs/x"), ("POST", "/api/queues/emails/uploads")]:
            assert browser.send(method, path, b"{}").refusal == (403, "read_only")
        assert api_server.requests == []
        api_server.script = [json_reply({"queues": []})]
        assert browser.send("GET", "/api/queues").status == 200
        assert browser.send("GET", "/console/about").json["read_only"] is True
