"""The steps, and who carries them out."""

SUBMIT, INGEST_FEW, INGEST, TICK, WORKER = "submit", "ingest of 100", "ingest", "tick", "worker"
OURS, BOTO3, HTTP, DYNEIN, BATCHED = "Dueline", "boto3 alone", "HTTP alone", "Dynein", "Dynein batched"
