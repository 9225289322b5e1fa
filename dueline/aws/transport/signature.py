"""Signature Version 4 of a request to one of AWS's JSON APIs: a POST with a body and without a query.

Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

import hmac
import time
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Protocol

# What a proxy may change, as botocore leaves it out.
_UNSIGNED = frozenset({"user-agent", "x-amzn-trace-id"})


class Credentials(Protocol):
    """Credentials as they are at one moment."""

    access_key: str
    secret_key: str
    token: str | None


def signed(
    headers: Mapping[str, str],
    *,
    body: bytes,
    host: str,
    path: str,
    credentials: Credentials,
    region: str,
    service: str,
    at: float,
) -> dict[str, str]:
    """Return these headers and those that sign the request; `at` is the time in seconds since 1970."""
    instant = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(at))
    token = {} if credentials.token is None else {"X-Amz-Security-Token": credentials.token}
    sent = {**headers, "X-Amz-Date": instant, **token}
    canonical = {name.lower(): value for name, value in sent.items() if name.lower() not in _UNSIGNED} | {"host": host}
    names = ";".join(sorted(canonical))
    lines = "".join(f"{name}:{' '.join(canonical[name].split())}\n" for name in sorted(canonical))
    asked = f"POST\n{path}\n\n{lines}\n{names}\n{sha256(body).hexdigest()}"
    scope = f"{instant[:8]}/{region}/{service}/aws4_request"
    to_sign = f"AWS4-HMAC-SHA256\n{instant}\n{scope}\n{sha256(asked.encode()).hexdigest()}"
    signature = _hmac(_key(credentials.secret_key, scope), to_sign).hex()
    credential = f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{scope}"
    return sent | {"Authorization": f"{credential}, SignedHeaders={names}, Signature={signature}"}


# A key is good for a day; those of two services are in use at a time, and of two days about midnight.
@lru_cache(maxsize=4)
def _key(secret: str, scope: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = _hmac(key, part)
    return key


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")
