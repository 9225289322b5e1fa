"""A proxy before the HTTP API on loopback, which signs each request: so curl works without a signature.

It serves the API's documentation as well, under /docs and /openapi.json, which the API itself does not have.
Only a local run has one. On AWS every request is signed by its caller, and IAM decides.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import boto3

from dueline.aws.gateway import Gateway, Signer, Ways
from dueline.console.forward import forward
from dueline.console.server import served
from dueline.console.web import Answer, Request
from local.docs_pages import page
from local.emulator import CREDENTIALS, REGION

# Tests ask for much at once, of an emulator that has to start functions first.
_LANES = 100
_READ_SECONDS = 60


@contextmanager
def signing_proxy(api: str, *, authority: Path | None = None) -> Iterator[str]:
    """Run a proxy before the API at the URL `api` while the context is open; yield the proxy's own URL.

    `authority` is the file of what TLS trusts.
    """
    keys = CREDENTIALS["aws_access_key_id"], CREDENTIALS["aws_secret_access_key"]
    signer = Signer(lambda: boto3.Session(*keys, region_name=REGION))
    authorities = None if authority is None else str(authority)
    gateway = Gateway(
        api, sign=signer.sign, ways=Ways(lanes=_LANES, read_seconds=_READ_SECONDS, authorities=authorities)
    )
    with served(lambda _: lambda request: _answer(request, gateway)) as url:
        yield url


def _answer(request: Request, gateway: Gateway) -> Answer:
    shown = page(request.target) if request.is_read else None
    if shown is None:
        return forward(request, request.path, way=gateway)
    return Answer(content=shown.content, headers={"content-type": shown.content_type})
