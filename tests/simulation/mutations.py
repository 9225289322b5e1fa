"""What must not be left out of the protocol: each mutation breaks one thing, and names the promises that then break."""

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
from tests.simulation.schedule_mutations import IN_SCHEDULES

IN_TICK = [
    mutation(
        "the cursor is moved before sending",
        "protocol/tick.py",
        "            self._seen |= bool(page.rows)\n",
        "            self._seen |= bool(page.rows)\n"
        '            page.rows and self._lease.checkpoint(str(page.rows[-1]["sk"]))\n',
        LOST,
    ),
    mutation(
        "the cursor goes past an unsent job",
        "protocol/tick.py",
        "            if entry.key in unfinished:\n                return False\n            self._cursor = entry.key\n",
        "            self._cursor = entry.key\n            if entry.key in unfinished:\n                return False\n",
        LOST,
    ),
    mutation(
        "the cursor goes to the highest finished job",
        "protocol/tick.py",
        "            if entry.key in unfinished:\n                return False\n",
        "            if entry.key in unfinished:\n                continue\n",
        LOST,
    ),
    mutation(
        "the cursor is a time, not a key",
        "protocol/tick.py",
        "            self._cursor = entry.key\n",
        '            self._cursor = rows.end_of(entry.key.partition("#")[0])\n',
        LOST,
    ),
    mutation(
        "an eventually consistent query",
        "protocol/tick.py",
        "after=after, until=end)",
        "after=after, until=end, consistent=False)",
        LOST,
        EXACT,
    ),
    mutation(
        "a cancellation is not carried over a page",
        "protocol/tick.py",
        "self._entries.of(page.rows, more=page.more)",
        "Entries().of(page.rows, more=page.more)",
        EXACT,
    ),
    mutation(
        "no checkpoint before the end",
        "protocol/tick.py",
        "if self._unsaved >= CHECKPOINT_JOBS or self._clock.monotonic() >= self._lease.renew_at:",
        "if False:",
        TWICE,
    ),
    mutation(
        "DelaySeconds is rounded down", "model/routing.py", "else math.ceil(delay)\n", "else math.floor(delay)\n", EARLY
    ),
    mutation(
        "a job past its retention is sent by a tick",
        "protocol/dispatch.py",
        "expired = [job for job in jobs if now >= job.expires]",
        "expired = list[Job]()",
        EXACT,
    ),
    mutation(
        "what is throttled is parked",
        "protocol/dispatch.py",
        "            return Handed(unfinished=tuple(jobs), fault=str(fault))\n        sent",
        "            return self._park(jobs, str(fault))\n        sent",
        LOST,
    ),
]

IN_LEASE = [
    mutation(
        "the lease is taken without a condition",
        "protocol/lease.py",
        "            if (state.owner, state.lease) == (self._owner, lease):\n",
        "            if state.fence <= fence:\n",
        TWICE,
    ),
    Mutation(
        name="the fence may fall",
        breaks=[LOST, EXACT],
        edits=[
            Edit(file="memory/table.py", old="if state.fence <= fence and (state.owner", new="if (state.owner"),
            Edit(
                file="memory/table.py",
                old="state.cursor <= cursor and state.fence <= fence",
                new="state.cursor <= cursor",
            ),
        ],
    ),
    mutation(
        "a missing state is taken for now, not for the beginning",
        "protocol/lease.py",
        "        self.fence, self.cursor = state.fence, state.cursor\n",
        "        self.fence = state.fence\n"
        "        self.cursor = state.cursor if state.cursor != FIRST else instant.text(self._clock.now())\n",
        LOST,
    ),
]

