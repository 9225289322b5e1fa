"""Connections that stay open, and time out as those of boto3's clients do."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any
from urllib.parse import quote, urlsplit

from botocore import exceptions
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.httpsession import get_cert_path
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, Timeout
from urllib3 import exceptions as urllib3_exceptions
from urllib3.util.ssl_ import create_urllib3_context

# A host's name has none of these in a request.
_USUAL_PORTS = {"http": ":80", "https": ":443"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Sends requests to one URL; `host` and `path` are its parts, as a signature needs them."""

    host: str
    path: str
    pool: HTTPConnectionPool

    def send(self, request: AWSPreparedRequest) -> AWSResponse:
        """POST a request and read the answer. Raises what botocore raises where there is none."""
        body: Any = request.body
        with botocore_errors(request.url):
            raw = self.pool.urlopen(
                "POST",
                self.path,
                body=body,
                headers=dict(request.headers),
                retries=False,
                redirect=False,
                preload_content=False,
                decode_content=False,
            )
            headers: Any = raw.headers
            response = AWSResponse(request.url, raw.status, headers, raw)
            # Read here: what breaks meanwhile is to raise the same exceptions.
            _ = response.content
        return response


class Connections:
    """Connections to hosts, as many to each as there are `lanes`. Threads share them.

    `trusted` is a file of certificates, by default that of botocore.
    """

    def __init__(self, *, connect_seconds: float, read_seconds: float, lanes: int, trusted: str | None = None) -> None:
        timeout = Timeout(connect=connect_seconds, read=read_seconds)
        self._options: dict[str, Any] = {"maxsize": lanes, "timeout": timeout}
        self._trusted = trusted
        self._places: dict[str, Place] = {}
        # Else the lanes that come first make a place each.
        self._making = Lock()

    def to(self, url: str) -> Place:
        """Return where requests to a URL go, the same each time."""
        if url not in self._places:
            with self._making:
                self._places[url] = self._places.get(url) or self._place(url)
        return self._places[url]

    def _place(self, url: str) -> Place:
        parts = urlsplit(url)
        named = parts.netloc.lower().removesuffix(_USUAL_PORTS[parts.scheme])
        path = quote(parts.path or "/", safe="/~")
        return Place(host=named, path=path, pool=self._pool(parts.scheme, parts.hostname or "", parts.port))

    def _pool(self, scheme: str, host: str, port: int | None) -> HTTPConnectionPool:
        if scheme != "https":
            return HTTPConnectionPool(host, port, **self._options)
        return HTTPSConnectionPool(host, port, ssl_context=_trusting(self._trusted), **self._options)


# Reading the file takes longer than all else that a connection takes: 28 ms of CPU.
@cache
def _trusting(file: str | None) -> ssl.SSLContext:
    """Return a TLS context that trusts the certificate authorities in a file, by default botocore's own."""
    context = create_urllib3_context(cert_reqs=ssl.CERT_REQUIRED)
    verify: Any = file or True
    context.load_verify_locations(get_cert_path(verify))
    return context


@contextmanager
def botocore_errors(url: str) -> Iterator[None]:
    """Raise botocore's exceptions in place of urllib3's, as botocore's own session does."""
    try:
        yield
    except urllib3_exceptions.SSLError as error:
        raise exceptions.SSLError(endpoint_url=url, error=error) from error
    except (urllib3_exceptions.NewConnectionError, socket.gaierror) as error:
        raise exceptions.EndpointConnectionError(endpoint_url=url, error=error) from error
    except urllib3_exceptions.ConnectTimeoutError as error:
        raise exceptions.ConnectTimeoutError(endpoint_url=url, error=error) from error
    except urllib3_exceptions.ReadTimeoutError as error:
        raise exceptions.ReadTimeoutError(endpoint_url=url, error=error) from error
    except urllib3_exceptions.ProtocolError as error:
        raise exceptions.ConnectionClosedError(endpoint_url=url, error=error) from error
    except Exception as error:
        raise exceptions.HTTPClientError(error=error) from error
