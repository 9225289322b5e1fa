"""The HTTP API of API Gateway, its function and its access log."""

from typing import cast

from aws_cdk import CfnOutput, Stack
from aws_cdk.aws_apigatewayv2 import (
    CfnStage,
    DomainMappingOptions,
    DomainName,
    HttpApi,
    HttpMethod,
    HttpStage,
    PayloadFormatVersion,
    ThrottleSettings,
)
from aws_cdk.aws_apigatewayv2_authorizers import HttpIamAuthorizer
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from aws_cdk.aws_certificatemanager import Certificate
from aws_cdk.aws_iam import PolicyStatement
from aws_cdk.aws_lambda import Alias, CfnPermission
from constructs import Construct

from dueline.cdk.arns import Arns
from dueline.cdk.constructs.function import CoreFunction, Log
from dueline.cdk.constructs.storage import ANY_JOB, UPLOADS
from dueline.cdk.grants import allow, allow_on_rows
from dueline.cdk.nag import acknowledge_wildcard
from dueline.config.deployment import Deployment
from dueline.config.environment import ApiSettings
from dueline.config.names import Names
from dueline.config.routes import ROUTES, Caller

_TIMEOUT = 20
# To list them, and of what a transaction that changes one is made.
_ON_SCHEDULES = ("dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem")
# Which request, who, what of which job, and how it went; payloads cannot be logged. Without the names that JSON would
# have, because the line of each request is paid for. API Gateway demands the id of the request:
# https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-logging-variables.html
_LOGGED = ("requestId", "identity.caller", "httpMethod", "path", "status", "integrationErrorMessage")
_LOG_LINE = " ".join(f"$context.{name}" for name in _LOGGED)


class JobsApi(Construct):
    """The API, IAM-authorized throughout. The queue is in the path, so IAM can allow one team one queue.

    `GET /queues` has none: it returns the names and settings of all, and nothing of their jobs.
    """

    def __init__(self, scope: Construct, id: str, *, deployment: Deployment) -> None:
        super().__init__(scope, id)
        arns = Arns(self, names=deployment.names)
        self.settings = ApiSettings(
            deployment=deployment.name,
            queue_urls=arns.queue_urls,
            payloads=arns.payloads_bucket,
            direct_horizon=deployment.direct_horizon,
            lookahead=deployment.lookahead,
        )
        api = self._function(deployment)
        self.function, self.live = api.function, api.live
        self.http = HttpApi(
            self,
            "Http",
            api_name=deployment.names.api,
            create_default_stage=False,
            default_authorizer=HttpIamAuthorizer(),
        )
        self.url = f"https://{deployment.domain_name}" if deployment.domain_name else self.http.api_endpoint
        self._add_routes()
        self._add_stage(deployment)
        self._aliases = _Aliases(self, "Aliases", api=api, deployment=deployment)
        for keys in (ANY_JOB, UPLOADS):
            pattern = Arns(self, names=deployment.names).payloads(keys)
            acknowledge_wildcard(self, pattern, reason="The payloads of all queues' jobs, and uploads to all of them.")

    def deploy_after(self, *others: Construct) -> None:
        """Have all aliases of the function, the gateway's too, move after others."""
        for aliases in (self.live, self._aliases):
            aliases.node.add_dependency(*others)

    def _function(self, deployment: Deployment) -> CoreFunction:
        names, arns = deployment.names, Arns(self, names=deployment.names)
        return CoreFunction(
            self,
            "Function",
            name="api",
            deployment=deployment,
            timeout=_TIMEOUT,
            reserved_concurrency=deployment.api_reserved_concurrency,
            environment=self.settings.to_env(),
            statements=_grants(arns, names=names),
        )

    def _add_routes(self) -> None:
        integration = HttpLambdaIntegration(
            "Integration", self.live, payload_format_version=PayloadFormatVersion.VERSION_2_0
        )
        for path, route in ROUTES.items():
            methods = [HttpMethod[method] for method in route.methods]
            self.http.add_routes(path=path, methods=methods, integration=integration)

    def _domain(self, deployment: Deployment) -> DomainMappingOptions | None:
        """Add the domain of one's own, if there is one: its DNS record, which is not Dueline's, is to point there."""
        if deployment.domain_name is None:
            return None
        certificate = Certificate.from_certificate_arn(self, "Certificate", str(deployment.certificate_arn))
        domain = DomainName(self, "Domain", domain_name=deployment.domain_name, certificate=certificate)
        CfnOutput(Stack.of(self), "DomainTarget", value=domain.regional_domain_name)
        CfnOutput(Stack.of(self), "DomainTargetZone", value=domain.regional_hosted_zone_id)
        return DomainMappingOptions(domain_name=domain)

    def _add_stage(self, deployment: Deployment) -> None:
        log = Log(self, "Log", name=deployment.names.access_log, deployment=deployment)
        stage = HttpStage(
            self,
            "Stage",
            http_api=self.http,
            stage_name="$default",
            auto_deploy=True,
            domain_mapping=self._domain(deployment),
            throttle=ThrottleSettings(rate_limit=deployment.api_rate, burst_limit=deployment.api_burst),
        )
        logged = CfnStage.AccessLogSettingsProperty(destination_arn=log.log_group_arn, format=_LOG_LINE)
        cast(CfnStage, stage.node.default_child).access_log_settings = logged


