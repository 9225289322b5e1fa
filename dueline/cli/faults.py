"""What went wrong, as one line on stderr and an exit code."""

import json
import sys
from dataclasses import dataclass, field
from typing import Any

import typer

from dueline.errors import (
    RETRYABLE,
    AlreadyFinished,
    DeploymentNotFound,
    DuelineError,
    Forbidden,
    IdReused,
    InvalidJob,
    InvalidSchedule,
    JobNotFound,
    KeyReused,
    QueueNotFound,
    RunOfSchedule,
    ScheduleChanged,
    ScheduleNotFound,
    TooManyChanges,
    TooManySchedules,
)
from dueline.model.text import printable

DONE, AGAIN, WRONG, NOT_FOUND, TOO_LATE, FORBIDDEN, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130
EXIT_CODES = (
    "Exit codes: 0 done; 1 AWS or the network failed, try again; 2 wrong usage, or what can never be scheduled;"
    " 3 no such job, schedule, queue or deployment; 4 too late; 5 AWS credentials are missing or do not allow it;"
    " 130 interrupted. Of several jobs, the highest."
)
_CODES_BY_ERROR: tuple[tuple[tuple[type[DuelineError], ...], int], ...] = (
    ((InvalidJob, InvalidSchedule, IdReused, KeyReused, RunOfSchedule, TooManyChanges, TooManySchedules), WRONG),
    ((JobNotFound, ScheduleNotFound, QueueNotFound, DeploymentNotFound), NOT_FOUND),
    ((AlreadyFinished, ScheduleChanged), TOO_LATE),
    ((Forbidden,), FORBIDDEN),
)
# typer's own click, or in its older versions click itself: what is wrong with what was typed.
_Misuse: Any = typer.BadParameter.__mro__[2]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """What went wrong: a code for machines, one line for people, the exit code, and what it is about."""

    code: str
    message: str
    exit_code: int
    about: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, error: BaseException, **about: Any) -> "Fault":
        """Return what an error says; `about` names what it is about, where that is not clear."""
        if isinstance(error, DuelineError):
            fields = {"id": error.job_id, "key": error.key}
            details = about | {name: value for name, value in fields.items() if value is not None}
            return cls(code=error.code, message=_message_of(error), exit_code=exit_code_of(error), about=details)
        if isinstance(error, _Misuse):
            return cls(code="usage", message=error.format_message(), exit_code=WRONG)
        if isinstance(error, KeyboardInterrupt | typer.Abort):
            return cls(code="interrupted", message="interrupted", exit_code=INTERRUPTED)
        return cls(code="error", message=f"{type(error).__name__}: {error}", exit_code=AGAIN)

    def report(self, *, as_json: bool) -> None:
        """Write it to stderr."""
        line = " ".join(self.message.split())
        document = json.dumps({"error": {"code": self.code, "message": line, **self.about}})
        typer.echo(document if as_json else f"dueline: {printable(line)}", file=sys.stderr)


def exit_code_of(error: DuelineError) -> int:
    return next((code for kinds, code in _CODES_BY_ERROR if isinstance(error, kinds)), AGAIN)


def _message_of(error: DuelineError) -> str:
    message = str(error)
    if isinstance(error, AlreadyFinished) and error.job_id:
        return f"{message}; {error.job_id} took its place"
    if not isinstance(error, RETRYABLE):
        return message
    scheduled = f"; job {error.job_id} may be scheduled all the same" if error.job_id else ""
    again = f"; asked again with --key {error.key} it is there once" if error.key else ""
    return message + scheduled + again + "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
