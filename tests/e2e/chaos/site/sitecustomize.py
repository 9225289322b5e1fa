"""Python reads this first in a function's process: each request to AWS then says which invocation makes it.

The header is not signed, and the code under test does not know of it.
"""

import json
import os
from http.client import HTTPConnection
from typing import Any

_put_request = HTTPConnection.putrequest


def _put_with_sender(self: Any, *words: Any, **options: Any) -> None:
    _put_request(self, *words, **options)
    # A function's process may be a fork of one that is none yet.
    if function := os.environ.get("AWS_LAMBDA_FUNCTION_NAME"):
        sender = {
            "function": function.rpartition("-")[2],
            "pid": os.getpid(),
            "invocation": os.environ.get("_X_AMZN_TRACE_ID", "").partition(";")[0],
        }
        self.putheader("x-sender", json.dumps(sender))


HTTPConnection.putrequest = _put_with_sender  # type: ignore[method-assign]
