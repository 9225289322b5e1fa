"""The table on DynamoDB, and the notes that let a job have its effect once."""
