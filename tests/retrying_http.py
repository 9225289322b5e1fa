"""HTTP requests that are repeated while a busy local AWS does not answer."""

import time

import httpx

from tests.waiting import HANG_SECONDS

_TRIES = 30


class RetryingTransport(httpx.HTTPTransport):
    """Repeats a request after 429 and 503, as callers must: a local AWS on a busy machine is slow."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        for _ in range(_TRIES):
            response = super().handle_request(request)
            if response.status_code not in (httpx.codes.TOO_MANY_REQUESTS, httpx.codes.SERVICE_UNAVAILABLE):
                break
            response.read()
            time.sleep(1)
        return response


def patient_http(api: str) -> httpx.Client:
    """Return a client of the API of a local run, which signs for its callers."""
    return httpx.Client(base_url=api, timeout=HANG_SECONDS, transport=RetryingTransport())
