"""Where a local deployment is reached."""

from dataclasses import dataclass

from dueline.config.deployment import Deployment
from local.emulator import CREDENTIALS, REGION, Emulator


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoints:
    """The URLs and names of a local deployment, `name` its own. `aws` is the endpoint of every AWS service in it.

    `console_port` is where `make console` serves the console.
    """

    name: str
    api: str
    aws: str
    region: str
    inbound_url: str
    queues: dict[str, str]
    dead_letter_queues: dict[str, str]
    console_port: int = 0

    def to_env(self) -> dict[str, str]:
        """Return the environment in which the command line, the client and boto3 speak to this deployment."""
        return {
            "DUELINE_URL": self.api,
            "DUELINE_NAME": self.name,
            "DUELINE_CONSOLE_PORT": str(self.console_port),
            "AWS_ENDPOINT_URL": self.aws,
            "AWS_DEFAULT_REGION": self.region,
            **{name.upper(): value for name, value in CREDENTIALS.items()},
        }


def find(emulator: Emulator, deployment: Deployment) -> Endpoints:
    """Return the endpoints of a deployment that runs in the emulator."""
    names = deployment.names
    queues = {queue: names.queue(queue) for queue in deployment.queues}
    dead_letters = {"inbound": names.inbound_dlq, "dispatch": names.dispatch_dlq, "tick": names.tick_dlq}
    dead_letters |= {queue: names.queue_dlq(queue) for queue in deployment.queues}
    api_id = emulator.client("ssm").get_parameter(Name=names.api_id_parameter)["Parameter"]["Value"]
    return Endpoints(
        name=deployment.name,
        # The emulator's own host name for an API does not resolve everywhere; its path does.
        api=f"{emulator.endpoint}/_aws/execute-api/{api_id}/$default",
        aws=emulator.endpoint,
        region=REGION,
        inbound_url=_url(emulator, names.inbound),
        queues={queue: _url(emulator, name) for queue, name in queues.items()},
        dead_letter_queues={queue: _url(emulator, name) for queue, name in dead_letters.items()},
    )


def publish(emulator: Emulator, deployment: Deployment, endpoints: Endpoints) -> None:
    """Let clients find the API at the URL in `endpoints`, in place of the emulator's own host name for it."""
    name = deployment.names.api_url_parameter
    emulator.client("ssm").put_parameter(Name=name, Value=endpoints.api, Type="String", Overwrite=True)


def _url(emulator: Emulator, queue: str) -> str:
    return str(emulator.client("sqs").get_queue_url(QueueName=queue)["QueueUrl"])
