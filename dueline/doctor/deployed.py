"""Deployed: stacks that failed or are of different versions, and clients that are newer than the deployment."""

from collections.abc import Iterator

from dueline import __version__
from dueline.doctor.finding import Finding, Severity, guide
from dueline.doctor.seen import Deployment, Seen
from dueline.doctor.ticks import named
from dueline.errors import DuelineError
from dueline.model.schema import check_deployment

_NONE = "before 0.1"


def stacks_failed(seen: Seen) -> Iterator[Finding]:
    """Name stacks whose last deployment failed."""
    for name, status in sorted((seen.stacks or {}).items()):
        if "FAILED" in status or "ROLLBACK" in status:
            yield Finding(
                code="stack_failed",
                severity=Severity.WARNING,
                about=name,
                what=f"its last deployment failed: its stack is {status}",
                do="read the stack's events, remove what they name, and deploy again",
                page=guide("stacks"),
            )


def versions_differ(seen: Seen) -> Iterator[Finding]:
    """Name queues whose stack another version deployed than the core's."""
    deployment = seen.deployment
    others: dict[str, list[str]] = {}
    for queue in deployment.queues:
        if queue.version != deployment.version:
            others.setdefault(queue.version or _NONE, []).append(queue.name)
    for version, queues in others.items():
        yield Finding(
            code="versions_differ",
            severity=Severity.WARNING,
            about=deployment.names.core_stack,
            what=f"it is of version {deployment.version or _NONE}, and of {version} are the stacks of {named(queues)}",
            do="deploy all stacks with one version: cdk deploy --all",
            page=guide("stacks"),
        )


def clients_differ(seen: Seen) -> Iterator[Finding]:
    """Tell when direct clients of this version are refused, or this version is not the deployment's."""
    deployment = seen.deployment
    refusal = _refusal(deployment)
    if refusal is None and deployment.version in (None, __version__):
        return
    yield Finding(
        code="client_differs",
        severity=Severity.NOTE if refusal is None else Severity.WARNING,
        about=deployment.names.deployment,
        what=refusal or f"it is of version {deployment.version}, and this library is {__version__}",
        do="deploy first, then upgrade clients: install the version that is deployed, or deploy this one",
        page=guide("clients-of-another-version"),
    )


def _refusal(deployment: Deployment) -> str | None:
    name, latest, oldest = deployment.names.deployment, deployment.schema, deployment.oldest_schema
    try:
        check_deployment(name, latest=latest, oldest=oldest)
    except DuelineError as error:
        return str(error)
    return None
