"""Figures that anyone can repeat: `python -m bench --help`. What came out stands in docs/benchmarks.md.

- cost: what AWS charges for a million jobs, from counted requests and a list of prices
- lateness: how late jobs reach their worker in real time, beside Celery and Dynein's protocol
- cpu: how many jobs a second of CPU processes, step by step, beside bare boto3 calls
- growth: whether a step costs more the more jobs wait, and how a million jobs due at once are sent
- scale: what a partition sustains, and how it recovers from outages, by simulation
- schedules: what one costs a month, how fast a planner plans, a herd at nine, and that nothing scans
- cold: what a function spends before its first event
- workers: a rate that two processes share, a pause, and one process against a bare loop (printed, not stored)
"""