IN_TABLE_ROUTE = [
    mutation(
        "no fence check after the write",
        "protocol/table_route.py",
        "seen_later.update(job for job in its if fence < instant.text(job.id.due))",
        "seen_later.update(its)",
        LOST,
    ),
    mutation(
        "the fence is read before the write",
        "protocol/table_route.py",
        "        return self._see_to(set(jobs), self._write(set(jobs), taken, have_rows), taken, until)\n",
        "        taken.written = {job for job in jobs if _has_row(job)}\n"
        "        early = self._not_left_to_a_tick(set(jobs), taken)\n"
        "        self._not_left_to_a_tick = lambda *_: early\n"
        "        return self._see_to(set(jobs), self._write(set(jobs), taken, have_rows), taken, until)\n",
        LOST,
    ),
    mutation(
        "a row due at the fence is taken for a later one",
        "protocol/table_route.py",
        "job for job in its if fence < instant.text(job.id.due)",
        "job for job in its if fence <= instant.text(job.id.due)",
        LOST,
    ),
    mutation(
        "UnprocessedKeys are taken for no fence",
        "protocol/table_route.py",
        "unknown = set(chain.from_iterable(by_state[key] for key in fences.unread))",
        "unknown = set[Job]()",
        LOST,
    ),
    mutation(
        "what is unwritten is acknowledged",
        "protocol/table_route.py",
        "        taken.undone = unwritten | unknown\n",
        "        taken.undone = unknown\n",
        LOST,
    ),
    Mutation(
        name="the cancellation is read before the fence",
        breaks=[EXACT],
        edits=[
            Edit(
                file="protocol/table_route.py",
                old="        late, unknown = self._not_left_to_a_tick(",
                new="        early = self._cancelled_among(jobs, taken)\n"
                "        self._cancelled_among = lambda *_: early\n"
                "        late, unknown = self._not_left_to_a_tick(",
            ),
        ],
    ),
    mutation(
        "the late path sends what is cancelled",
        "protocol/table_route.py",
        "sorted(late - undone - cancelled, key=ORDER)",
        "sorted(late - undone, key=ORDER)",
        EXACT,
    ),
    Mutation(
        name="the clock is read before the cancellation",
        breaks=[EXACT],
        edits=[
            Edit(
                file="protocol/table_route.py",
                old="        cancelled, undone = self._cancelled_among(late, taken)\n",
                new="        at, clock = self._clock.now(), self._clock\n"
                '        then = type("Then", (), {"now": lambda _: at, "monotonic": lambda _: clock.monotonic(),'
                ' "sleep": lambda _, seconds: clock.sleep(seconds)})()\n'
                "        cancelled, undone = self._cancelled_among(late, taken)\n",
            ),
            Edit(
                file="protocol/table_route.py",
                old="self._dispatcher(queue).hand_over(jobs, until=until)",
                new='__import__("dataclasses").replace(self._dispatcher(queue), clock=then)'
                ".hand_over(jobs, until=until)",
            ),
        ],
        # A job is ingested a second before its retention ends, and the process stands still before it reads.
        decided=kept(
            emails="2=2 3=1",
            emails_buffers="0=1",
            ingest="1=1 3=2 8=1",
            trouble="7=1 12=1 13=1 19=1 26=1",
        ),
    ),
    mutation(
        "no note of what the late path sent",
        "protocol/table_route.py",
        "            self._note(handed, taken)\n",
        "",
        TWICE,
    ),
    mutation(
        "the note is written before the job is sent",
        "protocol/table_route.py",
        "            handed = self._dispatcher(queue).hand_over(jobs, until=until)\n",
        "            self._note(Handed(dispatched=tuple(jobs)), taken)\n"
        "            handed = self._dispatcher(queue).hand_over(jobs, until=until)\n",
        LOST,
    ),
    mutation(
        "the late path sends all jobs to one queue",
        "protocol/table_route.py",
        "by_queue[job.id.queue].append(job)",
        "by_queue[min(each.id.queue for each in late)].append(job)",
        "isolation",
        LOST,
    ),
    mutation(
        "a caller is answered before the fence is read",
        "protocol/write_through.py",
        "        left = [submission for job",
        "        taken.undone -= taken.written\n        left = [submission for job",
        LOST,
    ),
    mutation(
        "what the table did not take goes into the buffer under a new id",
        "protocol/write_through.py",
        "    errors = buffer(left)\n",
        '    new = __import__("dataclasses").replace\n'
        "    ids = {each.job.id: new(each.job.id, uid='f' + each.job.id.uid[1:]) for each in left}\n"
        "    errors = buffer([new(each, job=new(each.job, id=ids[each.job.id])) for each in left])\n",
        LOST,
        ONE,
    ),
    mutation(
        "what is tried again is due anew",
        "protocol/submission.py",
        "            return given_id.checked(request.id, queue=self._queue, now=now)\n",
        "            given = given_id.checked(request.id, queue=self._queue, now=now)\n"
        "            due = max(now, given.due)\n"
        "            return JobId(partition=given.partition, route=given.route, due=due, uid=given.uid)\n",
        ONE,
    ),
    mutation(
        "the breaker drops what it keeps from the table",
        "protocol/write_through.py",
        "            return _buffered(list(by_job.values()), buffer)\n",
        "            return Written()\n",
        LOST,
    ),
]

