"""What AWS would answer, made beforehand where that is possible, so that whoever asks does not wait."""

import itertools
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Told = dict[str, Any]

# In the text of a message's body a quotation mark is escaped: this counts entries and nothing else.
_ENTRY = b'"Id"'
_LOW = re.compile(rb'":low": ?\{"S": ?"((?:[^"\\]|\\.)*)"')
_MOST = re.compile(rb'"MaxNumberOfMessages": ?(\d+)')
_PARAMETER = re.compile(rb'"Name": ?"([^"]+)"')
_MD5 = "9a0364b9e99bb480dd25e1f0284c8555"
_EMPTY_PAGE = b'{"Count":0,"Items":[],"ScannedCount":0}'


@dataclass(frozen=True, kw_only=True, slots=True)
class Stock:
    """What is answered out of: `pages` of rows by the sort key behind which each begins, one page for who asks with a
    limit, messages without their receipts, and parameters of SSM by name."""

    pages: Mapping[str, Told] = field(default_factory=dict)
    limited_page: Told = field(default_factory=dict)
    messages: list[Told] = field(default_factory=list)
    parameters: Mapping[str, str] = field(default_factory=dict)


class Answers:
    """Answers requests of DynamoDB, SQS and SSM by their target, such as `AmazonSQS.SendMessageBatch`."""

    def __init__(self, stock: Stock) -> None:
        self._pages = {low.encode(): _text(page) for low, page in stock.pages.items()}
        self._limited_page = _text(stock.limited_page)
        self._messages = itertools.cycle([_text(message)[:-1] for message in stock.messages] or [b"{"])
        self._parameters = stock.parameters
        self._receipts = itertools.count()
        self._sent = [_text({"Successful": [_sent(index) for index in range(count)]}) for count in range(11)]
        self._done = [_text({"Successful": [{"Id": str(i)} for i in range(count)]}) for count in range(11)]
        self._by_operation: dict[str, Callable[[bytes], bytes]] = {
            "SendMessageBatch": lambda body: self._sent[body.count(_ENTRY)],
            **dict.fromkeys(("DeleteMessageBatch", "ChangeMessageVisibilityBatch"), self._all_done),
            "ReceiveMessage": self._receive,
            "Query": self._query,
            "BatchWriteItem": lambda _: b'{"UnprocessedItems":{}}',
            "BatchGetItem": lambda _: b'{"Responses":{},"UnprocessedKeys":{}}',
            "UpdateItem": _update,
            "DeleteItem": lambda _: b"{}",
            "GetParameter": self._parameter,
            "GetParameters": self._several_parameters,
        }

    def to(self, target: str, body: bytes) -> bytes:
        """Return the answer's body. Raises KeyError for an operation that is not known."""
        return self._by_operation[target.partition(".")[2]](body)

    def _query(self, body: bytes) -> bytes:
        if b'"Limit"' in body:
            return self._limited_page
        asked = _LOW.search(body)
        # The least key above the one behind which a page begins is that key and a NUL.
        low = asked[1].removesuffix(b"\\u0000") if asked else b""
        return self._pages.get(low, _EMPTY_PAGE)

    def _receive(self, body: bytes) -> bytes:
        asked = _MOST.search(body)
        given = itertools.islice(zip(self._messages, self._receipts, strict=False), int(asked[1]) if asked else 1)
        told = (b'%s,"MessageId":"%036d","ReceiptHandle":"%0400d"}' % (start, n, n) for start, n in given)
        return b'{"Messages":[%s]}' % b",".join(told)

    def _parameter(self, body: bytes) -> bytes:
        asked = _PARAMETER.search(body)
        name = asked[1].decode() if asked else ""
        return _text({"Parameter": {"Name": name, "Value": self._parameters[name]}})

    def _all_done(self, body: bytes) -> bytes:
        return self._done[body.count(_ENTRY)]

    def _several_parameters(self, body: bytes) -> bytes:
        names = [name for name in json.loads(body)["Names"] if name in self._parameters]
        return _text({"Parameters": [{"Name": name, "Value": self._parameters[name]} for name in names]})


def _update(body: bytes) -> bytes:
    """Grant what an update sets, as if its condition held."""
    values = json.loads(body)["ExpressionAttributeValues"]
    return _text({"Attributes": {name.removeprefix(":"): value for name, value in values.items()}})


def _sent(index: int) -> Told:
    md5s = {"MD5OfMessageBody": _MD5, "MD5OfMessageAttributes": _MD5}
    return {"Id": str(index), "MessageId": f"00000000-0000-4000-8000-{index:012d}", **md5s}


def _text(told: Told) -> bytes:
    return json.dumps(told, separators=(",", ":")).encode()
