"""The API as OpenAPI tells it, for `make schema` and tests: nothing that runs on Lambda imports this."""