IN_LEVELS = [
    mutation(
        "a row forgets its job's priority",
        "model/rows.py",
        'priority = {} if job.priority == 1 else {"priority": job.priority}',
        "priority: dict[str, int] = {}",
        LEVEL,
    ),
    mutation(
        "a message forgets its job's priority",
        "model/message.py",
        "        attributes |= {PRIORITY: str(job.priority)} if job.priority != 1 else {}\n",
        "",
        LEVEL,
    ),
    mutation(
        "a batch holds jobs of several levels",
        "model/message.py",
        "levels = groupby(sorted(jobs, key=_BY_PRIORITY), key=_BY_PRIORITY)",
        "levels = [(1, jobs)]",
        LEVEL,
    ),
    mutation(
        "a moved job forgets its priority",
        "protocol/reschedule.py",
        "replace(job, id=id, expires=due + self._queue.retention)",
        "replace(job, id=id, expires=due + self._queue.retention, priority=1)",
        LEVEL,
    ),
]

IN_CANCEL = [
    Mutation(
        name="the fence is read before the cancellation is written",
        breaks=[EXACT],
        edits=[
            Edit(
                file="protocol/cancel.py",
                old="    written = _Written(id=id, cancellation=table.add(",
                new="    seen = states_of([id.partition], table=table)\n"
                "    written = _Written(id=id, cancellation=table.add(",
            ),
            Edit(
                file="protocol/cancel.py",
                old="states_of([id.partition], table=table) if written.asks_for_the_fence else Reading()",
                new="seen",
            ),
        ],
    ),
    mutation(
        "a promise is noted before the fence is known",
        "protocol/cancel.py",
        "    # Read after the cancellation is written",
        "    table.mark_exact(rows.cancellation_key(id))\n    # Read after the cancellation is written",
        EXACT,
    ),
    mutation(
        "an unread fence is taken for none",
        "protocol/cancel.py",
        "    if key in fences.unread:\n",
        "    if False:\n",
        EXACT,
    ),
    mutation(
        "a direct job's cancel is promised",
        "protocol/cancel.py",
        " and self.id.route is Route.TABLE",
        "",
        EXACT,
    ),
    mutation(
        "a repeated cancel writes over the first",
        "memory/table.py",
        "        if sk not in self._rows[pk]:\n            self._put(row)\n",
        "        self._put(row)\n",
        EXACT,
    ),
    mutation(
        "a cancellation is collected with its job",
        "model/rows.py",
        "later=MAX_RETENTION + CANCELLATION_OUTLIVES_RETENTION",
        "later=MAX_RETENTION",
        EXACT,
    ),
    mutation(
        "a worker takes unread cancellations for none",
        "skip.py",
        "        found.unread.update((by_key[key], left) for key in reading.unread)\n",
        "",
        "skipped by workers",
    ),
]
IN_KEYS = [
    mutation(
        "a key is claimed without a condition",
        "memory/table.py",
        "if not rows.is_live(self._rows[pk].get(sk), now=now):",
        "if row:",
        ONCE,
    ),
    mutation(
        "a repeat submits an id of its own",
        "protocol/keys.py",
        "id=first, expires=first.due",
        "id=job.id, expires=first.due",
        ONCE,
    ),
    mutation(
        "a key is noted as done before its job is submitted",
        "model/rows.py",
        '"done": False',
        '"done": True',
        LOST,
    ),
    mutation(
        "a key is noted as done whosesoever it is by now",
        "memory/table.py",
        'self._rows[pk].get(sk, {}).get("id") == id',
        "sk in self._rows[pk]",
        LOST,
    ),
]

IN_MOVE = [
    Mutation(
        name="the intent is sent after the transaction",
        breaks=[LOST, NEITHER],
        edits=[
            Edit(
                file="protocol/reschedule.py",
                old="        self._announce(intent)\n        is_ours",
                new="        is_ours",
            ),
            Edit(
                file="protocol/reschedule.py",
                old="            self._check_who_was_quicker(intent)\n        return is_ours",
                new="            self._check_who_was_quicker(intent)\n"
                "        self._announce(intent)\n        return is_ours",
            ),
        ],
    ),
    mutation(
        "a job is moved whole though a tick may not see the new one",
        "protocol/move.py",
        "before=min(self.old.due, self.job.id.due)",
        "before=self.old.due",
        LOST,
        NEITHER,
    ),
    mutation(
        "a job is moved whole by the fence of before",
        "protocol/move.py",
        "before=min(self.old.due, self.job.id.due)",
        "before=max(self.old.due, self.job.id.due)",
        BOTH,
        EXACT,
    ),
    mutation(
        "ingest writes the new job's row without the transaction",
        "protocol/ingest.py",
        "unsettled = self._settle([each for each in intents if each.job in receives], done, ends.settling)",
        "unsettled = set[Job]()",
        BOTH,
        SECOND,
    ),
    mutation(
        "a job is moved whatever the fence",
        "memory/table.py",
        "takes_effect = fence < fence_below and sk not in self._rows[pk]",
        "takes_effect = sk not in self._rows[pk]",
        BOTH,
        EXACT,
    ),
    mutation(
        "a job due at the fence is moved",
        "memory/table.py",
        "takes_effect = fence < fence_below and",
        "takes_effect = fence <= fence_below and",
        BOTH,
        EXACT,
    ),
    Mutation(
        name="a cancel long after a move says that there was none",
        breaks=[LOST],
        edits=[Edit(file="protocol/move.py", old="    if moved is None:\n", new="    if cancellation is None:\n")],
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
        "memory/table.py",
        "takes_effect = fence < fence_below and sk not in self._rows[pk]",
        "takes_effect = fence < fence_below",
        BOTH,
        SECOND,
        EXACT,
    ),
    mutation(
        "ingest leaves a moved job to a tick unseen",
        "protocol/ingest.py",
        "here = receives.keys() - unsettled - done.dropped",
        "here = receives.keys() - unsettled - done.dropped - done.moved",
        LOST,
        NEITHER,
    ),
    mutation(
        "ingest takes a refusal for the end without looking who moved the job",
        "protocol/move.py",
        "            return True\n        cancellation = table.ask_for(cancelled)\n",
        "            return True\n        return False\n",
        LOST,
        NEITHER,
    ),
    mutation(
        "a caller takes a refusal for the end though ingest has moved the job",
        "protocol/reschedule.py",
        "            self._check_who_was_quicker(intent)\n",
        "            _refuse(intent.old)\n",
        SECOND,
    ),
]

