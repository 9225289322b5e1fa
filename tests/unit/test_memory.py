from dueline.testing import MemoryQueue, VirtualClock
from tests.builders import NOW, a_message


def test_lost_claim_neither_hides_nor_deletes():
    """As SQS does; its emulators do it for any receiver that had the message once."""
    queue = MemoryQueue(name="emails", clock=VirtualClock(NOW))
    queue.send([a_message(body="lost"), a_message(body="kept")])
    claims = {each.message.body: each.receipt for each in queue.receive(most=10, wait=0)}
    assert queue.hide([claims["lost"]], [0]) == []
    for refusals in (queue.hide([claims["lost"], claims["kept"]], [600, 600]), queue.delete([claims["lost"]])):
        assert [(each.index, each.final) for each in refusals] == [(0, True)]
    (again,) = queue.receive(most=10, wait=0)
    assert (again.message.body, again.receives) == ("lost", 2)
    assert queue.hide([claims["lost"]], [0])[0].final
