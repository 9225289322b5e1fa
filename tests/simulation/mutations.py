"""What must not be left out of the protocol: each mutation breaks one thing, and names the promises that then break."""

from tests.simulation.far_mutations import IN_FAR
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
    Edit,
    Mutation,
    kept,
    mutation,
)
from tests.simulation.name_mutations import IN_NAMES
from tests.simulation.schedule_mutations import IN_SCHEDULES

IN_TICK = [
    mutation(
        "the cursor is moved before sending",
        "core/tick.py",
        "            self._has_read_rows |= bool(page.rows)\n",
        "            self._has_read_rows |= bool(page.rows)\n"
        '            page.rows and self._lease.checkpoint(str(page.rows[-1]["sk"]))\n',
        LOST,
    ),
    mutation(
        "the cursor goes past an unsent job",
        "core/tick.py",
        "            self._is_held_back |= entry.key in unfinished\n            if not self._is_held_back:\n",
        "            was, self._is_held_back = self._is_held_back, self._is_held_back or entry.key in unfinished\n"
        "            if not was:\n",
        LOST,
    ),
    mutation(
        "the cursor goes to the highest finished job",
        "core/tick.py",
        "            self._is_held_back |= entry.key in unfinished\n            if not self._is_held_back:\n",
        "            if entry.key not in unfinished:\n",
        LOST,
    ),
    mutation(
        "no note of what was sent beyond an unsent job",
        "core/tick.py",
        "        return self._note(beyond, read, {each.job for each in result.parked})\n",
        "        return True\n",
        TWICE,
    ),
    mutation(
        "a note of what was not sent beyond an unsent job",
        "core/tick.py",
        "            elif entry.key not in unfinished:\n",
        "            elif self._cursor:\n",
        LOST,
    ),
    mutation(
        "the cursor is a time, not a key",
        "core/tick.py",
        "            self._cursor = entry.key\n",
        '            self._cursor = rows.end_of(entry.key.partition("#")[0])\n',
        LOST,
    ),
    mutation(
        "an eventually consistent query",
        "core/tick.py",
        "after=after, until=end)",
        "after=after, until=end, consistent=False)",
        LOST,
        EXACT,
    ),
    mutation(
        "a cancellation is not carried over a page",
        "core/tick.py",
        "self._entries.of(page.rows, more=page.more)",
        "Entries().of(page.rows, more=page.more)",
        EXACT,
    ),
    mutation(
        "no checkpoint before the end",
        "core/tick.py",
        "if is_much or self._clock.monotonic() >= self._lease.renew_at:",
        "if False:",
        TWICE,
    ),
    mutation(
        "DelaySeconds is rounded down", "core/request.py", "else math.ceil(delay)\n", "else math.floor(delay)\n", EARLY
    ),
    mutation("no guard", "core/request.py", "GUARD = timedelta(milliseconds=20)", "GUARD = timedelta(0)", EARLY),
    mutation(
        "a job past its retention is sent by a tick",
        "core/dispatch.py",
        "expired = [job for job in jobs if now >= job.expires]",
        "expired = list[StoredJob]()",
        EXACT,
    ),
    mutation(
        "what is throttled is parked",
        "core/dispatch.py",
        "            return DispatchResult(unfinished=tuple(jobs), fault=str(fault), down=down)\n        sent",
        "            return self._park(jobs, str(fault))\n        sent",
        LOST,
    ),
]

IN_LEASE = [
    mutation(
        "the lease is taken without a condition",
        "core/partitions.py",
        "            if (state.owner, state.lease) == (self._owner, lease):\n",
        "            if state.fence <= fence:\n",
        TWICE,
    ),
    Mutation(
        name="the fence may fall",
        breaks=[LOST, EXACT],
        edits=[
            Edit(file="testing/memory_table.py", old="if state.fence <= fence and (state.owner", new="if (state.owner"),
            Edit(
                file="testing/memory_table.py",
                old="state.cursor <= cursor and state.fence <= fence",
                new="state.cursor <= cursor",
            ),
        ],
    ),
    mutation(
        "a missing state is taken for now, not for the beginning",
        "core/partitions.py",
        "        self.fence, self.cursor = state.fence, state.cursor\n",
        "        self.fence = state.fence\n"
        "        self.cursor = state.cursor if state.cursor != FIRST else instant.text(self.clock.now())\n",
        LOST,
    ),
]

