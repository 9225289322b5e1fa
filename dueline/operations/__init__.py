"""What operators do and see: control of queues, dead letters, restore, the TTL guard, and what the doctor finds."""
