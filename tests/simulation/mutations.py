"""What must not be left out of the protocol, by file: each mutation breaks one thing, and names its promises."""

from tests.simulation.far_mutations import OF_FAR_JOBS
from tests.simulation.mutation import (
    BOTH,
    EARLY,
    EXACT,
    LEVEL,
    LOST,
    NEITHER,
    ONCE,
    ONE,
    SECOND,
    TWICE,
    in_file,
    kept,
    mutation,
)
from tests.simulation.name_mutations import OF_NAMES
from tests.simulation.schedule_mutations import OF_SCHEDULES

OF_JOBS = [
    *in_file(
        "core/tick.py",
        mutation(
            "the cursor is moved before sending",
            [LOST],
            "            self._has_read_rows |= bool(page.rows)\n",
            "            self._has_read_rows |= bool(page.rows)\n"
            '            page.rows and self._lease.checkpoint(str(page.rows[-1]["sk"]))\n',
        ),
        mutation(
            "the cursor goes past an unsent job",
            [LOST],
            "            self._is_held_back |= entry.key in unfinished\n            if not self._is_held_back:\n",
            "            was, self._is_held_back = self._is_held_back, self._is_held_back or entry.key in unfinished\n"
            "            if not was:\n",
        ),
        mutation(
            "the cursor goes to the highest finished job",
            [LOST],
            "            self._is_held_back |= entry.key in unfinished\n            if not self._is_held_back:\n",
            "            if entry.key not in unfinished:\n",
        ),
        mutation(
            "no note of what was sent beyond an unsent job",
            [TWICE],
            "        return self._note(beyond, read, {each.job for each in result.parked})\n",
            "        return True\n",
        ),
        mutation(
            "a note of what was not sent beyond an unsent job",
            [LOST],
            "            elif entry.key not in unfinished:\n",
            "            elif self._cursor:\n",
        ),
        mutation(
            "the cursor is a time, not a key",
            [LOST],
            "            self._cursor = entry.key\n",
            '            self._cursor = rows.end_of(entry.key.partition("#")[0])\n',
        ),
        mutation(
            "an eventually consistent query",
            [LOST, EXACT],
            "after=after, until=end)",
            "after=after, until=end, consistent=False)",
        ),
        mutation(
            "a cancellation is not carried over a page",
            [EXACT],
            "self._entries.of(page.rows, more=page.more)",
            "Entries().of(page.rows, more=page.more)",
        ),
        mutation(
            "no checkpoint before the end",
            [TWICE],
            "if is_much or self._clock.monotonic() >= self._lease.renew_at:",
            "if False:",
        ),
        mutation(
            "a tick sends a pending move without a barrier",
            [EXACT, BOTH],
            "may_be_moved = prefix == self._move_pending and not is_settled",
            "may_be_moved = False",
        ),
        mutation(
            "a tick passes over the target of a move",
            [LOST, NEITHER],
            "            self._move_target = prefix\n",
            '            self._move_target = ""\n',
        ),
        mutation(
            "rows of moves are not carried over a page",
            [EXACT, BOTH, LOST, NEITHER],
            "        entries: list[Entry] = []\n",
            '        self._move_pending = self._move_target = ""\n        entries: list[Entry] = []\n',
        ),
        mutation(
            "a tick takes no answer for not moved",
            [EXACT, BOTH, LOST, NEITHER],
            "        wave, unknown = self._resolved(wave)\n",
            "        wave, unknown = self._resolved(wave)[0], set[str]()\n",
        ),
    ),
    *in_file(
        "core/request.py",
        mutation("DelaySeconds is rounded down", [EARLY], "else math.ceil(delay)\n", "else math.floor(delay)\n"),
        mutation("no guard", [EARLY], "GUARD = timedelta(milliseconds=20)", "GUARD = timedelta(0)"),
    ),
    *in_file(
        "core/dispatch.py",
        mutation(
            "a job past its retention is sent by a tick",
            [EXACT],
            "expired = [job for job in jobs if now >= job.expires]",
            "expired = list[StoredJob]()",
        ),
        mutation(
            "what is throttled is parked",
            [LOST],
            "            return DispatchResult(unfinished=tuple(jobs), fault=str(fault), down=down)\n        sent",
            "            return self._park(jobs, str(fault))\n        sent",
        ),
    ),
    *in_file(
        "core/partitions.py",
        mutation(
            "the lease is taken without a condition",
            [TWICE],
            "            if (state.owner, state.lease) == (self._owner, lease):\n",
            "            if state.fence <= fence:\n",
        ),
        mutation(
            "a missing state is taken for now, not for the beginning",
            [LOST],
            "        self.fence, self.cursor = state.fence, state.cursor\n",
            "        self.fence = state.fence\n"
            "        self.cursor = state.cursor if state.cursor != FIRST else instant.text(self.clock.now())\n",
        ),
    ),
    *in_file(
        "testing/memory_table.py",
        mutation(
            "the fence may fall",
            [LOST, EXACT],
            "if state.fence <= fence and (state.owner",
            "if (state.owner",
            "state.cursor <= cursor and state.fence <= fence",
            "state.cursor <= cursor",
        ),
        mutation(
            "a repeated cancel writes over the first",
            [EXACT],
            "        if not self._row(rows.key(row)):\n            self._put(row)\n",
            "        self._put(row)\n",
        ),
        mutation(
            "a key is claimed without a condition",
            [ONCE],
            "if not rows.is_live(self._row(rows.key(row)) or None, now=now):",
            "if row:",
        ),
        mutation(
            "a key is released though another call shares it",
            [ONCE],
            ' and "shared" not in row',
            "",
            # One call has a key twice, and is refused; another takes the key; a third submits the first job by its id.
            decided=kept(
                invoices="0=2 1=1 2=3 6=7 10=1 16=1",
                invoices_again="0=2 1=2 3=3",
                order="29=1 30=2 32=1 33=1",
                schedules="0=1",
                trouble="1=1 3=1",
            ),
        ),
        mutation(
            "a job is moved whatever the fence",
            [BOTH, EXACT],
            "fence >= fence_below or self._row(rows.key(cancellation))",
            "self._row(rows.key(cancellation))",
        ),
        mutation(
            "a job due at the fence is moved",
            [BOTH, EXACT],
            "fence >= fence_below or self._row(",
            "fence > fence_below or self._row(",
        ),
        mutation(
            "a move writes over a cancellation",
            [BOTH, SECOND, EXACT],
            "fence >= fence_below or self._row(rows.key(cancellation))",
            "fence >= fence_below",
        ),
    ),
    *in_file(
        "core/table_writer.py",
        mutation(
            "no fence check after the write",
            [LOST],
            "left_to_ticks.update(job for job in its if fence < instant.text(job.id.due))",
            "left_to_ticks.update(its)",
        ),
        mutation(
            "the fence is read before the write",
            [LOST],
            "        return self._verify_visibility(set(jobs), self._write(set(jobs), result, have_rows),",
            "        result.written = {job for job in jobs if _has_row(job)}\n"
            "        early = self._needs_late_send(set(jobs), result)\n"
            "        self._needs_late_send = lambda *_: early\n"
            "        return self._verify_visibility(set(jobs), self._write(set(jobs), result, have_rows),",
        ),
        mutation(
            "a row due at the fence is taken for a later one",
            [LOST],
            "job for job in its if fence < instant.text(job.id.due)",
            "job for job in its if fence <= instant.text(job.id.due)",
        ),
        mutation(
            "UnprocessedKeys are taken for no fence",
            [LOST],
            "unknown = set(chain.from_iterable(by_state[key] for key in fences.unread))",
            "unknown = set[StoredJob]()",
        ),
        mutation(
            "what is unwritten is acknowledged",
            [LOST],
            "        result.undone = unwritten | unknown\n",
            "        result.undone = unknown\n",
        ),
        mutation(
            "the cancellation is read before the fence",
            [EXACT],
            "        late, unknown = self._needs_late_send(",
            "        early = self._cancelled_among(jobs, result)\n"
            "        self._cancelled_among = lambda *_: early\n"
            "        late, unknown = self._needs_late_send(",
        ),
        mutation(
            "the late path sends what is cancelled",
            [EXACT],
            "sorted(late - undone - cancelled, key=ORDER)",
            "sorted(late - undone, key=ORDER)",
        ),
        mutation(
            "the clock is read before the cancellation",
            [EXACT],
            "        cancelled, undone = self._cancelled_among(late, result)\n",
            "        at, clock = self.clock.now(), self.clock\n"
            '        self._then = type("Then", (), {"now": lambda _: at, "monotonic": lambda _: clock.monotonic(),'
            ' "sleep": lambda _, seconds: clock.sleep(seconds)})()\n'
            "        cancelled, undone = self._cancelled_among(late, result)\n",
            "sent = dispatcher.dispatch(",
            'sent = __import__("dataclasses").replace(dispatcher, clock=self._then).dispatch(',
            # A job is ingested a second before its retention ends, and the process stands still before it reads.
            decided=kept(
                emails="2=2 3=1",
                emails_buffers="0=1",
                ingest="1=1 3=3 8=1",
                trouble="7=1 12=1 13=1 19=1 26=1",
            ),
        ),
        mutation("no note of what the late path sent", [TWICE], "            self._note(sent, result)\n", ""),
        mutation(
            "the note is written before the job is sent",
            [LOST],
            "            sent = self._dispatch(queue, jobs, result, until)\n",
            "            self._note(DispatchResult(dispatched=tuple(jobs)), result)\n"
            "            sent = self._dispatch(queue, jobs, result, until)\n",
        ),
        mutation(
            "the late path sends all jobs to one queue",
            ["isolation", LOST],
            "by_queue[job.id.queue].append(job)",
            "by_queue[min(each.id.queue for each in late)].append(job)",
        ),
    ),
    *in_file(
        "core/submit.py",
        mutation(
            "a caller is answered before the fence is read",
            [LOST],
            "        left = [submission for job",
            "        written.undone -= written.written\n        left = [submission for job",
        ),
        mutation(
            "what the table did not take goes into the buffer under a new id",
            [LOST, ONE],
            "        errors = self._attempt(self._send_to_inbound, _batches(left), until=until)\n",
            "        ids = {each.job.id: replace(each.job.id, uid='f' + each.job.id.uid[1:]) for each in left}\n"
            "        renamed = [replace(each, job=replace(each.job, id=ids[each.job.id])) for each in left]\n"
            "        errors = self._attempt(self._send_to_inbound, _batches(renamed), until=until)\n",
        ),
        mutation(
            "what is tried again is due again",
            [ONE],
            "            return idempotency.checked_id(request.id, queue=self._queue, now=now)\n",
            "            given = idempotency.checked_id(request.id, queue=self._queue, now=now)\n"
            "            due = max(now, given.due)\n"
            "            return JobId(partition=given.partition, route=given.route, due=due, uid=given.uid)\n",
        ),
        mutation(
            "the breaker drops what it keeps from the table",
            [LOST],
            "            return self._buffer(list(by_job.values()), until=until)\n",
            "            return {job.id: SubmitResult(job=job, state=State.ACCEPTED) for job in by_job}\n",
        ),
    ),
    *in_file(
        "core/rows.py",
        mutation(
            "a row forgets its job's priority",
            [LEVEL],
            'return {**texts, **({} if job.priority == 1 else {"priority": job.priority})}',
            "return {**texts}",
        ),
        mutation(
            "a cancellation is collected with its job",
            [EXACT],
            "(latest, later=MAX_RETENTION + CANCELLATION_OUTLIVES_RETENTION)",
            "(latest, later=MAX_RETENTION)",
        ),
        mutation(
            "a key is noted as done before its job is submitted",
            [LOST],
            'payload_hash": payload_hash, "done": False',
            'payload_hash": payload_hash, "done": True',
        ),
    ),
    *in_file(
        "core/message.py",
        mutation(
            "a message forgets its job's priority",
            [LEVEL],
            "        attributes |= {PRIORITY: str(job.priority)} if job.priority != 1 else {}\n",
            "",
        ),
        mutation(
            "a batch holds jobs of several levels",
            [LEVEL],
            "levels = groupby(sorted(sorted(jobs, key=by), key=_BY_PRIORITY), key=_BY_PRIORITY)",
            "levels = [(1, jobs)]",
        ),
    ),
    *in_file(
        "core/reschedule.py",
        mutation(
            "a moved job forgets its priority",
            [LEVEL],
            "replace(job, id=id, expires=time.due + self._queue.retention)",
            "replace(job, id=id, expires=time.due + self._queue.retention, priority=1)",
        ),
    ),
    *in_file(
        "core/cancel.py",
        mutation(
            "the fence is read before the cancellation is written",
            [EXACT],
            "        written = self._follow(self._write_each(ids))\n",
            "        seen = self._states_of({id.partition for id in ids if isinstance(id, JobId)})\n"
            "        written = self._follow(self._write_each(ids))\n",
            "self._states_of({each.id.partition for each in undecided})",
            "seen",
        ),
        mutation(
            "a promise is noted before the fence is known",
            [EXACT],
            "        # Read after the cancellations are written",
            "        for each in written:\n            self.table.mark_exact(rows.cancellation_key(each.id))\n"
            "        # Read after the cancellations are written",
        ),
        mutation("an unread fence is taken for none", [EXACT], "    if key in fences.unread:\n", "    if False:\n"),
        mutation("a direct job's cancel is promised", [EXACT], " and self.id.route is Route.TABLE", ""),
        mutation(
            "a worker takes unread cancellations for none",
            ["skipped by workers"],
            "        result.unread.update((by_key[key], left) for key in reading.unread)\n",
            "",
        ),
    ),
    *in_file(
        "core/idempotency.py",
        mutation(
            "a repeat submits an id of its own", [ONCE], "id=first, expires=first.due", "id=job.id, expires=first.due"
        ),
    ),
    *in_file(
        "core/move.py",
        mutation(
            "the intent is sent after the transaction",
            [LOST, NEITHER],
            "                self._announce(intent)\n                is_done",
            "                is_done",
            "            return is_done or self._is_done(intent)",
            "            is_done = is_done or self._is_done(intent)\n"
            "            self._announce(intent)\n            return is_done",
        ),
        mutation(
            "a job is moved whole though a tick may not see the new one",
            [LOST, NEITHER],
            "before=min(self.old.due, self.job.id.due)",
            "before=self.old.due",
        ),
        mutation(
            "a move is decided by the fence of the later time",
            [BOTH, EXACT],
            "before=min(self.old.due, self.job.id.due)",
            "before=max(self.old.due, self.job.id.due)",
        ),
        mutation(
            "a cancel long after a move says that there was none",
            [LOST],
            "    if moved is None:\n",
            "    if cancellation is None:\n",
            # A move's cancellation is collected, a cancel puts its own there, and the intent comes again only then.
            decided=kept(
                emails="1=3 2=1 41=1 43=3 102=1 107=1 114=1 117=8 123=1",
                emails_moved="0=2 1=1 18=1",
                ingest="0=6",
                invoices="0=2 1=2 2=1 4=3",
                trouble="4=1 7=1 8=10 13=1 15=1 29=1",
            ),
        ),
        mutation(
            "ingest takes a refusal for the end without looking who moved the job",
            [LOST, NEITHER],
            "            return True\n        cancellation = table.read_barrier(cancelled)\n",
            "            return True\n        return False\n",
        ),
        mutation(
            "a caller takes a refusal for the end though ingest has moved the job",
            [SECOND],
            "            return is_done or self._is_done(intent)",
            "            return is_done",
        ),
        mutation(
            "no row that a move is pending",
            [EXACT, BOTH],
            "pending = [move_row(self.old, MOVE_PENDING, at=now), move_row(self.job.id, MOVE_TARGET, at=now)]",
            "pending = [move_row(self.job.id, MOVE_TARGET, at=now)]",
        ),
        mutation(
            "no row of the target of a move",
            [LOST, NEITHER],
            "pending = [move_row(self.old, MOVE_PENDING, at=now), move_row(self.job.id, MOVE_TARGET, at=now)]",
            "pending = [move_row(self.old, MOVE_PENDING, at=now)]",
        ),
        mutation(
            "the rows of a move are put after the transaction",
            [EXACT, BOTH, LOST, NEITHER],
            "        if table.write(pending):\n",
            "        move, old = table.move, [rows.cancellation_row(self.old, at=clock.now(), moved_to=self.job.id)]\n"
            "        if move(*old, rows.job_row(self.job), state=rows.state_key(self.old.partition),"
            " fence_below=instant.text(before)) is MoveOutcome.DONE:\n            return not table.write(pending)\n"
            "        if table.write(pending):\n",
        ),
    ),
    *in_file(
        "core/ingest.py",
        mutation(
            "ingest writes the new job's row without the transaction",
            [BOTH, SECOND],
            "unsettled = self._settle([each for each in parsed.intents if each.job in jobs], done, settle_until)",
            "unsettled = set[StoredJob]()",
        ),
        mutation(
            "ingest leaves a moved job to a tick unseen",
            [LOST, NEITHER],
            "here = jobs - unsettled - done.dropped",
            "here = jobs - unsettled - done.dropped - done.moved",
        ),
    ),
    *in_file(
        "operations/ttl_guard.py",
        mutation(
            "TTL is not switched off",
            [LOST],
            "        if switch_on == result.was.is_on:\n",
            "        if not switch_on or switch_on == result.was.is_on:\n",
        ),
        mutation(
            "a partition is taken for late by its fence",
            [LOST],
            "        if state.cursor >= until:\n",
            "        if max(state.cursor, state.fence) >= until:\n",
        ),
        mutation("TTL is switched on while jobs wait", [LOST], "else not (behind or unknown)\n", "else True\n"),
    ),
]

MUTATIONS = [*OF_JOBS, *OF_FAR_JOBS, *OF_NAMES, *OF_SCHEDULES]
