"""What must not be left out of what is far off: each is caught by clocks that are off, or requests that arrive late."""

from tests.simulation.mutation import EXACT, LOST, Edit, Mutation, kept, mutation

IN_FAR = [
    mutation(
        "what is due in half an hour is far",
        "core/partitions.py",
        "FAR = timedelta(minutes=60)",
        "FAR = timedelta(minutes=30)",
        LOST,
        EXACT,
    ),
    Mutation(
        name="whether a job is far is read before the write",
        breaks=[LOST],
        edits=[
            Edit(
                file="core/table_writer.py",
                old="_far(result.written.difference(have_rows), latest.now())",
                new="_far(result.written.difference(have_rows), latest.began)",
            ),
            Edit(
                file="core/table_writer.py",
                old="_far(result.written, latest.now())",
                new="_far(result.written, latest.began)",
            ),
        ],
    ),
    Mutation(
        name="whether a job is far is read from a clock that was set back",
        breaks=[LOST],
        edits=[
            Edit(
                file="core/clock.py",
                old="        return max(self._clock.now(), self.began + passed)\n",
                new="        return self._clock.now()\n",
            )
        ],
        # A tick that is ahead has passed the job, whose writer is behind and then set back.
        decided=kept(far="0=1 5=9 6=10 9=1 13=4 14=1 41=1"),
    ),
    Mutation(
        name="a fence is made after its request is signed",
        breaks=[LOST, EXACT],
        edits=[
            Edit(
                file="core/partitions.py",
                old="owner=self._owner, now=now, lease=lease, fence=fence)",
                new="owner=self._owner, now=now, lease=lease, fence=lambda: self._terms()[3])",
            ),
            Edit(
                file="testing/memory_table.py",
                old="        state = self._state(partition)\n        if state.fence <= fence and",
                new="        state, fence = self._state(partition), fence()\n        if state.fence <= fence and",
            ),
        ],
        # A request for the lease arrives 400 s late, of a clock that is 300 s ahead.
        decided=kept(far="0=1 5=15 10=1 16=1"),
    ),
    # The text keeps its place among instants, but is never later than a signature.
    mutation(
        "a fence is signed by a clock that was set back since",
        "core/partitions.py",
        "return started, instant.text(now), lease,",
        'return started, type("", (str,), {"__gt__": lambda *_: False})(instant.text(now)), lease,',
        LOST,
        EXACT,
    ),
    mutation(
        "a cancel of a far job is signed at any time",
        "core/cancel.py",
        ', "exact": True}, signed_before=latest)',
        ', "exact": True})',
        EXACT,
    ),
]
