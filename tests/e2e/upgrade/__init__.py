"""A release takes over from its predecessor, hands back, and takes over again, under traffic and kills."""
