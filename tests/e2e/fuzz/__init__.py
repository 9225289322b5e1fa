"""Requests made up from docs/openapi.json, against the deployed template: what it answers must be what is written."""
