"""What must not be left out of names: without each rule, one of several promises breaks first."""

from tests.simulation.mutation import kept, mutations_of
from tests.simulation.record import CALLS, FOUND, LIVES, ONE_JOB, SAME, STAYS

PROTOCOL = ("never lost", "exact cancel", "never both", "never neither", "no second job")
KEPT = {
    # A call looks at a job whose fence has just come to it, while its move is not seen yet.
    "what was just moved counts as sent": kept(
        climate="12=1", invoices="0=2", unseen="0=1", **{"invoices_moved names": "0=1 1=1 5=1 11=2 15=1"}
    ),
}
OF_NAMES = mutations_of(
    """
@@ core/cancel.py
# a cancel by key does not follow moves -> a cancel leaves no job
-            if moved is None:
+            if moved is None or moved:

@@ testing/memory_table.py
# a key is taken over whatever it names
-        is_as_read = all(now.get(name) == there.get(name) for name in ("id", "done", "calls"))
+        is_as_read = True
# a move changes a key whatever it names
-            if there.get("id") != change.expected or has_changed:
+            if has_changed:
# another job's key is marked done
-        if is_its:
+        if self._row(key):
             self._mark(key, "done")
# a key is taken over though its call has ended
-for name in ("id", "done", "calls"))
+for name in ("id", "calls"))
# a key is taken over though a call was noted
-for name in ("id", "done", "calls"))
+for name in ("id", "done"))
# a move overwrites that a call was noted
-        has_changed = "calls" in change.row and there.get("calls", "") != change.before
+        has_changed = False
# a shared name is released
-row.get("done") is False and "shared" not in row
+row.get("done") is False and ("shared" not in row or rows.NAME in key[1])

@@ core/rows.py
# a move's cancellation lives as long as the new job
-    latest = id.due if moved_to is None else max(id.due, moved_to.due)
+    latest = id.due if moved_to is None else moved_to.due
# a move's cancellation lives as long as the old job
-    latest = id.due if moved_to is None else max(id.due, moved_to.due)
+    latest = id.due

@@ core/keys.py
# a claimed job is answered unsubmitted
-        return self._job_of(desired, name.id, is_done=name.is_done, is_new=is_new)
+        return self._job_of(desired, name.id, is_done=name.is_done or not is_new, is_new=is_new)
# a claimed job is answered to other content
-        if is_undone or state is _State.WAITING:
-            self._check_content(name, tail, desired)
+        if is_undone and name.content != desired.content_hash:
+            return self._job_of(desired, tail, is_done=True, is_new=False)
# a key forgets displaced calls
-        if earlier is None:
+        if earlier is not None:
             return None
         if earlier.is_move
# a displaced call counts as submitted
-earlier.id, is_done=earlier.is_done)
+earlier.id, is_done=True)
# a key is taken over though its job waits
-            if state is _State.WAITING:
+            if False:
# only an exact cancellation frees a key
-                return name, id, _State.CANCELLED, fence
+                if rows.is_promised(cancellation):
+                    return name, id, _State.CANCELLED, fence
+                return name, id, _State.LEFT if has_left(id, existing) else _State.WAITING, fence
# the key of a moved job is read without a barrier
-        row = self._table.read_barrier(rows.key(name.row))
+        row_key = rows.key(name.row)
+        row = self._table.read([row_key]).rows.get(row_key)
# a key past its ttl is not read again
-        row = table.read_barrier(row_key)
+        row = None
     try:
# a replaced key keeps its old ttl
+        row = {name: row[name] for name in row if name != "ttl"}
         return self._changed({**row, "call": call, "content": content})
# a repeat does not share the key
-            return self._unless_released(name, desired, is_new=True)
+            return self._job_of(desired, name.id, is_done=name.is_done)

@@ core/reschedule.py
# a move by a key is not remembered
-            earlier = row.call_of(call) if row and call else None
+            earlier = None
# a repeat takes another's move for its own
-moved.uid == time.uid_after(id, new_uid=self._new_uid)
+id != source

@@ core/move.py
# what was just moved counts as sent
-    if cancelled not in existing and id.route is Route.TABLE and has_left(id, existing):
+    if False:
# a move by id leaves the key behind
-        if change is None and self.job.key is not None:
+        if change is None and self.job.key is None:
# a move by key goes on without the key
-        return self.change is None and now <
+        return self.change is not None or now <
# a move by id outlasts the retention
-        return self.change is None and now < self.old.due + retention - _CLOCKS_DIFFER
+        return self.change is None
# ingest forgets what a move does to the key
-change=KeyChange(expected=expected, before=before, row=row)
+change=None

@@ core/idempotency.py
# a displaced call is not noted
- and rows.is_name(row):
+ and False:
""",
    breaks=(CALLS, LIVES, ONE_JOB, FOUND, SAME, STAYS, *PROTOCOL),
    decided=KEPT,
)
