"""The rights of each managed policy, tried by roles that have nothing else: what is allowed, and what never is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dueline.verify.bound import NONE, SOME, Gap
from dueline.verify.check import Check, Found
from dueline.verify.price import Sends
from dueline.verify.sandbox import NEIGHBOUR, PLAIN, Call
from dueline.verify.trial import Scale, Trial

NAME = "rights"
POLICIES = ("producer", "consumer", "operator", "direct")
_ID = "0.t.4102444800000.0d6a387e-1c2f-4b7a-9a51-7f6f0a3f9d10"
_RULE = {"every": 3600, "payload": None}
_SHA256 = "0" * 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Right:
    """Whether a policy of the queue `plain` allows a call."""

    policy: str
    call: Call
    allowed: bool


def of_producers(queue: str) -> list[Call]:
    """Return all that a producer of a queue may ask the HTTP API."""
    jobs, schedule = f"/queues/{queue}/jobs", f"/queues/{queue}/schedules/verify"
    return [
        Call(action="GET", on=f"/queues/{queue}"),
        Call(action="POST", on=jobs, body={"payload": None, "delay": 86_400}),
        Call(action="GET", on=jobs),
        Call(action="GET", on=f"{jobs}/{queue}.{_ID}"),
        Call(action="PATCH", on=f"{jobs}/{queue}.{_ID}", body={"delay": 86_400}),
        Call(action="DELETE", on=f"{jobs}/{queue}.{_ID}"),
        Call(action="POST", on=f"/queues/{queue}/cancellations", body={"ids": [f"{queue}.{_ID}"]}),
        Call(action="POST", on=f"/queues/{queue}/uploads", body={"bytes": 1, "sha256": _SHA256}),
        Call(action="GET", on=f"/queues/{queue}/schedules"),
        Call(action="PUT", on=schedule, body=_RULE),
        Call(action="GET", on=schedule),
        Call(action="POST", on=f"{schedule}/pause"),
        Call(action="POST", on=f"{schedule}/resume"),
        Call(action="GET", on=f"{schedule}/history"),
        Call(action="DELETE", on=schedule),
    ]


def of_operators(queue: str) -> list[Call]:
    """Return what an operator alone may change."""
    return [
        Call(action="POST", on=f"/queues/{queue}/pause"),
        Call(action="PUT", on=f"/queues/{queue}/rate", body={"rate": None}),
        Call(action="POST", on=f"/queues/{queue}/resume"),
    ]


def evasions() -> list[Call]:
    """Return ways to write another queue's path. One may look like a job of the queue's own, which there is not."""
    paths = (
        f"/queues/{PLAIN}%2Dvip/jobs",
        f"/queues/{PLAIN}/jobs/..%2F..%2F{NEIGHBOUR}%2Fjobs",
        f"/queues/{PLAIN}/../{NEIGHBOUR}/jobs",
        f"/queues//{NEIGHBOUR}/jobs",
        f"//queues/{NEIGHBOUR}/jobs",
        f"/queues/{NEIGHBOUR}/jobs/",
        "/queues/%70lain-vip/jobs",
    )
    return [Call(action="GET", on=path, must_succeed=True) for path in paths]


def _rows(*actions: str, on: Sequence[str]) -> list[Call]:
    return [Call(action=action, on=row) for action in actions for row in on]


def _of_queue(queue: str, *actions: str) -> list[Call]:
    return [Call(action=action, on=queue) for action in actions]


_OWN, _OWN_STATE, _OWN_CONTROL = f"jobs {PLAIN}#0", f"state {PLAIN}#0", f"state {PLAIN}#control"
_THEIRS = [f"jobs {NEIGHBOUR}#0", f"state {NEIGHBOUR}#0", f"state {NEIGHBOUR}#control"]
ALLOWED = {
    "producer": [*of_producers(PLAIN), Call(action="GET", on="/queues")],
    "operator": [Call(action="GET", on=f"/queues/{PLAIN}"), *of_operators(PLAIN)],
    "consumer": [*_rows("get", on=[_OWN, _OWN_CONTROL]), *_of_queue(PLAIN, "receive")],
    "direct": [*_rows("get", on=[_OWN, _OWN_STATE]), *_rows("query", "write", on=[_OWN])],
}
DENIED_TO_ALL = [
    *of_producers(NEIGHBOUR),
    *of_operators(NEIGHBOUR),
    *evasions(),
    *_rows("get", "write", "query", on=_THEIRS),
    *_rows("scan", on=["jobs ", "state "]),
    *_of_queue(NEIGHBOUR, "receive"),
    *_of_queue("inbound", "send"),
]
DENIED = {
    "producer": [*of_operators(PLAIN), *_rows("get", "write", on=[_OWN]), *_of_queue(PLAIN, "receive")],
    "operator": _rows("get", "write", on=[_OWN, _OWN_STATE]),
    "consumer": [*of_operators(PLAIN), *_rows("write", on=[_OWN, _OWN_STATE])],
    "direct": [
        *_rows("write", on=[_OWN_STATE, _OWN_CONTROL, f"jobs {PLAIN}#outcome#0"]),
        *_of_queue(PLAIN, "receive"),
    ],
}


def matrix() -> Iterator[Right]:
    """Yield every right of every policy, and what none may reach: the neighbour, whose name begins alike, above all."""
    for policy in POLICIES:
        yield from (Right(policy=policy, call=call, allowed=True) for call in ALLOWED[policy])
        denied = [*DENIED_TO_ALL, *DENIED[policy]]
        yield from (Right(policy=policy, call=call, allowed=False) for call in denied)


def run(trial: Trial) -> Found:
    """Try every call by a role that has one policy of one queue."""
    rights, wrong = list(matrix()), list[Right]()
    done = 0
    for policy in POLICIES:
        with trial.sandbox.holding(policy, PLAIN) as may:
            for right in (each for each in rights if each.policy == policy):
                trial.tell(f"trying what a {policy} may do", done, len(rights))
                done += 1
                if may(right.call) is not right.allowed:
                    wrong.append(right)
    return Found(
        figures={
            "calls": len(rights),
            "allowed, and must not be": sum(not right.allowed for right in wrong),
            "denied, and must be allowed": sum(right.allowed for right in wrong),
        },
        notes=[f"{each.policy}: {each.call} was {'denied' if each.allowed else 'allowed'}" for each in wrong],
    )


def sends(scale: Scale) -> Sends:
    calls = len(list(matrix()))
    return Sends(sqs=calls, writes=4 * calls, reads=4 * calls, http=calls, invocations=calls)


CHECK = Check(
    name=NAME,
    promise="Each policy allows what is documented, and nothing of another queue, however its path is written",
    bounds={"calls": SOME, "allowed, and must not be": NONE, "denied, and must be allowed": NONE},
    run=run,
    sends=sends,
    gap=Gap.IAM,
)
