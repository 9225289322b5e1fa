"""Preflight: what would go wrong in deploying a queues.yaml. It only reads."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.credentials import RefreshableCredentials

from dueline.aws import deployment_context
from dueline.aws.aws_deployment import AwsDeployment
from dueline.aws.botocore_errors import is_missing, map_caller_errors, unless
from dueline.aws.clients import Clients
from dueline.core.queue_settings import QueueSettings
from dueline.errors import DeploymentNotFound, DuelineError, Unavailable
from dueline.operations.observation import Check
from dueline.operations.stranded import REMOVED, DeploymentShape, StrandedItems

if TYPE_CHECKING:
    from boto3 import Session

    from dueline.config.deployment import Deployment

_LONGEST_REQUEST = timedelta(seconds=15)
# Lambda lets nobody reserve the last 100 executions of an account.
_LEAST_CONCURRENCY = 100
# What the CDK's templates need of the bootstrap stack, and where it says its version.
_LEAST_BOOTSTRAP = 6
_BOOTSTRAP = "/cdk-bootstrap/hnb659fds/version"
# A first deployment takes about ten minutes, and two more for each queue's stack.
_LEAST_TIME = timedelta(minutes=30)
_STRANDS_NEEDS = "ssm:GetParametersByPath, sqs:GetQueueAttributes, dynamodb:Query and dynamodb:BatchGetItem"


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """What would go wrong in a deployment, and what to do about it."""

    about: str
    what: str
    do: str


@dataclass(frozen=True, kw_only=True)
class Preflight:
    """Checks what is deployed, and the account. `queues` is the file that `declared` was read from."""

    declared: "Deployment"
    queues: Path
    session: "Session"
    now: datetime

    @cached_property
    def client(self) -> Callable[[str], Any]:
        """Returns the client of a service, the same for all threads."""
        return Clients(self.session, longest=_LONGEST_REQUEST).of

    def checks(self) -> list[Check]:
        """Return all checks; each returns the problems that it sees."""
        every: tuple[tuple[str, str, Callable[[], Iterable[Problem]]], ...] = (
            ("what would be stranded", _STRANDS_NEEDS, self._stranded),
            ("credentials", "", self._credentials),
            ("Lambda concurrency", "lambda:GetAccountSettings, lambda:GetFunctionConcurrency", self._concurrency),
            ("the CDK's bootstrap", "ssm:GetParameter", self._bootstrap),
        )
        return [Check(what=what, needs=needs, look=partial(_look, what, look)) for what, needs, look in every]

    def _stranded(self) -> Iterator[Problem]:
        """What cannot be read is a problem too: it may hold jobs."""
        try:
            there = deployment_context.find_deployment(self.declared.name, session=self.session, now=self.now)
        except DeploymentNotFound:
            return
        except Exception as error:
            yield _unread("deployment", "what is deployed", error)
            return
        for each in there.deployment.queues:
            name = each.name
            try:
                if lost := self._lost(each, there.aws, there.now):
                    yield Problem(about=f"queue {name}", what=f"{self._change(name)} {', '.join(lost)}", do=_KEEP)
            except Exception as error:
                yield _unread(f"queue {name}", "whether jobs would be stranded", error)

    def _change(self, queue: str) -> str:
        return f"{'changed' if queue in self.declared.queues else 'removed'} in {self.queues.name}, which would strand"

    def _lost(self, queue: QueueSettings, deployed: AwsDeployment, now: datetime) -> list[str]:
        new = next((each for each in self.declared.queue_settings() if each.name == queue.name), None)
        days = self.declared.queues[queue.name].message_retention_days if new else 0
        new_shape = (
            DeploymentShape(partitions=new.partitions, priorities=new.priorities, message_days=days) if new else REMOVED
        )
        with map_caller_errors(f"looking at queue {queue.name}"):
            kept = self._message_days(deployed.url(deployed.names.queue(queue.name)))
            old = DeploymentShape(partitions=queue.partitions, priorities=queue.priorities, message_days=kept)
            if not old.loses(new_shape):
                return []
            strands = StrandedItems(
                queue=queue,
                table=deployed.table,
                level=partial(deployed.team_queue, queue.name),
                dead_letters=partial(deployed.dead_letter_queue, queue.name),
                now=now,
                spread=deployed.spread,
            )
            return strands.lost(old, new_shape)

    def _message_days(self, url: str) -> int:
        look = partial(self.client("sqs").get_queue_attributes, AttributeNames=["MessageRetentionPeriod"])
        with map_caller_errors(f"reading {url}"):
            answer = unless(is_missing, lambda: look(QueueUrl=url))
        return int(answer["Attributes"]["MessageRetentionPeriod"]) // 86_400 if answer else 0

    def _credentials(self) -> Iterator[Problem]:
        """Credentials of the environment are not renewed, and only some say when they end."""
        credentials = self.session.get_credentials()
        if credentials is None:
            yield Problem(about="credentials", what="none were found", do="set AWS_PROFILE, or sign in: aws sso login")
        elif isinstance(credentials, RefreshableCredentials):
            seconds = int(_LEAST_TIME.total_seconds())
            if credentials.method == "env" and credentials.refresh_needed(refresh_in=seconds):
                what = f"they end within {seconds // 60} minutes, maybe in the middle of the deployment"
                yield Problem(about="credentials", what=what, do="get new ones: aws sso login")
        elif credentials.token:
            how = "AWS_CREDENTIAL_EXPIRATION says it, as `aws configure export-credentials --format env` sets it"
            raise Unavailable(f"these credentials are temporary, and do not say when they end: {how}")

    def _concurrency(self) -> Iterator[Problem]:
        limits = self.client("lambda").get_account_settings()["AccountLimit"]
        own = self._reserved("tick") + self._reserved("api")
        reserved = (self.declared.tick_reserved_concurrency or 0) + (self.declared.api_reserved_concurrency or 0)
        left = limits["UnreservedConcurrentExecutions"] + own - reserved
        if left >= _LEAST_CONCURRENCY:
            return
        what = f"of {limits['ConcurrentExecutions']:,} concurrent executions, {left:,} would be left for all functions"
        do = "request a higher quota in Service Quotas (Lambda, concurrent executions)"
        if reserved > own:
            what += f" after reserving {reserved:,}: Lambda refuses to leave fewer than {_LEAST_CONCURRENCY}"
            do = f"lower tick_reserved_concurrency or api_reserved_concurrency, or {do}"
        yield Problem(about="Lambda", what=what, do=do)

    def _reserved(self, function: str) -> int:
        look, name = self.client("lambda").get_function_concurrency, self.declared.names.function(function)
        answer = unless(is_missing, lambda: look(FunctionName=name)) or {}
        return int(answer.get("ReservedConcurrentExecutions", 0))

    def _bootstrap(self) -> Iterator[Problem]:
        published = unless(is_missing, lambda: self.client("ssm").get_parameter(Name=_BOOTSTRAP))
        version = int(published["Parameter"]["Value"]) if published else 0
        if version < _LEAST_BOOTSTRAP:
            what = f"the bootstrap stack has version {version}: it must be at least {_LEAST_BOOTSTRAP}"
            what = what if published else "this account and region are not bootstrapped"
            yield Problem(about="CDK", what=what, do="run: npx aws-cdk bootstrap")


_KEEP = (
    "put it back, or wait until they are done, or cancel them and move the schedules to other queues"
    " (docs/removing.md); FORCE=1 deploys all the same"
)


def _unread(about: str, what: str, error: Exception) -> Problem:
    do = f"allow {_STRANDS_NEEDS}, or deploy with FORCE=1 if queues.yaml takes nothing away"
    why = str(error) if isinstance(error, DuelineError) else f"{type(error).__name__}: {error}"
    return Problem(about=about, what=f"{what} could not be read: {why}", do=do)


def _look(what: str, look: Callable[[], Iterable[Problem]]) -> list[Problem]:
    with map_caller_errors(f"looking at {what}"):
        return list(look())
