"""What a worker does with the jobs of a queue, pure of AWS."""
