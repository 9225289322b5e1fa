"""Deploy synthesized stacks into the emulator, as `cdk deploy` does into AWS."""

import io
import json
import zipfile
from collections.abc import Callable
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from local.emulator import ACCOUNT, REGION, Emulator

_PLACEHOLDERS = {"${AWS::AccountId}": ACCOUNT, "${AWS::Region}": REGION, "${AWS::Partition}": "aws"}


class DeploymentError(RuntimeError):
    """A stack could not be deployed; the message says which and why."""


def deploy(emulator: Emulator, assembly: Path, *, after: Callable[[str], None] = lambda _: None) -> None:
    """Upload the assets of a cloud assembly and create or update its stacks, in the order of their dependencies.

    `after` is called with the name of each.
    """
    manifest = json.loads((assembly / "manifest.json").read_text())["artifacts"]
    version = {"Name": "/cdk-bootstrap/hnb659fds/version", "Value": "30"}
    emulator.client("ssm").put_parameter(**version, Type="String", Overwrite=True)
    stacks = {name: each for name, each in manifest.items() if each["type"] == "aws:cloudformation:stack"}
    after_others = {name: set(each.get("dependencies", [])) & stacks.keys() for name, each in stacks.items()}
    for name in TopologicalSorter(after_others).static_order():
        _upload(emulator, assembly, json.loads((assembly / f"{name}.assets.json").read_text())["files"])
        # By the URL: a template in a request itself has 51,200 characters at most.
        place = _resolved(stacks[name]["properties"]["stackTemplateAssetObjectUrl"]).removeprefix("s3://")
        if _apply(emulator, name, f"{emulator.endpoint}/{place}") == "create":
            _enable_ttl(emulator, assembly / f"{name}.template.json")
        after(name)


def _upload(emulator: Emulator, assembly: Path, files: dict[str, Any]) -> None:
    s3 = emulator.client("s3")
    for file in files.values():
        source = assembly / file["source"]["path"]
        body = _zipped(source) if file["source"]["packaging"] == "zip" else _content(source)
        for destination in file["destinations"].values():
            bucket = _resolved(destination["bucketName"])
            s3.create_bucket(Bucket=bucket)
            s3.put_object(Bucket=bucket, Key=_resolved(destination["objectKey"]), Body=body)


def _content(file: Path) -> bytes:
    """Return a file; of a template only what the emulator has, which is no alarm on a sum or share of metrics."""
    if not file.name.endswith(".template.json"):
        return file.read_bytes()
    template = json.loads(file.read_text())
    template["Resources"] = {
        name: resource
        for name, resource in template["Resources"].items()
        if not (resource["Type"] == "AWS::CloudWatch::Alarm" and "Metrics" in resource["Properties"])
    }
    return json.dumps(template).encode()


def _zipped(folder: Path) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in folder.rglob("*"):
            archive.write(path, path.relative_to(folder))
    return packed.getvalue()


def _resolved(text: str) -> str:
    for placeholder, value in _PLACEHOLDERS.items():
        text = text.replace(placeholder, value)
    return text


def _enable_ttl(emulator: Emulator, template: Path) -> None:
    """Enable TTL as a template has it: the emulator makes the tables without."""
    for resource in json.loads(template.read_text())["Resources"].values():
        table = resource.get("Properties", {})
        if specification := table.get("TimeToLiveSpecification"):
            request = {"TableName": table["TableName"], "TimeToLiveSpecification": specification}
            emulator.client("dynamodb").update_time_to_live(**request)


def _apply(emulator: Emulator, name: str, url: str) -> str:
    cloudformation = emulator.client("cloudformation")
    request = {"StackName": name, "TemplateURL": url, "Capabilities": ["CAPABILITY_NAMED_IAM"]}
    # A stack has five minutes.
    waiting = {"StackName": name, "WaiterConfig": {"Delay": 0.1, "MaxAttempts": 3000}}
    change = "update" if _exists(cloudformation, name) else "create"
    try:
        getattr(cloudformation, f"{change}_stack")(**request)
        cloudformation.get_waiter(f"stack_{change}_complete").wait(**waiting)
    except ClientError as error:
        if "No updates are to be performed" not in str(error):
            raise DeploymentError(f"stack {name}: {error}") from error
    except Exception as error:
        raise DeploymentError(f"stack {name}: {_reasons(cloudformation, name) or error}") from error
    return change


def _exists(cloudformation: Any, name: str) -> bool:
    try:
        return bool(cloudformation.describe_stacks(StackName=name)["Stacks"])
    except ClientError:
        return False


def _reasons(cloudformation: Any, name: str) -> str:
    events = cloudformation.describe_stack_events(StackName=name)["StackEvents"]
    return "; ".join(
        f"{event['LogicalResourceId']}: {event['ResourceStatusReason']}"
        for event in events
        if "FAILED" in event["ResourceStatus"] and event.get("ResourceStatusReason")
    )
