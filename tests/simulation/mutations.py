"""What must not be left out of the protocol: each mutation breaks one thing, and names its promises."""

from tests.simulation.mutation import kept, mutations_of
from tests.simulation.name_mutations import OF_NAMES
from tests.simulation.schedule_mutations import OF_SCHEDULES

# Runs that catch mutations which tens of thousands of seeds may miss.
KEPT = {
    # One call has a key twice, and is refused; another takes the key; a third submits the first job by its id.
    "a key is released though another call shares it": kept(
        invoices="0=2 1=1 2=3 6=7 10=1 16=1",
        invoices_again="0=2 1=2 3=3",
        order="29=1 30=2 32=1 33=1",
        schedules="0=1",
        trouble="1=1 3=1",
    ),
    # A job is ingested a second before its retention ends, and the process stands still before it reads.
    "the clock is read before the cancellation": kept(
        emails="2=2 3=1", emails_buffers="0=1", ingest="1=1 3=3 8=1", trouble="7=1 12=1 13=1 19=1 26=1"
    ),
    # A move's cancellation is collected, a cancel puts its own there, and the intent comes again only then.
    "a cancel long after a move says that there was none": kept(
        emails="1=3 2=1 41=1 43=3 102=1 107=1 114=1 117=8 123=1",
        emails_moved="0=2 1=1 18=1",
        ingest="0=6",
        invoices="0=2 1=2 2=1 4=3",
        trouble="4=1 7=1 8=10 13=1 15=1 29=1",
    ),
    # A request for the lease arrives 400 s late, of a clock that is 300 s ahead.
    "a fence is made after its request is signed": kept(far="0=1 5=15 10=1 16=1"),
}
# The last five are of what is far off: clocks that are off, or requests that arrive late, catch them.
# There, the text of a fence that is never later than a signature keeps its place among instants.
OF_JOBS = mutations_of(
    """
@@ core/tick.py
# the cursor is moved before sending -> never lost
             self._has_read_rows |= bool(page.rows)
+            page.rows and self._lease.checkpoint(str(page.rows[-1]["sk"]))
# the cursor goes past an unsent job -> never lost
-            self._is_held_back |= entry.key in unfinished
-            if not self._is_held_back:
+            was, self._is_held_back = self._is_held_back, self._is_held_back or entry.key in unfinished
+            if not was:
# no note of what was sent beyond an unsent job -> at least once
-        return self._note(beyond, read, {each.job for each in result.parked})
+        return True
# a note of what was not sent beyond an unsent job -> never lost
-            elif entry.key not in unfinished:
+            elif self._cursor:
# the cursor is a time, not a key -> never lost
-            self._cursor = entry.key
+            self._cursor = rows.end_of(entry.key.partition("#")[0])
# an eventually consistent query -> never lost, exact cancel
-after=after, until=end)
+after=after, until=end, consistent=False)
# a cancellation is not carried over a page -> exact cancel
-self._entries.of(page.rows, more=page.more)
+Entries().of(page.rows, more=page.more)
# no checkpoint before the end -> at least once
-if is_much or self._clock.monotonic() >= self._lease.renew_at:
+if False:
# a tick sends a pending move without a barrier -> exact cancel, never both
-may_be_moved = prefix == self._move_pending and not is_settled
+may_be_moved = False
# a tick passes over the target of a move -> never lost, never neither
-            self._move_target = prefix
+            self._move_target = ""
# rows of moves are not carried over a page -> exact cancel, never both, never lost, never neither
+        self._move_pending = self._move_target = ""
         entries: list[Entry] = []
# a tick takes no answer for not moved -> exact cancel, never both, never lost, never neither
-        wave, unknown = self._resolved(wave)
+        wave, unknown = self._resolved(wave)[0], set[str]()

@@ core/request.py
# DelaySeconds is rounded down -> never early
-else math.ceil(delay)
+else math.floor(delay)
# no guard -> never early
-GUARD = timedelta(milliseconds=20)
+GUARD = timedelta(0)

@@ core/dispatch.py
# a job past its retention is sent by a tick -> exact cancel
-expired = [job for job in jobs if now >= job.expires]
+expired = list[StoredJob]()
# what is throttled is parked -> never lost
-            return DispatchResult(unfinished=tuple(jobs), fault=str(fault), down=down)
+            return self._park(jobs, str(fault))
         sent

@@ core/partitions.py
# the lease is taken without a condition -> at least once
-            if (state.owner, state.lease) == (self._owner, lease):
+            if state.fence <= fence:
# a missing state is taken for now, not for the beginning -> never lost
-        self.fence, self.cursor = state.fence, state.cursor
+        self.fence = state.fence
+        self.cursor = state.cursor if state.cursor != FIRST else instant.text(self.clock.now())
# a queue's ticks wait for the lease of another queue -> isolation
-        holder = self._try()
+        first = rows.state_key(Partition(queue="emails", number=0))
+        holder = rows.read_state(self.table.read([first]).rows.get(first))
+        if self.partition.queue != "invoices" or holder.lease <= instant.text(self.clock.now()):
+            holder = self._try()
         if holder is None:
             return True

@@ testing/memory_table.py
# the fence may fall -> never lost, exact cancel
-if state.fence <= fence and (state.owner
+if (state.owner

-state.cursor <= cursor and state.fence <= fence
+state.cursor <= cursor
# a repeated cancel writes over the first -> exact cancel
-        if not self._row(rows.key(row)):
-            self._put(row)
+        self._put(row)
# a key is claimed without a condition -> once by key
-if not rows.is_live(self._row(rows.key(row)) or None, now=now):
+if row:
# a key is released though another call shares it -> once by key
- and "shared" not in row
# a job due at the fence is moved -> never both, exact cancel
-fence >= fence_below or self._row(
+fence > fence_below or self._row(
# a move writes over a cancellation -> never both, no second job, exact cancel
-fence >= fence_below or self._row(rows.key(cancellation))
+fence >= fence_below

@@ core/table_writer.py
# the fence is read before the write -> never lost
+        result.written = {job for job in jobs if _has_row(job)}
+        early = self._needs_late_send(set(jobs), result)
+        self._needs_late_send = lambda *_: early
         return self._verify_visibility(set(jobs), self._write(set(jobs), result, have_rows),
# a row due at the fence is taken for a later one -> never lost
-job for job in its if fence < instant.text(job.id.due)
+job for job in its if fence <= instant.text(job.id.due)
# UnprocessedKeys are taken for no fence -> never lost
-unknown = set(chain.from_iterable(by_state[key] for key in fences.unread))
+unknown = set[StoredJob]()
# what is unwritten is acknowledged -> never lost
-        result.undone = unwritten | unknown
+        result.undone = unknown
# the cancellation is read before the fence -> exact cancel
+        early = self._cancelled_among(jobs, result)
+        self._cancelled_among = lambda *_: early
         late, unknown = self._needs_late_send(
# the late path sends what is cancelled -> exact cancel
-sorted(late - undone - cancelled, key=ORDER)
+sorted(late - undone, key=ORDER)
# the clock is read before the cancellation -> exact cancel
+        at, clock = self.clock.now(), self.clock
+        self._then = type("Then", (), {
+            "now": lambda _: at,
+            "monotonic": lambda _: clock.monotonic(),
+            "sleep": lambda _, seconds: clock.sleep(seconds),
+        })()
         cancelled, undone = self._cancelled_among(late, result)

-sent = dispatcher.dispatch(
+sent = __import__("dataclasses").replace(dispatcher, clock=self._then).dispatch(
# no note of what the late path sent -> at least once
-            self._note(sent, result)
# the note is written before the job is sent -> never lost
+            self._note(DispatchResult(dispatched=tuple(jobs)), result)
             sent = self._dispatch(queue, jobs, result, until)
# the late path sends all jobs to one queue -> isolation, never lost
-by_queue[job.id.queue].append(job)
+by_queue[min(each.id.queue for each in late)].append(job)

@@ core/submit.py
# a caller is answered before the fence is read -> never lost
+        written.undone -= written.written
         left = [submission for job
# what the table did not take goes into the buffer under a new id -> never lost, one job
-        refused = self._attempt(self._send_to_inbound, _batches(left), until=until)
+        ids = {each.job.id: replace(each.job.id, uid='f' + each.job.id.uid[1:]) for each in left}
+        renamed = [replace(each, job=replace(each.job, id=ids[each.job.id])) for each in left]
+        refused = self._attempt(self._send_to_inbound, _batches(renamed), until=until)
# what is tried again is due again -> one job
-            return idempotency.checked_id(request.id, queue=self._queue, now=now)
+            given = idempotency.checked_id(request.id, queue=self._queue, now=now)
+            due = max(now, given.due)
+            return JobId(partition=given.partition, route=given.route, due=due, uid=given.uid)
# the breaker drops what it keeps from the table -> never lost
-            return self._buffer(list(by_job.values()), until=until)
+            return {job.id: SubmitResult(job=job, state=State.ACCEPTED) for job in by_job}

@@ core/rows.py
# a row forgets its job's priority -> own level
-return {**texts, **({} if job.priority == 1 else {"priority": job.priority})}
+return {**texts}
# a cancellation is collected with its job -> exact cancel
-(latest, later=MAX_RETENTION + CANCELLATION_OUTLIVES_RETENTION)
+(latest, later=MAX_RETENTION)
# a key is noted as done before its job is submitted -> never lost
-payload_hash": payload_hash, "done": False
+payload_hash": payload_hash, "done": True

@@ core/message.py
# a message forgets its job's priority -> own level
-        attributes |= {PRIORITY: str(job.priority)} if job.priority != 1 else {}
# a batch holds jobs of several levels -> own level
-levels = groupby(sorted(sorted(jobs, key=by), key=_BY_PRIORITY), key=_BY_PRIORITY)
+levels = [(1, jobs)]

@@ core/reschedule.py
# a moved job forgets its priority -> own level
-replace(job, id=id, expires=time.due + self._queue.retention)
+replace(job, id=id, expires=time.due + self._queue.retention, priority=1)

@@ core/cancel.py
# the fence is read before the cancellation is written -> exact cancel
-        written = list(
+        seen = self._states_of({id.partition for id in ids if isinstance(id, JobId)})
+        written = list(

-self._states_of({each.id.partition for each in undecided})
+seen
# a promise is noted before the fence is known -> exact cancel
+        for each in written:
+            self.table.mark_exact(rows.cancellation_key(each.id))
         # Read after the cancellations are written
# an unread fence is taken for none -> exact cancel
-    if key in fences.unread:
+    if False:
# a direct job's cancel is promised -> exact cancel
- and self.id.route is Route.TABLE
# a worker takes unread cancellations for none -> skipped by workers
-    return {by_key[key] for key in read_all(by_key, table=table).whole("cancellations")}
+    return {by_key[key] for key in read_all(by_key, table=table).rows}

@@ core/idempotency.py
# a repeat submits an id of its own -> once by key
-id=first, expires=first.due
+id=job.id, expires=first.due

@@ core/move.py
# the intent is sent after the transaction -> never lost, never neither
-            if not is_whole:
-                self._announce(intent)
-            is_done
+            is_done

-            return is_done or self._is_done(intent)
+            is_done = is_done or self._is_done(intent)
+            is_whole or self._announce(intent)
+            return is_done
# a job is moved whole though a tick may not see the new one -> never lost, never neither
-            before = min(before, self.job.id.due)
+
# a move is decided by the fence of the later time -> never both, exact cancel
-            before = min(before, self.job.id.due)
+            before = max(before, self.job.id.due)
# a cancel long after a move says that there was none -> never lost
-    if moved is None:
+    if cancellation is None:
# ingest takes a refusal for the end without looking who moved the job -> never lost, never neither
             return True
-        cancellation = table.read_barrier(cancelled)
+        return False
# a caller takes a refusal for the end though ingest has moved the job -> no second job
-            return is_done or self._is_done(intent)
+            return is_done
# no row that a move is pending -> exact cancel, never both
-            pending.append(move_row(self.job.id, MOVE_TARGET, at=now))
+            pending = [move_row(self.job.id, MOVE_TARGET, at=now)]
# no row of the target of a move -> never lost, never neither
-            pending.append(move_row(self.job.id, MOVE_TARGET, at=now))
+
# the rows of a move are put after the transaction -> exact cancel, never both, never lost, never neither
+        move, old = table.move, [rows.cancellation_row(self.old, at=clock.now(), moved_to=self.job.id)]
+        terms = {"state": rows.state_key(self.old.partition), "fence_below": instant.text(before)}
+        if move(*old, rows.job_row(self.job), **terms) is MoveOutcome.DONE:
+            return not table.write(pending)
         if table.write(pending):

@@ core/ingest.py
# ingest writes the new job's row without the transaction -> never both, no second job
-unsettled = self._settle([each for each in parsed.intents if each.job in jobs], done, settle_until)
+unsettled = set[StoredJob]()
# ingest leaves a moved job to a tick unseen -> never lost, never neither
-here = jobs - unsettled - done.dropped
+here = jobs - unsettled - done.dropped - done.moved

@@ operations/ttl_guard.py
# TTL is not switched off -> never lost
-        if switch_on == was_on:
+        if not switch_on or switch_on == was_on:
# a partition is taken for late by its fence -> never lost
-        if state.cursor >= until:
+        if max(state.cursor, state.fence) >= until:
# TTL is switched on while jobs wait -> never lost
-else not (behind or unknown)
+else True

@@ core/partitions.py
# what is due in half an hour is far -> never lost, exact cancel
-FAR = timedelta(minutes=60)
+FAR = timedelta(minutes=30)
# a fence is signed by a clock that was set back since -> never lost, exact cancel
-return started, instant.text(now), lease,
+return started, type("", (str,), {"__gt__": lambda *_: False})(instant.text(now)), lease,

@@ core/table_writer.py
# the row of a far job is signed at any time -> never lost
-result=result, signed_before=signed_before)
+result=result)

-self.table.add(row, signed_before=signed_before)
+self.table.add(row)

@@ core/cancel.py
# a cancel of a far job is signed at any time -> exact cancel
-, "exact": True}, signed_before=latest)
+, "exact": True})

@@ core/partitions.py
# a fence is made after its request is signed -> never lost, exact cancel
-owner=self._owner, now=now, lease=lease, fence=fence)
+owner=self._owner, now=now, lease=lease, fence=lambda: self._terms()[3])

@@ testing/memory_table.py
-        state = self._state(partition)
+        state, fence = self._state(partition), fence()
         if state.fence <= fence and
""",
    decided=KEPT,
)
MUTATIONS = [*OF_JOBS, *OF_NAMES, *OF_SCHEDULES]