class _Aliases(Construct):
    """The aliases by which callers invoke the function without the gateway: two a queue, its producers' and operators'.

    Which one was invoked says who may do what, so nobody but the gateway may invoke the alias `live`. All aliases are
    of the same version, and move in the same deployment. `producers` of other accounts invoke by an alias's policy.
    """

    def __init__(self, scope: Construct, id: str, *, api: CoreFunction, deployment: Deployment) -> None:
        super().__init__(scope, id)
        for queue, settings in deployment.queues.items():
            for caller in Caller:
                alias = Alias(
                    self,
                    f"{caller.name.capitalize()}-{queue}",
                    alias_name=caller.alias_of(queue),
                    version=api.function.current_version,
                )
                for number, arn in enumerate(settings.producers if caller is Caller.PRODUCER else ()):
                    CfnPermission(
                        alias,
                        f"Of-{number}",
                        action="lambda:InvokeFunction",
                        function_name=alias.function_arn,
                        principal=arn,
                    )


def _grants(arns: Arns, *, names: Names) -> list[PolicyStatement]:
    # A transaction is made of PutItem, and of ConditionCheckItem on a partition's state.
    table = ("BatchGetItem", "BatchWriteItem", "PutItem", "Query", "UpdateItem")
    sends_to = [arns.teams_queues, arns.queue(names.inbound), arns.queue(names.dispatch_dlq)]
    return [
        allow(*(f"dynamodb:{action}" for action in table), on=[arns.table]),
        allow("dynamodb:BatchGetItem", "dynamodb:ConditionCheckItem", on=[arns.state]),
        # It could put fences and delete them as well: so not the rows of partitions.
        allow_on_rows("dynamodb:BatchWriteItem", table=arns.state, keys=["*#control"]),
        allow_on_rows(*_ON_SCHEDULES, table=arns.state, keys=["*#schedules"]),
        allow("sqs:SendMessage", on=sends_to),
        allow("sqs:GetQueueAttributes", on=[arns.teams_queues]),
        allow("ssm:GetParameters", on=[arns.queue_parameters]),
        # To keep payloads, to copy them, and to let callers upload what this function may put itself.
        allow("s3:GetObject", "s3:PutObject", on=[arns.payloads(ANY_JOB), arns.payloads(UPLOADS)]),
        # Without the right to list, S3 answers 403 and not 404 for an object that does not exist:
        # https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html
        allow("s3:ListBucket", on=[arns.bucket]),
    ]
