"""What must not be left out of names: each mutation breaks one rule, and names the promises that then break."""

from tests.simulation.mutation import BOTH, EXACT, LOST, NEITHER, SECOND, mutation
from tests.simulation.record import CALLS, LIVES, ONE_JOB, STAYS

ANY = (CALLS, LIVES, ONE_JOB, LOST, EXACT, BOTH, NEITHER, SECOND)

IN_NAMES = [
    mutation(
        "a cancel by a key stops at a job that was moved",
        "core/cancel.py",
        "            if not moved:\n                return written\n",
        "            if moved is not None:\n                return written\n",
        STAYS,
    ),
    mutation(
        "a key is taken over whatever job it names by now",
        "testing/memory_table.py",
        "        is_as_read = self._has_id(rows.key(row), expected)\n",
        "        is_as_read = True\n",
        *ANY,
    ),
    mutation(
        "a move changes the row of a key whatever job it names by now",
        "testing/memory_table.py",
        "            if not self._has_id(key, change.expected):\n",
        "            if key[1] not in self._rows[key[0]]:\n",
        *ANY,
    ),
    mutation(
        "a move by id leaves the row of the key as it was",
        "core/move.py",
        "        if change is None and self.job.key is not None:\n",
        "        if change is None and self.job.key == self.old:\n",
        *ANY,
    ),
    mutation(
        "a move by a key goes on without the row of the key",
        "core/move.py",
        "        if outcome is MoveOutcome.KEY_CHANGED and self.change is None:\n",
        "        if outcome is MoveOutcome.KEY_CHANGED:\n",
        *ANY,
    ),
    mutation(
        "the cancellation of a move lives only as long as the old job's would",
        "core/rows.py",
        "    latest = id.due if moved_to is None else max(id.due, moved_to.due)\n",
        "    latest = id.due\n",
        *ANY,
    ),
    mutation(
        "the cancellation of a move lives only as long as the new job's would",
        "core/rows.py",
        "    latest = id.due if moved_to is None else max(id.due, moved_to.due)\n",
        "    latest = id.due if moved_to is None else moved_to.due\n",
        *ANY,
    ),
    mutation(
        "only an exact cancellation leaves the key to another job",
        "core/names.py",
        "            if moved is None:\n",
        "            if moved is None and rows.is_promised(cancellation):\n",
        *ANY,
    ),
    mutation(
        "a job that was claimed and not submitted is answered as it is",
        "core/names.py",
        "        if name.is_done:\n            return Claim(",
        "        if name.is_done or not is_new:\n            return Claim(",
        *ANY,
    ),
    mutation(
        "a job that was claimed and not submitted is answered to one of another content",
        "core/names.py",
        "        if is_undone or state is _State.WAITING:\n            self._check_content(name, tail, wish)\n",
        "        if is_undone and name.content != wish.content:\n"
        "            return Claim(id=tail, is_done=True, is_new=False)\n",
        *ANY,
    ),
    mutation(
        "a key's row forgets the calls that were displaced",
        "core/names.py",
        "        return None if earlier is None else Claim(id=earlier.id, is_done=earlier.is_done, is_new=True)\n",
        "        return None\n",
        *ANY,
    ),
    mutation(
        "a displaced call counts as submitted",
        "core/names.py",
        "Claim(id=earlier.id, is_done=earlier.is_done, is_new=True)",
        "Claim(id=earlier.id, is_done=True, is_new=True)",
        *ANY,
    ),
    mutation(
        "a job that was just moved counts as sent",
        "core/names.py",
        "                cancellation = self._table.read_barrier(cancelled)\n",
        "                cancellation = None\n",
        *ANY,
    ),
    mutation(
        "a move by a key is not remembered",
        "core/reschedule.py",
        "            earlier = row.call_of(call) if row and call else None\n",
        "            earlier = None\n",
        *ANY,
    ),
    mutation(
        "another job's key is marked as submitted",
        "testing/memory_table.py",
        '        if self._rows[pk].get(sk, {}).get("id") == id:\n            self._mark(key, "done")\n',
        '        if sk in self._rows[pk]:\n            self._mark(key, "done")\n',
        *ANY,
    ),
    mutation(
        "ingest moves a job without what its intent says of the key",
        "core/move.py",
        "        if text is None or job.key is None:\n",
        "        if text is None or job.key is not None:\n",
        *ANY,
    ),
    mutation(
        "the new wish takes a key over though its job waits",
        "core/names.py",
        "            is_waiting = state is _State.WAITING\n",
        "            is_waiting = False\n",
        *ANY,
    ),
    mutation(
        "a call that follows a move does not read the key again",
        "core/names.py",
        "            again = self._read_again(name)\n",
        "            again = name\n",
        *ANY,
    ),
    mutation(
        "a replaced job's key lives as long as the old one's",
        "core/rows.py",
        '"done": True, "ttl": _seconds(job.expires)}',
        '"done": True}',
        *ANY,
    ),
]
