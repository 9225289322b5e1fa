"""What must not be left out of what is far off: each is caught by clocks that are off, or requests that arrive late."""

from tests.simulation.mutation import EXACT, LOST, Edit, Mutation, in_file, kept, mutation

OF_FAR_JOBS = [
    *in_file(
        "core/partitions.py",
        mutation(
            "what is due in half an hour is far",
            [LOST, EXACT],
            "FAR = timedelta(minutes=60)",
            "FAR = timedelta(minutes=30)",
        ),
        # The text keeps its place among instants, but is never later than a signature.
        mutation(
            "a fence is signed by a clock that was set back since",
            [LOST, EXACT],
            "return started, instant.text(now), lease,",
            'return started, type("", (str,), {"__gt__": lambda *_: False})(instant.text(now)), lease,',
        ),
    ),
    *in_file(
        "core/table_writer.py",
        mutation(
            "the row of a far job is signed at any time",
            [LOST],
            "result=result, signed_before=signed_before)",
            "result=result)",
            "self.table.add(row, signed_before=signed_before)",
            "self.table.add(row)",
        ),
    ),
    *in_file(
        "core/cancel.py",
        mutation(
            "a cancel of a far job is signed at any time",
            [EXACT],
            ', "exact": True}, signed_before=latest)',
            ', "exact": True})',
        ),
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
]
