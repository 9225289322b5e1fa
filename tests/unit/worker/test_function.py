"""What a worker takes for a handler."""

from functools import partial

import pytest

import dueline


def send_later(job):
    yield


async def send_later_async(job):
    yield


class SendLater:
    def __call__(self, job):
        yield


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (None, "is None: it must be a function or a coroutine function"),
        (send_later, "a generator function, of which nothing would run"),
        (send_later_async, "a generator function, of which nothing would run"),
        (partial(send_later), "a generator function, of which nothing would run"),
        (SendLater(), "a generator function, of which nothing would run"),
    ],
)
def test_what_would_not_run_is_refused_where_it_is_given(call, says):
    with pytest.raises(ValueError, match=f"handler of queue 'emails' .*{says}"):
        dueline.Worker().job("emails")(call)
    with pytest.raises(ValueError, match=f"handler of queue 'emails' .*{says}"):
        dueline.Worker().schedule("emails", "digest", every=60)(call)
    with pytest.raises(ValueError, match=f"the handler .*{says}"):
        dueline.lambda_handler(once=True)(call)
