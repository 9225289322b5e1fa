"""Python reads this first in a function's process: each request to AWS then says which invocation makes it.

Why a job came twice (which invocation sent it, which answer was never heard) is thus read from the requests themselves.
The header is not signed, and the code under test does not know of it.
"""

import json
import os
from http.client import HTTPConnection
from itertools import count
from typing import Any

_put_request, _get_response = HTTPConnection.putrequest, HTTPConnection.getresponse
_numbers = count(1)
_unheard: list[int] = []


def _put_with_sender(self: Any, *words: Any, **options: Any) -> None:
    _put_request(self, *words, **options)
    # A function's process may be a fork of one that is none yet.
    if function := os.environ.get("AWS_LAMBDA_FUNCTION_NAME"):
        self.number = next(_numbers)
        sender = {
            "function": function.rpartition("-")[2],
            "pid": os.getpid(),
            "invocation": os.environ.get("_X_AMZN_TRACE_ID", "").partition(";")[0],
            "number": self.number,
            "unheard": _unheard,
        }
        self.putheader("x-sender", json.dumps(sender))


def _get_and_note_unheard(self: Any) -> Any:
    try:
        return _get_response(self)
    except Exception:
        _unheard.append(getattr(self, "number", 0))
        raise


HTTPConnection.putrequest = _put_with_sender  # type: ignore[method-assign]
HTTPConnection.getresponse = _get_and_note_unheard  # type: ignore[method-assign]
