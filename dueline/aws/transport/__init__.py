"""The functions' requests for every job: signed and sent without botocore, over connections that stay open."""
