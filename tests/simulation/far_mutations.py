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
        name="the row of a far job is signed at any time",
        breaks=[LOST],
        edits=[
            Edit(
                file="core/table_writer.py",
                old="result=result, signed_before=signed_before)",
                new="result=result)",
            ),
            Edit(
                file="core/table_writer.py",
                old="self.table.add(row, signed_before=signed_before)",
                new="self.table.add(row)",
            ),
        ],
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
