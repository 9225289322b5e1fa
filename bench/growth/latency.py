"""What the herd's calls are taken to last: parameters, not measurements."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Latency:
    """How long calls take, in seconds, and what share of a processor a tick has.

    `send`, a SendMessageBatch from the same region: the average of AWS's own example,
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-throughput-horizontal-scaling-and-batching.html.
    `write`, an UpdateItem: the upper end of the "single-digit millisecond" that DynamoDB promises,
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Introduction.html.
    `page`, a Query of 1 MB: assumed, as ten writes, because no published figure was found.
    `job_cpu`, the CPU of one job of a tick on a whole processor, boto3 included: what this part measures of a tick of
    1,000 jobs, rounded up for TLS, which the loopback does without; the report tells what the run itself measured.
    `vcpu`, a tick's share of a processor: 512 MB of the 1,769 that are one,
    https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html.
    """

    send: float = 0.020
    write: float = 0.010
    page: float = 0.100
    job_cpu: float = 0.00025
    vcpu: float = 512 / 1769

    def cpu(self, jobs: int) -> float:
        """Return how long a tick computes for so many jobs: its threads share one interpreter, and so one processor."""
        return jobs * self.job_cpu / self.vcpu
