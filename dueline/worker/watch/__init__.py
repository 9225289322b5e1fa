"""Events of a worker and its jobs, and the log, metrics and health made of them."""
