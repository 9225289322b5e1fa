"""Requests to the HTTP API, signed with AWS's Signature Version 4."""

from collections.abc import Generator

import httpx
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from local.emulator import CREDENTIALS, REGION


class Signed(httpx.Auth):
    """Signs each request, as IAM authorization on the API wants it."""

    requires_request_body = True

    def __init__(self, access_key: str = "", secret_key: str = "") -> None:
        key = access_key or CREDENTIALS["aws_access_key_id"]
        secret = secret_key or CREDENTIALS["aws_secret_access_key"]
        self._signer = SigV4Auth(Credentials(key, secret), "execute-api", REGION)

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        unsigned = AWSRequest(method=request.method, url=str(request.url), data=request.content)
        self._signer.add_auth(unsigned)
        request.headers.update(dict(unsigned.headers))
        yield request
