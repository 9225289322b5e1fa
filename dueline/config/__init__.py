"""What is configured: queues.yaml, and what of it reaches the functions."""
