"""A second opinion on the protocol: a model of one partition, small enough to visit every state that it can be in.

Two jobs of one millisecond; two deliveries of their messages, the second because the first failed or SQS repeats it;
two ticks, the lease of each of which may run out at any moment; any number of cancels of the first job, one after
another; a crash, a lost answer or a call done in part at every step. It follows docs/architecture.md, and imports
nothing of the code. Each function tells what may come of a step, first what does when nothing goes wrong.

    python -m tests.simulation.model [--without RULE]
"""
