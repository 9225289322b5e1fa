"""The OpenAPI document of the API, for `make schema` and tests: nothing that runs on Lambda imports this."""