IN_TABLE_ROUTE = [
    mutation(
        "no fence check after the write",
        "core/table_writer.py",
        "left_to_ticks.update(job for job in its if fence < instant.text(job.id.due))",
        "left_to_ticks.update(its)",
        LOST,
    ),
    mutation(
        "the fence is read before the write",
        "core/table_writer.py",
        "        return self._verify_visibility(set(jobs), self._write(set(jobs), result, have_rows), result, until)\n",
        "        result.written = {job for job in jobs if _has_row(job)}\n"
        "        early = self._needs_late_send(set(jobs), result)\n"
        "        self._needs_late_send = lambda *_: early\n"
        "        return self._verify_visibility(set(jobs), self._write(set(jobs), result, have_rows), result, until)\n",
        LOST,
    ),
    mutation(
        "a row due at the fence is taken for a later one",
        "core/table_writer.py",
        "job for job in its if fence < instant.text(job.id.due)",
        "job for job in its if fence <= instant.text(job.id.due)",
        LOST,
    ),
    mutation(
        "UnprocessedKeys are taken for no fence",
        "core/table_writer.py",
        "unknown = set(chain.from_iterable(by_state[key] for key in fences.unread))",
        "unknown = set[StoredJob]()",
        LOST,
    ),
    mutation(
        "what is unwritten is acknowledged",
        "core/table_writer.py",
        "        result.undone = unwritten | unknown\n",
        "        result.undone = unknown\n",
        LOST,
    ),
    Mutation(
        name="the cancellation is read before the fence",
        breaks=[EXACT],
        edits=[
            Edit(
                file="core/table_writer.py",
                old="        late, unknown = self._needs_late_send(",
                new="        early = self._cancelled_among(jobs, result)\n"
                "        self._cancelled_among = lambda *_: early\n"
                "        late, unknown = self._needs_late_send(",
            ),
        ],
    ),
    mutation(
        "the late path sends what is cancelled",
        "core/table_writer.py",
        "sorted(late - undone - cancelled, key=ORDER)",
        "sorted(late - undone, key=ORDER)",
        EXACT,
    ),
    Mutation(
        name="the clock is read before the cancellation",
        breaks=[EXACT],
        edits=[
            Edit(
                file="core/table_writer.py",
                old="        cancelled, undone = self._cancelled_among(late, result)\n",
                new="        at, clock = self.clock.now(), self.clock\n"
                '        self._then = type("Then", (), {"now": lambda _: at, "monotonic": lambda _: clock.monotonic(),'
                ' "sleep": lambda _, seconds: clock.sleep(seconds)})()\n'
                "        cancelled, undone = self._cancelled_among(late, result)\n",
            ),
            Edit(
                file="core/table_writer.py",
                old="sent = dispatcher.dispatch(",
                new='sent = __import__("dataclasses").replace(dispatcher, clock=self._then).dispatch(',
            ),
        ],
        # A job is ingested a second before its retention ends, and the process stands still before it reads.
        decided=kept(
            emails="2=2 3=1",
            emails_buffers="0=1",
            ingest="1=1 3=3 8=1",
            trouble="7=1 12=1 13=1 19=1 26=1",
        ),
    ),
    mutation(
        "no note of what the late path sent",
        "core/table_writer.py",
        "            self._note(sent, result)\n",
        "",
        TWICE,
    ),
    mutation(
        "the note is written before the job is sent",
        "core/table_writer.py",
        "            sent = self._dispatch(queue, jobs, result, until)\n",
        "            self._note(DispatchResult(dispatched=tuple(jobs)), result)\n"
        "            sent = self._dispatch(queue, jobs, result, until)\n",
        LOST,
    ),
    mutation(
        "the late path sends all jobs to one queue",
        "core/table_writer.py",
        "by_queue[job.id.queue].append(job)",
        "by_queue[min(each.id.queue for each in late)].append(job)",
        "isolation",
        LOST,
    ),
    mutation(
        "a caller is answered before the fence is read",
        "core/submit.py",
        "        left = [submission for job",
        "        written.undone -= written.written\n        left = [submission for job",
        LOST,
    ),
    mutation(
        "what the table did not take goes into the buffer under a new id",
        "core/submit.py",
        "        errors = self._attempt(self._send_to_inbound, _batches(left), until=until)\n",
        "        ids = {each.job.id: replace(each.job.id, uid='f' + each.job.id.uid[1:]) for each in left}\n"
        "        renamed = [replace(each, job=replace(each.job, id=ids[each.job.id])) for each in left]\n"
        "        errors = self._attempt(self._send_to_inbound, _batches(renamed), until=until)\n",
        LOST,
        ONE,
    ),
    mutation(
        "what is tried again is due again",
        "core/submit.py",
        "            return idempotency.checked_id(request.id, queue=self._queue, now=now)\n",
        "            given = idempotency.checked_id(request.id, queue=self._queue, now=now)\n"
        "            due = max(now, given.due)\n"
        "            return JobId(partition=given.partition, route=given.route, due=due, uid=given.uid)\n",
        ONE,
    ),
    mutation(
        "the breaker drops what it keeps from the table",
        "core/submit.py",
        "            return self._buffer(list(by_job.values()), until=until)\n",
        "            return {job.id: SubmitResult(job=job, state=State.ACCEPTED) for job in by_job}\n",
        LOST,
    ),
]

