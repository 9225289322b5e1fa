"""Workers at work: one, one of two processes, and a Lambda consumer, with failures, cancels, a SIGTERM, a kill -9."""
