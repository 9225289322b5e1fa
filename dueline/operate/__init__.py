"""What people on call do: pause a queue and limit its rate, look at dead letters and redrive them.

Imports `lookup`, `retry`, `model` and what is below them.
"""
