"""The server: uvicorn in a thread, on 127.0.0.1 alone. It logs no request."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

_ADDRESS = "127.0.0.1"
_IDLE_SECONDS = 120
_CLOSING_SECONDS = 2
_BACKLOG = 128


def listen(port: int = 0) -> socket.socket:
    """Return a socket that listens at a port of 127.0.0.1, 0 for any free one. Raises OSError where it is taken."""
    return socket.create_server((_ADDRESS, port), backlog=_BACKLOG)


@contextmanager
def serve(app: ASGIApp, listener: socket.socket) -> Iterator[str]:
    """Serve an application while the context is open; yield its URL. The end of the context closes the listener."""
    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        loop="asyncio",
        lifespan="off",
        timeout_keep_alive=_IDLE_SECONDS,
        proxy_headers=False,
        server_header=False,
        # uvicorn would log requests and the text of errors.
        log_config=None,
        log_level="critical",
        access_log=False,
    )
    server, url = uvicorn.Server(config), f"http://{_ADDRESS}:{listener.getsockname()[1]}"
    # In a thread, uvicorn leaves signals alone: Ctrl-C is the command's own.
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.005)
    try:
        yield url
    finally:
        server.should_exit = True
        thread.join(_CLOSING_SECONDS)