IN_LEVELS = [
    mutation(
        "a row forgets its job's priority",
        "core/rows.py",
        'return {**texts, **({} if job.priority == 1 else {"priority": job.priority})}',
        "return {**texts}",
        LEVEL,
    ),
    mutation(
        "a message forgets its job's priority",
        "core/message.py",
        "        attributes |= {PRIORITY: str(job.priority)} if job.priority != 1 else {}\n",
        "",
        LEVEL,
    ),
    mutation(
        "a batch holds jobs of several levels",
        "core/message.py",
        "levels = groupby(sorted(sorted(jobs, key=by), key=_BY_PRIORITY), key=_BY_PRIORITY)",
        "levels = [(1, jobs)]",
        LEVEL,
    ),
    mutation(
        "a moved job forgets its priority",
        "core/reschedule.py",
        "replace(job, id=id, expires=time.due + self._queue.retention)",
        "replace(job, id=id, expires=time.due + self._queue.retention, priority=1)",
        LEVEL,
    ),
]

IN_CANCEL = [
    Mutation(
        name="the fence is read before the cancellation is written",
        breaks=[EXACT],
        edits=[
            Edit(
                file="core/cancel.py",
                old="        written = self._follow(self._write_each(ids))\n",
                new="        seen = self._states_of({id.partition for id in ids if isinstance(id, JobId)})\n"
                "        written = self._follow(self._write_each(ids))\n",
            ),
            Edit(
                file="core/cancel.py",
                old="self._states_of({each.id.partition for each in undecided})",
                new="seen",
            ),
        ],
    ),
    mutation(
        "a promise is noted before the fence is known",
        "core/cancel.py",
        "        # Read after the cancellations are written",
        "        for each in written:\n            self.table.mark_exact(rows.cancellation_key(each.id))\n"
        "        # Read after the cancellations are written",
        EXACT,
    ),
    mutation(
        "an unread fence is taken for none",
        "core/cancel.py",
        "    if key in fences.unread:\n",
        "    if False:\n",
        EXACT,
    ),
    mutation(
        "a direct job's cancel is promised",
        "core/cancel.py",
        " and self.id.route is Route.TABLE",
        "",
        EXACT,
    ),
    mutation(
        "a repeated cancel writes over the first",
        "testing/memory_table.py",
        "        if sk not in self._rows[pk]:\n            self._put(row)\n",
        "        self._put(row)\n",
        EXACT,
    ),
    mutation(
        "a cancellation is collected with its job",
        "core/rows.py",
        "(latest, later=MAX_RETENTION + CANCELLATION_OUTLIVES_RETENTION)",
        "(latest, later=MAX_RETENTION)",
        EXACT,
    ),
    mutation(
        "a worker takes unread cancellations for none",
        "core/cancel.py",
        "        result.unread.update((by_key[key], left) for key in reading.unread)\n",
        "",
        "skipped by workers",
    ),
]
IN_KEYS = [
    mutation(
        "a key is claimed without a condition",
        "testing/memory_table.py",
        "if not rows.is_live(self._rows[pk].get(sk), now=now):",
        "if row:",
        ONCE,
    ),
    mutation(
        "a repeat submits an id of its own",
        "core/idempotency.py",
        "id=first, expires=first.due",
        "id=job.id, expires=first.due",
        ONCE,
    ),
    Mutation(
        name="a key is released though another call shares it",
        breaks=[ONCE],
        edits=[Edit(file="testing/memory_table.py", old=' and "shared" not in row', new="")],
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
        "a key is noted as done before its job is submitted",
        "core/rows.py",
        'payload_hash": payload_hash, "done": False',
        'payload_hash": payload_hash, "done": True',
        LOST,
    ),
]

