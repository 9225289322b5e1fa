"""The Lambda functions, a thin file each: `api`, `ingest` and `tick`; and what they share."""
