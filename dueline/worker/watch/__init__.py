"""How a worker is watched: what happens to its jobs, as events, and the log, metrics and health made of them."""
