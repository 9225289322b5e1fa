"""The protocol: how jobs are submitted, ingested, dispatched, cancelled and rescheduled, and what they are made of.

It knows the table and the queues by `ports` alone, so that the simulation runs it as it is. Imports the standard
library and `errors`.
"""
