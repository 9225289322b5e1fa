"""What a type checker sees of what is public: mypy checks this file, and nothing runs it.

The lazy names are declared for type checkers, who would otherwise take any name for an object. An error that is
expected and does not come is one, too.
"""

from collections.abc import Awaitable
from typing import assert_type

from dueline import AsyncClient, Client, Job, ReceivedJob, Worker
from dueline import Nothing as Nothing  # type: ignore[attr-defined]
from dueline.testing import Local, received_job
from dueline.worker.delivery import Event

_CLIENT = Client.connect()
assert_type(_CLIENT.schedule("emails", 1), Job)
assert_type(AsyncClient(_CLIENT).get("id"), Awaitable[Job])
AsyncClient(_CLIENT).get(5)  # type: ignore[arg-type]

assert_type(Local(["emails"]).run(Worker()), list[Event])
assert_type(received_job({"to": "ann"}), ReceivedJob)
Local(now=5)  # type: ignore[call-arg, arg-type]