IN_MOVE = [
    Mutation(
        name="the intent is sent after the transaction",
        breaks=[LOST, NEITHER],
        edits=[
            Edit(
                file="core/move.py",
                old="                self._announce(intent)\n                is_done",
                new="                is_done",
            ),
            Edit(
                file="core/move.py",
                old="            return is_done or self._is_done(intent)",
                new="            is_done = is_done or self._is_done(intent)\n"
                "            self._announce(intent)\n            return is_done",
            ),
        ],
    ),
    mutation(
        "a job is moved whole though a tick may not see the new one",
        "core/move.py",
        "before=min(self.old.due, self.job.id.due)",
        "before=self.old.due",
        LOST,
        NEITHER,
    ),
    mutation(
        "a move is decided by the fence of the later time",
        "core/move.py",
        "before=min(self.old.due, self.job.id.due)",
        "before=max(self.old.due, self.job.id.due)",
        BOTH,
        EXACT,
    ),
    mutation(
        "ingest writes the new job's row without the transaction",
        "core/ingest.py",
        "unsettled = self._settle([each for each in parsed.intents if each.job in jobs], done, settle_until)",
        "unsettled = set[StoredJob]()",
        BOTH,
        SECOND,
    ),
    mutation(
        "a job is moved whatever the fence",
        "testing/memory_table.py",
        "fence >= fence_below or sk in self._rows[pk]",
        "sk in self._rows[pk]",
        BOTH,
        EXACT,
    ),
    mutation(
        "a job due at the fence is moved",
        "testing/memory_table.py",
        "fence >= fence_below or sk in",
        "fence > fence_below or sk in",
        BOTH,
        EXACT,
    ),
    Mutation(
        name="a cancel long after a move says that there was none",
        breaks=[LOST],
        edits=[Edit(file="core/move.py", old="    if moved is None:\n", new="    if cancellation is None:\n")],
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
        "a move writes over a cancellation",
        "testing/memory_table.py",
        "fence >= fence_below or sk in self._rows[pk]",
        "fence >= fence_below",
        BOTH,
        SECOND,
        EXACT,
    ),
    mutation(
        "ingest leaves a moved job to a tick unseen",
        "core/ingest.py",
        "here = jobs - unsettled - done.dropped",
        "here = jobs - unsettled - done.dropped - done.moved",
        LOST,
        NEITHER,
    ),
    mutation(
        "ingest takes a refusal for the end without looking who moved the job",
        "core/move.py",
        "            return True\n        cancellation = table.read_barrier(cancelled)\n",
        "            return True\n        return False\n",
        LOST,
        NEITHER,
    ),
    mutation(
        "a caller takes a refusal for the end though ingest has moved the job",
        "core/move.py",
        "            return is_done or self._is_done(intent)",
        "            return is_done",
        SECOND,
    ),
]

