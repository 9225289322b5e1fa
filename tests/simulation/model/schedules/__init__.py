"""The fourth model: a schedule, whose occurrences planners make, ahead of a tick, and whose definition is changed.

Nominals are 1, 2, 3 and 4 at most. Planners and callers crash after each step, stand still, and begin again. A tick
raises the fence, then queries and sends. Clocks say what they like. What a transaction did may not be seen at once.

What the core promises is taken as it is, for the other models have its steps. Whoever has submitted an occurrence knows
that it is sent if the fence is past it, and left to a tick if not, unless it is cancelled. So a submission is one step:
one that ends in the middle is done again, or never told of. The same holds for planning jobs.
"""
