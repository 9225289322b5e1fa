"""What must not be left out of names: each mutation breaks one rule, and names the promises that then break."""

from tests.simulation.mutation import BOTH, EXACT, LOST, NEITHER, SECOND, Edit, Mutation, kept, mutation
from tests.simulation.record import CALLS, FOUND, LIVES, ONE_JOB, SAME, STAYS

ANY = (CALLS, LIVES, ONE_JOB, LOST, EXACT, BOTH, NEITHER, SECOND, FOUND, SAME, STAYS)

IN_NAMES = [
    mutation(
        "a cancel by key does not follow moves",
        "core/cancel.py",
        "            if not moved:\n                return written\n",
        "            if moved is not None:\n                return written\n",
        STAYS,
    ),
    mutation(
        "a key is taken over whatever it names",
        "testing/memory_table.py",
        '        is_as_read = all(now.get(name) == there.get(name) for name in ("id", "done", "calls"))\n',
        "        is_as_read = True\n",
        *ANY,
    ),
    mutation(
        "a move changes a key whatever it names",
        "testing/memory_table.py",
        '            if there.get("id") != change.expected or has_changed:\n',
        "            if has_changed:\n",
        *ANY,
    ),
    mutation(
        "a move's cancellation lives as long as the new job",
        "core/rows.py",
        "    latest = id.due if moved_to is None else max(id.due, moved_to.due)\n",
        "    latest = id.due if moved_to is None else moved_to.due\n",
        *ANY,
    ),
    mutation(
        "a claimed job is answered unsubmitted",
        "core/keys.py",
        "        if name.is_done:\n            return KeyResult(",
        "        if name.is_done or not is_new:\n            return KeyResult(",
        *ANY,
    ),
    mutation(
        "a claimed job is answered to other content",
        "core/keys.py",
        "        if is_undone or state is _State.WAITING:\n            self._check_content(name, tail, desired)\n",
        "        if is_undone and name.content != desired.content:\n"
        "            return KeyResult(id=tail, is_done=True, is_new=False)\n",
        *ANY,
    ),
    mutation(
        "a key forgets displaced calls",
        "core/keys.py",
        "        if earlier is None:\n            return None\n        if earlier.is_move",
        "        if earlier is not None:\n            return None\n        if earlier.is_move",
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
        "another job's key is marked done",
        "testing/memory_table.py",
        '        if is_its:\n            self._mark(key, "done")\n',
        '        if sk in self._rows[pk]:\n            self._mark(key, "done")\n',
        *ANY,
    ),
    mutation(
        "a key is taken over though its job waits",
        "core/keys.py",
        "            if state is _State.WAITING:\n",
        "            if False:\n",
        *ANY,
    ),
    mutation(
        "a move by id leaves the key behind",
        "core/move.py",
        "        if change is None and self.job.key is not None:\n",
        "        if change is None and self.job.key is None:\n",
        *ANY,
    ),
    mutation(
        "a move by key goes on without the key",
        "core/move.py",
        "        return self.change is None and now < ",
        "        return self.change is not None or now < ",
        *ANY,
    ),
    mutation(
        "a move by id outlasts the retention",
        "core/move.py",
        "        return self.change is None and now < self.old.due + retention - _CLOCKS_DIFFER\n",
        "        return self.change is None\n",
        *ANY,
    ),
    mutation(
        "a move's cancellation lives as long as the old job",
        "core/rows.py",
        "    latest = id.due if moved_to is None else max(id.due, moved_to.due)\n",
        "    latest = id.due\n",
        *ANY,
    ),
    mutation(
        "only an exact cancellation frees a key",
        "core/keys.py",
        "                return name, id, _State.CANCELLED, fence\n",
        "                if rows.is_promised(cancellation):\n"
        "                    return name, id, _State.CANCELLED, fence\n"
        "                return name, id, _State.LEFT if has_left else _State.WAITING, fence\n",
        *ANY,
    ),
    Mutation(
        name="what was just moved counts as sent",
        breaks=[*ANY],
        edits=[
            Edit(
                file="core/keys.py",
                old="                cancellation = self._table.read_barrier(cancelled)\n",
                new="                cancellation = None\n",
            )
        ],
        # A call looks at a job whose fence has just come to it, while its move is not seen yet.
        decided=kept(
            climate="12=1",
            invoices="0=2",
            unseen="0=1",
            **{"invoices_moved names": "0=1 1=1 5=1 11=2 15=1"},
        ),
    ),
    mutation(
        "ingest forgets what a move does to the key",
        "core/move.py",
        "change=KeyChange(expected=expected, before=before, row=row)",
        "change=None",
        *ANY,
    ),
    mutation(
        "the key of a moved job is not read again",
        "core/keys.py",
        "            again = self._read_again(name)\n",
        "            again = name\n",
        *ANY,
    ),
    mutation(
        "the key of a moved job is read without a barrier",
        "core/keys.py",
        "        row = self._table.read_barrier(rows.name_key(self._queue.name, name.key))\n",
        "        row_key = rows.name_key(self._queue.name, name.key)\n"
        "        row = self._table.read([row_key]).rows.get(row_key)\n",
        *ANY,
    ),
    mutation(
        "a key past its ttl is not read again",
        "core/keys.py",
        "        row = table.read_barrier(row_key)\n    try:\n",
        "        row = None\n    try:\n",
        *ANY,
    ),
    mutation(
        "a replaced key keeps its old ttl",
        "core/keys.py",
        '        return self._changed({**row, "call": call, "content": content})\n',
        '        row = {name: row[name] for name in row if name != "ttl"}\n'
        '        return self._changed({**row, "call": call, "content": content})\n',
        *ANY,
    ),
    mutation(
        "a key is taken over though its call has ended",
        "testing/memory_table.py",
        'for name in ("id", "done", "calls"))\n',
        'for name in ("id", "calls"))\n',
        *ANY,
    ),
    mutation(
        "a key is taken over though a call was noted",
        "testing/memory_table.py",
        'for name in ("id", "done", "calls"))\n',
        'for name in ("id", "done"))\n',
        *ANY,
    ),
    mutation(
        "a move overwrites that a call was noted",
        "testing/memory_table.py",
        '        has_changed = "calls" in change.row and there.get("calls", "") != change.before\n',
        "        has_changed = False\n",
        *ANY,
    ),
    mutation(
        "a displaced call is not noted",
        "core/idempotency.py",
        " and rows.is_name(row):",
        " and False:",
        *ANY,
    ),
    mutation(
        "a repeat does not share the key",
        "core/keys.py",
        "            return self._unless_released(name, is_new=True)\n",
        "            return KeyResult(id=name.id, is_done=name.is_done, is_new=True)\n",
        *ANY,
    ),
    mutation(
        "a shared name is released",
        "testing/memory_table.py",
        'row.get("done") is False and "shared" not in row\n',
        'row.get("done") is False and ("shared" not in row or rows.NAME in key[1])\n',
        *ANY,
    ),
    mutation(
        "a repeat takes another's move for its own",
        "core/reschedule.py",
        "            if time.call is not None and moved.uid == time.uid_after(id, new_uid=self._new_uid):\n",
        "            if time.call is not None and id != source:\n",
        *ANY,
    ),
]
