"""A server that answers like AWS, at once, in a process of its own: `python -m bench.cpu.answerer STOCK.json`."""

import asyncio
import json
import re
import sys
import time
import zlib
from dataclasses import asdict
from email.utils import formatdate
from pathlib import Path
from typing import cast

from bench.cpu.answers import Answers, Stock

# What is asked of the server itself: to note requests from now on, what it noted, and its own time on the processor.
RECORD, RECORDED, SECONDS = "Answerer.Record", "Answerer.Recorded", "Answerer.Seconds"
_TARGET = re.compile(rb"\r\nx-amz-target: *([^\r]+)", re.IGNORECASE)
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
# The headers of SQS and DynamoDB, as both send them.
_HEAD = (
    "HTTP/1.1 200 OK\r\nServer: Server\r\nDate: {date}\r\nContent-Type: application/x-amz-json-1.0\r\n"
    "Content-Length: {length}\r\nConnection: keep-alive\r\n"
    "x-amzn-RequestId: 4KBNVRGD25RG1KEO9UT4V3FQDJVV4KQNSO5AEMVJF66Q9ASUAAJG\r\nx-amz-crc32: {crc32}\r\n\r\n"
)


class Desk:
    """Answers requests, and notes them when it is told to."""

    def __init__(self, stock: Stock) -> None:
        self._answers = Answers(stock)
        self._noted: list[tuple[str, str]] | None = None

    def answer(self, target: str, body: bytes) -> bytes:
        if target == RECORD:
            self._noted = []
        elif target == RECORDED:
            noted, self._noted = self._noted, None
            return json.dumps(noted).encode()
        elif target == SECONDS:
            return json.dumps(time.process_time()).encode()
        else:
            if self._noted is not None:
                self._noted.append((target, body.decode()))
            return self._answers.to(target, body)
        return b"{}"


class _Connection(asyncio.Protocol):
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._left = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._left += data
        while (end := self._left.find(b"\r\n\r\n")) >= 0:
            head, begin = self._left[:end], end + 4
            length = _LENGTH.search(head)
            until = begin + (int(length[1]) if length else 0)
            if len(self._left) < until:
                return
            self._answer(head, self._left[begin:until])
            self._left = self._left[until:]

    def _answer(self, head: bytes, body: bytes) -> None:
        target = _TARGET.search(head)
        answer = self._desk.answer(target[1].decode() if target else "", body)
        told = _HEAD.format(date=formatdate(usegmt=True), length=len(answer), crc32=zlib.crc32(answer))
        self._transport.write(told.encode() + answer)


async def _serve(stock: Stock) -> None:
    desk = Desk(stock)
    server = await asyncio.get_running_loop().create_server(lambda: _Connection(desk), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201
    await server.serve_forever()


def written(stock: Stock) -> str:
    """Return a stock as a file for the server."""
    return json.dumps(asdict(stock))


if __name__ == "__main__":
    asyncio.run(_serve(Stock(**json.loads(Path(sys.argv[1]).read_text()))))
