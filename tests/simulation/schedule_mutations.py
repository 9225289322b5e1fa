"""What must not be left out of schedules: each mutation breaks one thing, in worlds that have schedules."""

from tests.simulation.mutation import mutations_of

OF_SCHEDULES = mutations_of(
    """
@@ schedules/planner.py
# planned_to is set before the runs are submitted -> never neither, a schedule does not die
-        steps = self._submit(steps, lambda step: step.occurrences)
-        steps = self._submit(steps, lambda step: [step.following] if step.following else [])
-        for plan, is_noted in zip(steps, self._spread(self._note, steps), strict=True):
+        steps = self._submit(steps, lambda step: [step.following] if step.following else [])
+        noted = list(self._spread(self._note, steps))
+        self._submit(steps, lambda step: step.occurrences)
+        for plan, is_noted in zip(steps, noted, strict=True):
# the next planning job is submitted after planned_to is set -> a schedule does not die
         steps = self._submit(steps, lambda step: step.occurrences)
-        steps = self._submit(steps, lambda step: [step.following] if step.following else [])
-        for plan, is_noted in zip(steps, self._spread(self._note, steps), strict=True):
+        noted = list(self._spread(self._note, steps))
+        self._submit(steps, lambda step: [step.following] if step.following else [])
+        for plan, is_noted in zip(steps, noted, strict=True):
# a step ends by the clock -> never both, never neither, nothing after a pause
-end = heads.step(rule, start)
+end = heads.step(rule, max(start, self._now))
# a newer generation's step is acknowledged -> a schedule does not die
     if head is None or head.generation < request.generation:
-        return Verdict.WAIT
+        return Verdict.DONE
# planned_to is compared before generations -> a schedule does not die
+    if head is not None and head.planned_to > request.planned_from:
+        return Verdict.DONE
     if head is None or head.generation < request.generation:
         return Verdict.WAIT
# a step that comes before its time is acknowledged -> a schedule does not die
-Verdict.PLAN if head.planned_to == request.planned_from else Verdict.WAIT
+Verdict.PLAN if head.planned_to == request.planned_from else Verdict.DONE

@@ testing/memory_table.py
# planned_to is set whatever it is -> never both, never neither, nothing after a pause, a schedule does not die, at
#   least once
-is_as_read = (head.get("generation"), head.get("planned_to")) == (generation, planned_to)
+is_as_read = head.get("generation") == generation
# planned_to is set whatever the generation -> never both, never neither, nothing after a pause, a schedule does not die
-is_as_read = (head.get("generation"), head.get("planned_to")) == (generation, planned_to)
+is_as_read = head.get("planned_to") == planned_to
# a change is made whatever planned_to -> never both, never neither, nothing after a pause
-return (head["generation"], head["planned_to"]) == (change.generation, change.planned_to)
+return bool(head["generation"] == change.generation)
# a change is made whatever the generation -> never both, never neither, nothing after a pause, as answered
-return (head["generation"], head["planned_to"]) == (change.generation, change.planned_to)
+return bool(head["planned_to"] == change.planned_to)
# a change cancels only what has a row -> never both, nothing after a pause
             for row in change.cancellations:
+                pk, sk = rows.key(row)
+                if not self._row((pk, sk.replace("#cancelled", "#job"))):
+                    continue

@@ schedules/head.py
# the generation is not in the uid -> never neither, a schedule does not die, never both
-f"{head.queue}/{head.name}/{generation}/{what}"
+f"{head.queue}/{head.name}/{what}"
# each job of a run has another uid -> one run
-f"{head.queue}/{head.name}/{generation}/{what}"
+f"{head.queue}/{head.name}/{generation}/{what}/{uuid.uuid4()}"

@@ schedules/changes.py
# the head is read before the fence -> never both, never neither, nothing after a pause
-    fence = None if fenced is None else _fence(fenced, table)
     of_head

+    fence = None if fenced is None else _fence(fenced, table)
     return StoredSchedule(head=head
# a head that another change may have replaced is taken for the latest -> never both, never neither, nothing after a
#   pause
- and _is_latest(head, table)
# the clock decides where a generation ends -> as answered, never both, never neither
-cutover = resume_time(head, fence, now=now) if is_resumed else cutover_of(head, fence)
+cutover = max(head.start, instant.round_up(now))
# a generation ends at the fence even before its beginning -> never both, never neither
-cutover = head.start if fence is None else max(fence, head.start)
+cutover = head.start if fence is None else fence
# a resume begins at the fence, however long ago that was -> nothing after a pause
-cutover = resume_time(head, fence, now=now) if is_resumed else cutover_of(head, fence)
+cutover = cutover_of(head, fence)
# a change forgets what jitter has put off -> nothing after a pause
-        check_changes(head, cutover)
+        pass
# a change is made whatever the fence -> never both, never neither, nothing after a pause
-fence_below=instant.text(cutover + timedelta(milliseconds=1))
+fence_below="~"
# a change cancels only up to planned_to -> never both, nothing after a pause
-max(cutover, heads.step(rule, head.planned_to))
+max(cutover, head.planned_to)
# a pause leaves what its change has planned itself -> nothing after a pause
-max(cutover, heads.step(rule, head.planned_to))
+heads.step(rule, head.planned_to)
# a pause leaves what jitter has put off of generations before -> nothing after a pause
-ended + delayed
+ended
# the old rule is not planned up to the cut -> never neither
-        self._plan_up_to(cutover, head, now=now, until=until)
# the planning job of a change is submitted after it -> a schedule does not die, never neither
-        self._submit_planning_job(new, now=now, until=until)
         self._plan_up_to

-        return new if self._table.change(change) else None
+        is_done = self._table.change(change)
+        self._submit_planning_job(new, now=now, until=until)
+        return new if is_done else None
# no read barrier for a change's cancellations -> never both, nothing after a pause
-        self._require_read_barriers(ended, now=now)
""",
    needs_schedules=True,
)
