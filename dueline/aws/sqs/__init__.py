"""Queues on SQS: sending, receiving and acknowledging, and moving dead letters."""
