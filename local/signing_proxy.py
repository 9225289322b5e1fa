"""A proxy before the HTTP API on loopback, which signs each request: so curl works without a signature.

Only a local run has one. On AWS every request is signed by its caller, and IAM decides.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import boto3
from starlette.requests import Request
from starlette.responses import Response

from dueline.aws.api_transport import ApiTransport, signer
from dueline.console.api_proxy import forward
from dueline.console.application import make_app
from dueline.console.routing import make_route
from dueline.console.server import listen, serve
from local.emulator import CREDENTIALS, REGION


@contextmanager
def signing_proxy(api: str, *, authority: Path | None = None, port: int = 0) -> Iterator[str]:
    """Run a proxy before the API at the URL `api` while the context is open; yield the proxy's own URL.

    `authority` is the file of what TLS trusts, `port` the proxy's, 0 any that is free.
    """
    keys = CREDENTIALS["aws_access_key_id"], CREDENTIALS["aws_secret_access_key"]
    sign = signer(lambda: boto3.Session(*keys, region_name=REGION))
    authorities = None if authority is None else str(authority)
    # Tests send many requests at once, to an emulator that has to start functions first.
    gateway = ApiTransport(api, sign=sign, lanes=100, read_seconds=60, authorities=authorities)

    def answer(request: Request, body: bytes) -> Response:
        return forward(request, request.scope["path"], body, upstream=gateway)

    every = make_route("/{path:path}", ["DELETE", "GET", "OPTIONS", "PATCH", "POST", "PUT"], answer)
    with serve(make_app([every]), listen(port)) as url:
        yield url
