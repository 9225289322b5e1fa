"""What IAM's own simulator says of each managed policy, and of the functions' roles. Nothing is done by it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dueline.verify.bound import NONE, SOME, Gap
from dueline.verify.check import Check, Found
from dueline.verify.checks.rights import POLICIES, Right, evasions, matrix
from dueline.verify.price import Sends
from dueline.verify.sandbox import PLAIN, Call
from dueline.verify.trial import Scale, Trial

NAME = "policies"
FUNCTIONS = ("api", "ingest", "planner", "tick", "ttl")
# What no function does, whatever it is asked: rows of jobs are only added, and nothing that is deployed is taken away.
DEEDS = (
    Call(action="dynamodb:DeleteItem", on="jobs"),
    Call(action="dynamodb:DeleteTable", on="jobs"),
    Call(action="dynamodb:DeleteTable", on="state"),
    Call(action="sqs:PurgeQueue", on=PLAIN),
    Call(action="sqs:DeleteQueue", on=PLAIN),
    Call(action="iam:AttachRolePolicy", on="*"),
    Call(action="lambda:UpdateFunctionCode", on="*"),
    Call(action="scheduler:DeleteSchedule", on="*"),
)
_ROWS = frozenset({"get", "write", "query", "scan"})


def simulated() -> Iterator[Right]:
    """Yield what the simulator can judge of the rights: not how API Gateway reads a path that is written oddly."""
    odd = {str(call) for call in evasions()}
    yield from (right for right in matrix() if str(right.call) not in odd)


def run(trial: Trial) -> Found:
    """Have each right simulated, and each deed that no function may do."""
    rights, done = list(simulated()), 0
    wrong = list[Right]()
    for policy in POLICIES:
        may = trial.sandbox.simulating(policy, PLAIN)
        for right in (each for each in rights if each.policy == policy):
            trial.tell(f"simulating what a {policy} may do", done, len(rights))
            trial.sleep(0)
            done += 1
            if may(right.call) is not right.allowed:
                wrong.append(right)
    deeds = [f"{function}: {call}" for function in FUNCTIONS for call in _allowed(trial, function)]
    figures = {"rights": len(rights), "deeds that a function may do": len(deeds)}
    return Found(
        figures=figures | _counted(wrong), notes=[*map(_told, wrong), *(f"{each} is allowed" for each in deeds)]
    )


def _allowed(trial: Trial, function: str) -> list[Call]:
    may = trial.sandbox.simulating_function(function)
    return [call for call in DEEDS if may(call)]


def _counted(wrong: Sequence[Right]) -> dict[str, float]:
    return {
        f"{what}: {how}": sum((right.call.action in _ROWS) is on_rows and right.allowed is allowed for right in wrong)
        for what, on_rows in (("requests and queues", False), ("rows", True))
        for how, allowed in (("allowed, and must not be", False), ("denied, and must be allowed", True))
    }


def _told(right: Right) -> str:
    return f"{right.policy}: {right.call} is {'denied' if right.allowed else 'allowed'}"


def sends(_: Scale) -> Sends:
    return Sends()


_OF_ROWS = replace(NONE, gap=Gap.ROWS)
CHECK = Check(
    name=NAME,
    promise="By IAM's simulator, policies allow what is documented and nothing of another queue, and no function may"
    " delete a job, a queue or a table",
    bounds={
        "rights": SOME,
        "requests and queues: allowed, and must not be": NONE,
        "requests and queues: denied, and must be allowed": NONE,
        "rows: allowed, and must not be": _OF_ROWS,
        "rows: denied, and must be allowed": _OF_ROWS,
        "deeds that a function may do": NONE,
    },
    run=run,
    sends=sends,
    lane="settings",
)
