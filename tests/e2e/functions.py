"""A team's own Lambda function, with the library beside it, and a queue as its event source."""

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

from local.emulator import ACCOUNT, REGION, Emulator
from local.template import ROOT


def deploy_consumer(
    emulator: Emulator,
    queue_url: str,
    *,
    name: str,
    code: Path,
    beside: tuple[Path, ...] = (),
    environment: Mapping[str, str] = {},
) -> None:
    """Deploy the `handler` of a file; `code` and what is `beside` it are of this repository."""
    functions = emulator.client("lambda")
    functions.create_function(
        FunctionName=name,
        Runtime="python3.13",
        Handler=f"{code.stem}.handler",
        Role=f"arn:aws:iam::{ACCOUNT}:role/{name}",
        Code={"ZipFile": _packed([code, *beside])},
        Timeout=20,
        Environment={"Variables": {"POWERTOOLS_SERVICE_NAME": name, **environment}},
    )
    functions.create_event_source_mapping(
        FunctionName=name,
        EventSourceArn=f"arn:aws:sqs:{REGION}:{ACCOUNT}:{queue_url.rpartition('/')[2]}",
        FunctionResponseTypes=["ReportBatchItemFailures"],
    )


def _packed(files: list[Path]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for source in (ROOT / "dueline").rglob("*.py"):
            archive.write(source, source.relative_to(ROOT))
        for file in files:
            archive.write(ROOT / file, file.name)
    return packed.getvalue()