IN_WHAT_IS_UNSEEN = [
    mutation(
        "no row that a move was asked for",
        "protocol/move.py",
        "asks = [asked_row(self.old, at=now), awaited_row(self.job.id, at=now)]",
        "asks = [awaited_row(self.job.id, at=now)]",
        EXACT,
        BOTH,
    ),
    mutation(
        "no row that a job is awaited",
        "protocol/move.py",
        "asks = [asked_row(self.old, at=now), awaited_row(self.job.id, at=now)]",
        "asks = [asked_row(self.old, at=now)]",
        LOST,
        NEITHER,
    ),
    mutation(
        "what is asked for is put after the transaction",
        "protocol/move.py",
        "        if table.write(asks):\n",
        "        move, old = table.move, [rows.cancellation_row(self.old, at=clock.now(), moved_to=self.job.id)]\n"
        "        if move(*old, rows.job_row(self.job), state=rows.state_key(self.old.partition),"
        " fence_below=instant.text(before)):\n            return not table.write(asks)\n"
        "        if table.write(asks):\n",
        EXACT,
        BOTH,
        LOST,
        NEITHER,
    ),
    mutation(
        "a tick sends what was asked to be moved without asking",
        "protocol/entries.py",
        "may_be_moved = prefix == self._asked and not is_settled",
        "may_be_moved = False",
        EXACT,
        BOTH,
    ),
    mutation(
        "a tick passes over what is awaited",
        "protocol/entries.py",
        "            self._awaited = prefix\n",
        '            self._awaited = ""\n',
        LOST,
        NEITHER,
    ),
    mutation(
        "what was asked is not carried over a page",
        "protocol/entries.py",
        "        entries: list[Entry] = []\n",
        '        self._asked = self._awaited = ""\n        entries: list[Entry] = []\n',
        EXACT,
        BOTH,
        LOST,
        NEITHER,
    ),
    mutation(
        "a tick takes no answer for not moved",
        "protocol/tick.py",
        "        wave, unknown = self._looked_up(wave)\n",
        "        wave, unknown = self._looked_up(wave)[0], set[str]()\n",
        EXACT,
        BOTH,
        LOST,
        NEITHER,
    ),
]
IN_TTL = [
    mutation(
        "TTL is not switched off",
        "protocol/ttl_guard.py",
        "        if wanted == found.was.is_on:\n",
        "        if not wanted or wanted == found.was.is_on:\n",
        LOST,
    ),
    mutation(
        "a partition is taken for late by its fence",
        "protocol/ttl_guard.py",
        "        if state.cursor >= until:\n",
        "        if max(state.cursor, state.fence) >= until:\n",
        LOST,
    ),
    mutation(
        "TTL is switched on while jobs wait",
        "protocol/ttl_guard.py",
        "else not (seen.behind or unknown)\n",
        "else True\n",
        LOST,
    ),
]
OF_JOBS = [*IN_TICK, *IN_LEASE, *IN_TABLE_ROUTE, *IN_LEVELS, *IN_CANCEL, *IN_KEYS, *IN_MOVE, *IN_WHAT_IS_UNSEEN]
MUTATIONS = [*OF_JOBS, *IN_TTL, *IN_SCHEDULES]
