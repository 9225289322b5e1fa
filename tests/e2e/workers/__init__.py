"""Workers at work: two processes and a Lambda consumer, with failures, cancels, a SIGTERM and a kill -9."""
