"""The client. `api` lists the calls; `http` makes them over HTTP, `aws.direct_api` on AWS itself."""
