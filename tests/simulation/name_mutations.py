"""What must not be left out of names, by file: without each rule, one of several promises breaks first."""

from tests.simulation.choices import Decided
from tests.simulation.mutation import BOTH, EXACT, LOST, NEITHER, SECOND, Mutation, in_file, kept, mutation
from tests.simulation.record import CALLS, FOUND, LIVES, ONE_JOB, SAME, STAYS

ANY = (CALLS, LIVES, ONE_JOB, LOST, EXACT, BOTH, NEITHER, SECOND, FOUND, SAME, STAYS)


def _mutation(name: str, *texts: str, decided: Decided | None = None) -> Mutation:
    return mutation(name, ANY, *texts, decided=decided)


OF_NAMES = [
    *in_file(
        "core/cancel.py",
        mutation(
            "a cancel by key does not follow moves",
            [STAYS],
            "            if not moved:\n                return written\n",
            "            if moved is not None:\n                return written\n",
        ),
    ),
    *in_file(
        "testing/memory_table.py",
        _mutation(
            "a key is taken over whatever it names",
            '        is_as_read = all(now.get(name) == there.get(name) for name in ("id", "done", "calls"))\n',
            "        is_as_read = True\n",
        ),
        _mutation(
            "a move changes a key whatever it names",
            '            if there.get("id") != change.expected or has_changed:\n',
            "            if has_changed:\n",
        ),
        _mutation(
            "another job's key is marked done",
            '        if is_its:\n            self._mark(key, "done")\n',
            '        if self._row(key):\n            self._mark(key, "done")\n',
        ),
        _mutation(
            "a key is taken over though its call has ended",
            'for name in ("id", "done", "calls"))\n',
            'for name in ("id", "calls"))\n',
        ),
        _mutation(
            "a key is taken over though a call was noted",
            'for name in ("id", "done", "calls"))\n',
            'for name in ("id", "done"))\n',
        ),
        _mutation(
            "a move overwrites that a call was noted",
            '        has_changed = "calls" in change.row and there.get("calls", "") != change.before\n',
            "        has_changed = False\n",
        ),
        _mutation(
            "a shared name is released",
            'row.get("done") is False and "shared" not in row\n',
            'row.get("done") is False and ("shared" not in row or rows.NAME in key[1])\n',
        ),
    ),
    *in_file(
        "core/rows.py",
        _mutation(
            "a move's cancellation lives as long as the new job",
            "    latest = id.due if moved_to is None else max(id.due, moved_to.due)\n",
            "    latest = id.due if moved_to is None else moved_to.due\n",
        ),
        _mutation(
            "a move's cancellation lives as long as the old job",
            "    latest = id.due if moved_to is None else max(id.due, moved_to.due)\n",
            "    latest = id.due\n",
        ),
    ),
    *in_file(
        "core/keys.py",
        _mutation(
            "a claimed job is answered unsubmitted",
            "        if name.is_done:\n            return KeyResult(",
            "        if name.is_done or not is_new:\n            return KeyResult(",
        ),
        _mutation(
            "a claimed job is answered to other content",
            "        if is_undone or state is _State.WAITING:\n            self._check_content(name, tail, desired)\n",
            "        if is_undone and name.content != desired.content:\n"
            "            return KeyResult(id=tail, is_done=True, is_new=False)\n",
        ),
        _mutation(
            "a key forgets displaced calls",
            "        if earlier is None:\n            return None\n        if earlier.is_move",
            "        if earlier is not None:\n            return None\n        if earlier.is_move",
        ),
        _mutation(
            "a displaced call counts as submitted",
            "KeyResult(id=earlier.id, is_done=earlier.is_done, is_new=True)",
            "KeyResult(id=earlier.id, is_done=True, is_new=True)",
        ),
        _mutation(
            "a key is taken over though its job waits",
            "            if state is _State.WAITING:\n",
            "            if False:\n",
        ),
        _mutation(
            "only an exact cancellation frees a key",
            "                return name, id, _State.CANCELLED, fence\n",
            "                if rows.is_promised(cancellation):\n"
            "                    return name, id, _State.CANCELLED, fence\n"
            "                return name, id, _State.LEFT if has_left else _State.WAITING, fence\n",
        ),
        _mutation(
            "what was just moved counts as sent",
            "                cancellation = self._table.read_barrier(cancelled)\n",
            "                cancellation = None\n",
            # A call looks at a job whose fence has just come to it, while its move is not seen yet.
            decided=kept(
                climate="12=1",
                invoices="0=2",
                unseen="0=1",
                **{"invoices_moved names": "0=1 1=1 5=1 11=2 15=1"},
            ),
        ),
        _mutation(
            "the key of a moved job is not read again",
            "            again = self._read_again(name)\n",
            "            again = name\n",
        ),
        _mutation(
            "the key of a moved job is read without a barrier",
            "        row = self._table.read_barrier(rows.name_key(self._queue.name, name.key))\n",
            "        row_key = rows.name_key(self._queue.name, name.key)\n"
            "        row = self._table.read([row_key]).rows.get(row_key)\n",
        ),
        _mutation(
            "a key past its ttl is not read again",
            "        row = table.read_barrier(row_key)\n    try:\n",
            "        row = None\n    try:\n",
        ),
        _mutation(
            "a replaced key keeps its old ttl",
            '        return self._changed({**row, "call": call, "content": content})\n',
            '        row = {name: row[name] for name in row if name != "ttl"}\n'
            '        return self._changed({**row, "call": call, "content": content})\n',
        ),
        _mutation(
            "a repeat does not share the key",
            "            return self._unless_released(name, is_new=True)\n",
            "            return KeyResult(id=name.id, is_done=name.is_done, is_new=True)\n",
        ),
    ),
    *in_file(
        "core/reschedule.py",
        _mutation(
            "a move by a key is not remembered",
            "            earlier = row.call_of(call) if row and call else None\n",
            "            earlier = None\n",
        ),
        _mutation(
            "a repeat takes another's move for its own",
            "            if time.call is not None and moved.uid == time.uid_after(id, new_uid=self._new_uid):\n",
            "            if time.call is not None and id != source:\n",
        ),
    ),
    *in_file(
        "core/move.py",
        _mutation(
            "a move by id leaves the key behind",
            "        if change is None and self.job.key is not None:\n",
            "        if change is None and self.job.key is None:\n",
        ),
        _mutation(
            "a move by key goes on without the key",
            "        return self.change is None and now < ",
            "        return self.change is not None or now < ",
        ),
        _mutation(
            "a move by id outlasts the retention",
            "        return self.change is None and now < self.old.due + retention - _CLOCKS_DIFFER\n",
            "        return self.change is None\n",
        ),
        _mutation(
            "ingest forgets what a move does to the key",
            "change=KeyChange(expected=expected, before=before, row=row)",
            "change=None",
        ),
    ),
    *in_file(
        "core/idempotency.py",
        _mutation("a displaced call is not noted", " and rows.is_name(row):", " and False:"),
    ),
]
