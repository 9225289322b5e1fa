"""Python reads this first in a function's process: each request to AWS then says which invocation makes it.

What a story counts as a cause (which invocation sent, which answer was never heard) is thus read from the requests
themselves. The header is not signed, and the code under test does not know of it.
"""

import json
import os
import sys
from functools import cache
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from typing import Any
from zlib import crc32

_HEADER = "x-told"
_put_request, _get_response = HTTPConnection.putrequest, HTTPConnection.getresponse
_numbers = count(1)
_unheard: list[int] = []


def code_of(folder: Path) -> int:
    """Return what tells the code in a folder from that of another release."""
    files = sorted(folder.rglob("*.py"))
    return crc32(repr([(str(file.relative_to(folder)), file.stat().st_size) for file in files]).encode())


@cache
def _own_code() -> int:
    return code_of(Path(sys.modules["dueline"].__path__[0]))


def _told(number: int) -> str:
    return json.dumps(
        {
            "function": os.environ["AWS_LAMBDA_FUNCTION_NAME"].rpartition("-")[2],
            "pid": os.getpid(),
            "turn": os.environ.get("_X_AMZN_TRACE_ID", "").partition(";")[0],
            "number": number,
            "unheard": _unheard,
            "code": _own_code(),
        }
    )


def _put_with_who_asks(self: Any, *words: Any, **options: Any) -> None:
    self.number = next(_numbers)
    _put_request(self, *words, **options)
    self.putheader(_HEADER, _told(self.number))


def _get_and_note_what_is_unheard(self: Any) -> Any:
    try:
        return _get_response(self)
    except Exception:
        _unheard.append(self.number)
        raise


if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
    HTTPConnection.putrequest = _put_with_who_asks  # type: ignore[method-assign]
    HTTPConnection.getresponse = _get_and_note_what_is_unheard  # type: ignore[method-assign, assignment]