IN_WHAT_IS_UNSEEN = [
    mutation(
        "no row that a move is pending",
        "core/move.py",
        "pending = [move_row(self.old, MOVE_PENDING, at=now), move_row(self.job.id, MOVE_TARGET, at=now)]",
        "pending = [move_row(self.job.id, MOVE_TARGET, at=now)]",
        EXACT,
        BOTH,
    ),
    mutation(
        "no row of the target of a move",
        "core/move.py",
        "pending = [move_row(self.old, MOVE_PENDING, at=now), move_row(self.job.id, MOVE_TARGET, at=now)]",
        "pending = [move_row(self.old, MOVE_PENDING, at=now)]",
        LOST,
        NEITHER,
    ),
    mutation(
        "the rows of a move are put after the transaction",
        "core/move.py",
        "        if table.write(pending):\n",
        "        move, old = table.move, [rows.cancellation_row(self.old, at=clock.now(), moved_to=self.job.id)]\n"
        "        if move(*old, rows.job_row(self.job), state=rows.state_key(self.old.partition),"
        " fence_below=instant.text(before)) is MoveOutcome.DONE:\n            return not table.write(pending)\n"
        "        if table.write(pending):\n",
        EXACT,
        BOTH,
        LOST,
        NEITHER,
    ),
    mutation(
        "a tick sends a pending move without a barrier",
        "core/tick.py",
        "may_be_moved = prefix == self._move_pending and not is_settled",
        "may_be_moved = False",
        EXACT,
        BOTH,
    ),
    mutation(
        "a tick passes over the target of a move",
        "core/tick.py",
        "            self._move_target = prefix\n",
        '            self._move_target = ""\n',
        LOST,
        NEITHER,
    ),
    mutation(
        "rows of moves are not carried over a page",
        "core/tick.py",
        "        entries: list[Entry] = []\n",
        '        self._move_pending = self._move_target = ""\n        entries: list[Entry] = []\n',
        EXACT,
        BOTH,
        LOST,
        NEITHER,
    ),
    mutation(
        "a tick takes no answer for not moved",
        "core/tick.py",
        "        wave, unknown = self._resolved(wave)\n",
        "        wave, unknown = self._resolved(wave)[0], set[str]()\n",
        EXACT,
        BOTH,
        LOST,
        NEITHER,
    ),
]
IN_TTL = [
    mutation(
        "TTL is not switched off",
        "operations/ttl_guard.py",
        "        if switch_on == result.was.is_on:\n",
        "        if not switch_on or switch_on == result.was.is_on:\n",
        LOST,
    ),
    mutation(
        "a partition is taken for late by its fence",
        "operations/ttl_guard.py",
        "        if state.cursor >= until:\n",
        "        if max(state.cursor, state.fence) >= until:\n",
        LOST,
    ),
    mutation(
        "TTL is switched on while jobs wait",
        "operations/ttl_guard.py",
        "else not (behind or unknown)\n",
        "else True\n",
        LOST,
    ),
]
OF_JOBS = [
    *IN_TICK,
    *IN_LEASE,
    *IN_TABLE_ROUTE,
    *IN_LEVELS,
    *IN_CANCEL,
    *IN_KEYS,
    *IN_MOVE,
    *IN_WHAT_IS_UNSEEN,
    *IN_FAR,
]
MUTATIONS = [*OF_JOBS, *IN_NAMES, *IN_TTL, *IN_SCHEDULES]
