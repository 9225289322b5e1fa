"""Preflight: what would go wrong in deploying a queues.yaml. It only reads."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.credentials import RefreshableCredentials

from dueline.aws import deployment_context
from dueline.aws.aws_deployment import AwsDeployment
from dueline.aws.botocore_errors import map_caller_errors
from dueline.core.queue_settings import QueueSettings
from dueline.errors import DeploymentNotFound, DuelineError, QueueNotFound, Unavailable
from dueline.operations.observation import Check
from dueline.operations.stranded import REMOVED, DeploymentShape, StrandedItems

if TYPE_CHECKING:
    from boto3 import Session

    from dueline.config.deployment import Deployment

_LONGEST_REQUEST = timedelta(seconds=15)
_LONGEST_BUILD_SECONDS = 1800
# Lambda lets nobody reserve the last 100 executions of an account.
_LEAST_CONCURRENCY = 100
# What the CDK's templates need of the bootstrap stack, and where it says its version.
_LEAST_BOOTSTRAP = 6
_BOOTSTRAP = "/cdk-bootstrap/hnb659fds/version"
# Of an account and region, unless raised: https://docs.aws.amazon.com/general/latest/gr/ssm.html
_MOST_PARAMETERS = 10_000
# https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-group.html
_MOST_GROUPS = 500
# A first deployment takes about ten minutes, and two more for each queue's stack.
_LEAST_TIME = timedelta(minutes=30)
_QUOTA = "request a higher quota in Service Quotas"
_STRANDS_NEEDS = "ssm:GetParametersByPath, sqs:GetQueueAttributes, dynamodb:Query and dynamodb:BatchGetItem"


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """What would go wrong in a deployment, and what to do about it."""

    about: str
    what: str
    do: str


@dataclass(frozen=True, kw_only=True)
class Preflight:
    """Checks what is deployed, the account and this machine. `client` makes a boto3 client by service.

    `queues` is the file that `declared` was read from.
    """

    declared: "Deployment"
    queues: Path
    session: "Session"
    client: Callable[[str], Any]
    now: datetime

    def checks(self) -> list[Check]:
        """Return all checks; each returns the problems that it sees."""
        every: tuple[tuple[str, str, Callable[[], Iterable[Problem]]], ...] = (
            ("what would be stranded", _STRANDS_NEEDS, self._stranded),
            ("credentials", "", self._credentials),
            ("Lambda concurrency", "lambda:GetAccountSettings, lambda:GetFunctionConcurrency", self._concurrency),
            ("the CDK's bootstrap", "ssm:GetParameter", self._bootstrap),
            ("SSM parameters", "ssm:DescribeParameters", self._parameters),
            ("EventBridge Scheduler's groups", "scheduler:ListScheduleGroups", self._groups),
            ("function code", "", self._code),
        )
        return [Check(what=what, needs=needs, look=partial(_look, what, look)) for what, needs, look in every]

    def _stranded(self) -> Iterator[Problem]:
        """What cannot be read is a problem too: it may hold jobs."""
        unreadable: dict[str, Exception] = {}
        try:
            there = deployment_context.find_deployment(
                self.declared.name, session=self.session, now=self.now, on_unreadable=unreadable.__setitem__
            )
        except DeploymentNotFound:
            return
        except Exception as error:
            yield _unread("deployment", "what is deployed", error)
            return
        deployed = AwsDeployment(
            self.declared.name, queue_urls=there.queue_urls, longest=_LONGEST_REQUEST, session=self.session
        )
        for each in there.deployment.queues:
            name = each.settings.name
            try:
                if lost := self._lost(each.settings, deployed, there.now):
                    yield Problem(about=f"queue {name}", what=f"{self._change(name)} {', '.join(lost)}", do=_KEEP)
            except Exception as error:
                unreadable[name] = error
        for name, fault in unreadable.items():
            yield _unread(f"queue {name}", "whether jobs would be stranded", fault)

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
        request = {"QueueUrl": url, "AttributeNames": ["MessageRetentionPeriod"]}
        try:
            with map_caller_errors(f"reading {url}"):
                answer = self.client("sqs").get_queue_attributes(**request)
        except QueueNotFound:
            return 0
        return int(answer["Attributes"]["MessageRetentionPeriod"]) // 86_400

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
        do = f"{_QUOTA} (Lambda, concurrent executions)"
        if reserved > own:
            what += f" after reserving {reserved:,}: Lambda refuses to leave fewer than {_LEAST_CONCURRENCY}"
            do = f"lower tick_reserved_concurrency or api_reserved_concurrency, or {do}"
        yield Problem(about="Lambda", what=what, do=do)

    def _reserved(self, function: str) -> int:
        client = self.client("lambda")
        try:
            answer = client.get_function_concurrency(FunctionName=self.declared.names.function(function))
        except client.exceptions.ResourceNotFoundException:
            return 0
        return int(answer.get("ReservedConcurrentExecutions", 0))

    def _bootstrap(self) -> Iterator[Problem]:
        ssm, do = self.client("ssm"), "run: npx aws-cdk bootstrap"
        try:
            version = int(ssm.get_parameter(Name=_BOOTSTRAP)["Parameter"]["Value"])
        except ssm.exceptions.ParameterNotFound:
            yield Problem(about="CDK", what="this account and region are not bootstrapped", do=do)
            return
        if version < _LEAST_BOOTSTRAP:
            what = f"the bootstrap stack has version {version}: it must be at least {_LEAST_BOOTSTRAP}"
            yield Problem(about="CDK", what=what, do=do)

    def _parameters(self) -> Iterator[Problem]:
        pages = self.client("ssm").get_paginator("describe_parameters").paginate(PaginationConfig={"PageSize": 50})
        there = {each["Name"] for page in pages for each in page["Parameters"] if each.get("Tier") != "Advanced"}
        names = self.declared.names
        own = (names.settings_parameter, names.schema_parameter, names.api_id_parameter, names.api_url_parameter)
        required = {*own, names.payloads_parameter, *map(names.queue_parameter, self.declared.queues)}
        yield from _over("SSM", "standard parameters", there | required, _MOST_PARAMETERS)

    def _groups(self) -> Iterator[Problem]:
        pages = self.client("scheduler").get_paginator("list_schedule_groups").paginate()
        there = {each["Name"] for page in pages for each in page["ScheduleGroups"]}
        names = self.declared.names
        required = {names.schedule_group, names.watch_group}
        yield from _over("EventBridge Scheduler", "schedule groups", there | required, _MOST_GROUPS)

    def _code(self) -> Iterator[Problem]:
        """Synthesize the stacks, into a folder that is thrown away: the functions' code is built for that."""
        app = Path("app.py")
        if not app.is_file() or "from dueline.cdk" not in app.read_text():
            raise Unavailable("there is no app.py of Dueline here: run it in the checkout that is deployed")
        with tempfile.TemporaryDirectory() as out:
            context = {"queues": str(self.queues.resolve())}
            env = {"CDK_OUTDIR": out, "CDK_CONTEXT_JSON": json.dumps(context), "CDK_VALIDATION": "false"}
            command = [sys.executable, str(app)]
            done = subprocess.run(  # noqa: S603, nothing of it comes from outside
                command,
                env={**os.environ, **env},
                capture_output=True,
                text=True,
                check=False,
                timeout=_LONGEST_BUILD_SECONDS,
            )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            do = "fix that; `make setup` installs what the build needs, and Node.js 20 must be on the PATH"
            yield Problem(about="function code", what=f"the stacks cannot be built here: {last}", do=do)


_KEEP = (
    "put it back, or wait until they are done, or cancel them and move the schedules to other queues"
    " (docs/removing.md); FORCE=1 deploys all the same"
)


def _unread(about: str, what: str, error: Exception) -> Problem:
    do = f"allow {_STRANDS_NEEDS}, or deploy with FORCE=1 if queues.yaml takes nothing away"
    why = str(error) if isinstance(error, DuelineError) else f"{type(error).__name__}: {error}"
    return Problem(about=about, what=f"{what} could not be read: {why}", do=do)


def _over(about: str, what: str, names: set[str], quota: int) -> Iterator[Problem]:
    if len(names) > quota:
        do = f"delete some, or {_QUOTA}"
        yield Problem(about=about, what=f"with this deployment {len(names):,} {what}: the quota is {quota:,}", do=do)


def _look(what: str, look: Callable[[], Iterable[Problem]]) -> list[Problem]:
    with map_caller_errors(f"looking at {what}"):
        return list(look())
