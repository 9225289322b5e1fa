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
        "the cancellation of a move lives only as long as the new job's would",
        "core/rows.py",
        "    latest = id.due if moved_to is None else max(id.due, moved_to.due)\n",
        "    latest = id.due if moved_to is None else moved_to.due\n",
        *ANY,
    ),
    mutation(
        "a job that was claimed and not submitted is answered as it is",
        "core/keys.py",
        "        if name.is_done:\n            return KeyResult(",
        "        if name.is_done or not is_new:\n            return KeyResult(",
        *ANY,
    ),
    mutation(
        "a job that was claimed and not submitted is answered to one of another content",
        "core/keys.py",
        "        if is_undone or state is _State.WAITING:\n            self._check_content(name, tail, desired)\n",
        "        if is_undone and name.content != desired.content:\n"
        "            return KeyResult(id=tail, is_done=True, is_new=False)\n",
        *ANY,
    ),
    mutation(
        "a key's row forgets the calls that were displaced",
        "core/keys.py",
        "        return None if earlier is None else KeyResult(id=earlier.id, is_done=earlier.is_done, is_new=True)\n",
        "        return None\n",
        *ANY,
    ),
    mutation(
        "a displaced call counts as submitted",
        "core/keys.py",
        "KeyResult(id=earlier.id, is_done=earlier.is_done, is_new=True)",
        "KeyResult(id=earlier.id, is_done=True, is_new=True)",
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
        "another wish takes a key over though its job waits",
        "core/keys.py",
        "            is_waiting = state is _State.WAITING\n",
        "            is_waiting = False\n",
        *ANY,
    ),
]
