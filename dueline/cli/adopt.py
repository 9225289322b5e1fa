"""Have CloudFormation take over what a stack left behind, so that `cdk deploy` brings it back."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from dueline.cli import connect
from dueline.cli.connect import run_of
from dueline.cli.screen import Screen

_SUFFIX = ".template.json"


def adopt(
    ctx: typer.Context,
    template: Annotated[
        Path, typer.Argument(metavar="TEMPLATE", help="Of the stack, as `cdk synth` writes it into cdk.out.")
    ],
    apply: Annotated[bool, typer.Option("--apply", help="Take it over; without it, only tell.")] = False,
) -> None:
    """Take over what a stack left behind: SQS queues, tables, the bucket.

    For a queue, a level or a partition that comes back to queues.yaml, or a whole deployment. The schedules of its
    ticks are deleted: deploy within minutes, which makes them anew.
    """
    run = run_of(ctx)
    adopter = connect.adopter(run.target)
    adoption = adopter.plan(_stack_of(template), _read(template))
    if apply and adoption.imports and not run.screen.as_json:
        run.screen.line(f"importing into {adoption.stack}, which takes CloudFormation a minute or two")
    if apply:
        adopter.carry_out(adoption)
    _show(run.screen, adoption, apply=apply)


def _show(screen: Screen, adoption: Any, *, apply: bool) -> None:
    imports = {each["LogicalResourceId"]: each["ResourceIdentifier"] for each in adoption.imports}
    schedules = [f"{group}/{name}" for group, name in adoption.schedules]
    if screen.as_json:
        return screen.json({"stack": adoption.stack, "imports": imports, "schedules": schedules, "applied": apply})
    if imports and adoption.was_never_made:
        screen.line(
            f"{'deleted' if apply else 'to delete'}: stack {adoption.stack}, which failed to be made: it is empty"
        )
    for id, named in imports.items():
        screen.line(f"{'imported' if apply else 'to import'}: {id}, {', '.join(named.values())}")
    for name in schedules:
        screen.line(f"{'deleted' if apply else 'to delete'}: schedule {name}, which the deployment makes anew")
    if not (imports or schedules):
        return screen.line(f"nothing is left behind by {adoption.stack}: deploy it")
    return screen.line("now deploy it, within minutes" if apply else "nothing was changed: --apply does so")


def _stack_of(template: Path) -> str:
    if not template.name.endswith(_SUFFIX):
        raise typer.BadParameter(f"TEMPLATE is {template.name}: it must be a file of cdk.out that ends in {_SUFFIX}")
    return template.name.removesuffix(_SUFFIX)


def _read(template: Path) -> dict[str, Any]:
    try:
        read: dict[str, Any] = json.loads(template.read_text())
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"TEMPLATE cannot be read: {error}") from None
    return read
