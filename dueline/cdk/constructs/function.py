"""A Lambda function with its role and log group, which deletes its lines after a while."""

import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import cast

from aws_cdk import Annotations, App, AssetHashType, Duration, RemovalPolicy, Stack
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_iam import PolicyDocument, PolicyStatement, Role, ServicePrincipal
from aws_cdk.aws_lambda import Code
from aws_cdk.aws_logs import CfnLogGroup, LogGroup
from constructs import Construct

from dueline.cdk.arns import Arns
from dueline.cdk.bundle import PYTHON, bundle, compiler, installed
from dueline.cdk.grants import allow, key_of, services_of, with_use_of_key
from dueline.cdk.nag import acknowledge, acknowledge_wildcard
from dueline.config import registry
from dueline.config.deployment import Deployment
from dueline.config.names import LIVE

_MEMORY_MB = 512
_WHY_A_PREFIX = (
    "All that is one queue's begins with this prefix and nothing else does; named one by one, they would"
    " outgrow the 10,240 characters of a role's inline policies."
)


class Log(LogGroup):
    """A log group with a retention, which goes with its stack."""

    def __init__(self, scope: Construct, id: str, *, name: str, deployment: Deployment) -> None:
        super().__init__(
            scope,
            id,
            log_group_name=name,
            encryption_key=key_of(scope, id, deployment=deployment),
            removal_policy=RemovalPolicy.DESTROY,
        )
        cast(CfnLogGroup, self.node.default_child).retention_in_days = deployment.log_retention_days


class CoreFunction(Construct):
    """The function of `dueline/functions/{name}.py`, with a log group and a role of its own.

    The role may do what `statements` say, use the deployment's key for it, and write its log. CDK's own grants cannot
    widen it. Each change of code or settings is published as a version, to which the alias `live` moves: that is what
    others invoke.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        deployment: Deployment,
        timeout: int,
        environment: Mapping[str, str],
        statements: Sequence[PolicyStatement],
        reserved_concurrency: int | None = None,
    ) -> None:
        super().__init__(scope, id)
        names = deployment.names
        acknowledge(
            self, "L1", reason="Python 3.13 is what dueline/functions/requirements.lock is made and tested for."
        )
        self.log = Log(self, "Log", name=names.function_log(name), deployment=deployment)
        self.function = lambda_.Function(
            self,
            "Function",
            function_name=names.function(name),
            runtime=lambda_.Runtime.PYTHON_3_13,
            architecture=lambda_.Architecture.ARM_64,
            handler=f"dueline.functions.{name}.handler",
            code=function_code(self, name=name, deployment=deployment, services=services_of(statements)),
            memory_size=_MEMORY_MB,
            reserved_concurrent_executions=reserved_concurrency,
            timeout=Duration.seconds(timeout),
            environment={**environment, "POWERTOOLS_SERVICE_NAME": name},
            role=self._role(self.log, statements, deployment).without_policy_updates(),
            log_group=self.log,
            logging_format=lambda_.LoggingFormat.JSON,
            # At WARN without the three lines that Lambda writes of each invocation: a third of a request's bytes.
            system_log_level_v2=lambda_.SystemLogLevel[deployment.system_log_level],
            # At WARN there would be no metrics: a line without a level, as theirs are, has the level INFO.
            application_log_level_v2=lambda_.ApplicationLogLevel.INFO,
            tracing=lambda_.Tracing.ACTIVE if deployment.tracing else lambda_.Tracing.DISABLED,
        )

        self.live = lambda_.Alias(self, "Live", alias_name=LIVE, version=self.function.current_version)

    def _role(self, log: Log, statements: Sequence[PolicyStatement], deployment: Deployment) -> Role:
        granted = with_use_of_key(self, statements, deployment=deployment)
        granted.append(allow("logs:CreateLogStream", "logs:PutLogEvents", on=[log.log_group_arn]))
        if deployment.tracing:
            granted.append(allow("xray:PutTraceSegments", "xray:PutTelemetryRecords", on=["*"]))
        role = Role(
            self,
            "Role",
            assumed_by=ServicePrincipal("lambda.amazonaws.com"),
            inline_policies={"grants": PolicyDocument(statements=granted)},
        )
        arns = Arns(self, names=deployment.names)
        for pattern in (arns.teams_queues, arns.queue_parameters):
            acknowledge_wildcard(role, pattern, reason=_WHY_A_PREFIX)
        if deployment.tracing:
            acknowledge_wildcard(role, "*", reason="X-Ray's actions that send traces know no resources.")
        return role


_SLOW = f"cold starts take twice as long: there is no python{PYTHON} here to compile the functions' code with"


def function_code(scope: Construct, *, name: str, deployment: Deployment, services: Collection[str]) -> Code:
    """Return the code of `dueline/functions/{name}.py` with all that it imports; it may call these services.

    With the context `libraries=none` it has no libraries: for an AWS whose Python has them, as a local one.
    Raises BundleError where libraries cannot be installed.
    """
    is_complete = scope.node.try_get_context("libraries") != "none"
    if is_complete and compiler() is None:
        Annotations.of(Stack.of(scope)).add_warning_v2("dueline:bytecode", _SLOW)
    outdir = Path(cast(App, scope.node.root).outdir)
    staging = outdir / "functions" / deployment.name / name
    shutil.rmtree(staging, ignore_errors=True)
    hashed = bundle(
        name,
        staging,
        registry=registry.to_json(deployment.queue_settings(), watched=deployment.watched()),
        services=services,
        libraries=installed(outdir / "libraries") if is_complete else None,
    )
    return Code.from_asset(str(staging), asset_hash=hashed, asset_hash_type=AssetHashType.CUSTOM)
