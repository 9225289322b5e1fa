"""A second opinion on the protocol: five models, small enough to visit every state that they can be in.

The first (jobs.py): two jobs of one millisecond; two deliveries of their messages, the second because the first
failed or SQS repeats it; two ticks, the lease of each of which may run out at any moment; any number of cancels of the
first job, one after another; a crash, a lost answer or a call done in part at every step.

The second (moves.py): one job, and a reschedule of it to a later or a sooner time in its partition, or in another
partition; any number of deliveries of its message, one at a time, and of the intent, two at a time; any number of
ticks, two at a time; any number of cancels of either job; and what may go wrong at every step, likewise, with a table
that shows the rows of a transaction one before the other.

The third (producers.py): one job, and producers that write its row themselves, two at a time, any number, all with the
same id; puts without an answer that take effect later or never; the inbound queue for what the table does not take;
any number of deliveries, ticks and cancels. Such a job is rescheduled, too (moves.py): there its producers and
its deliveries are one kind of process.

The fourth (schedules.py): a schedule, its planners, and changes of its definition, over what the others hold.

The fifth (names.py): two or three calls about the key of a job that is to be its name, of which each may be given up
and made again, or its caller die; a tick, the inbound queue and what TTL deletes.

They follow docs/architecture.md, the fifth docs/decisions/0054-a-key-names-a-job.md, and import nothing of the code.
Each function yields what a step may lead to, first the case in which nothing goes wrong.

    python -m tests.simulation.model
"""
