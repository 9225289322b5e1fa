"""What a cron expression may be: checked here, so that a wrong one is told by field, character and what is allowed."""

import re
from dataclasses import dataclass

from dueline.errors import InvalidSchedule
from dueline.model.text import shown

MOST_CHARACTERS = 256
ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_TERM = re.compile(r"(?:\*|(?P<low>\w+)(?:-(?P<high>\w+))?)(?:/(?P<step>\w+))?", re.ASCII)
_MONTHS = ("", "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


@dataclass(frozen=True, kw_only=True)
class Field:
    """One of the five: its values, and what it may be besides values."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    besides: str = ""
    example: str = ""

    def check(self, term: str) -> None:
        """Raise ValueError with the reason when a term is none of this field's."""
        if self.besides and re.fullmatch(self.besides, term, re.ASCII):
            return
        match = _TERM.fullmatch(term)
        if match is None:
            raise ValueError(
                f"it must be *, a value {self._allowed}, a range such as 1-5, or one with a step{self.example}"
            )
        low = self._value(match["low"]) if match["low"] else self.low
        high = self._value(match["high"]) if match["high"] else self.high
        if high < low:
            raise ValueError("a range must not end before it begins: list its two parts")
        self._check_step(match["step"], high - low)

    def _check_step(self, step: str | None, most: int) -> None:
        if step is not None and not (step.isdigit() and 1 <= int(step) <= most):
            raise ValueError(f"its step must be from 1 to {most}" if most else "a step needs a range")

    def _value(self, text: str) -> int:
        value = int(text) if text.isdigit() else self.names.index(text) if text in self.names else -1
        if not self.low <= value <= self.high:
            raise ValueError(f"a value must be {self._allowed}")
        return value

    @property
    def _allowed(self) -> str:
        named = [name for name in self.names if name]
        return f"from {self.low} to {self.high}" + (f" or {named[0]} to {named[-1]}" if named else "")


FIELDS = (
    Field(name="minute", low=0, high=59),
    Field(name="hour", low=0, high=23),
    Field(name="day of month", low=1, high=31, besides="LW?", example=", L (the last day) or LW (the last weekday)"),
    Field(name="month", low=1, high=12, names=_MONTHS),
    Field(
        name="day of week",
        low=0,
        high=7,
        names=_DAYS,
        besides=r"[0-7]L|([0-7]|SUN|MON|TUE|WED|THU|FRI|SAT)#[1-5]",
        example=", 5L (the last Friday) or MON#1 (the first Monday)",
    ),
)
_NAMES = ", ".join(field.name for field in FIELDS)


def fields_of(cron: str) -> tuple[str, ...]:
    """Return the five fields of an expression, in upper case; an alias is written out.

    Raises InvalidSchedule, with the field, the character and what is allowed.

    >>> fields_of("0 9 * * mon-fri"), fields_of("@daily")
    (('0', '9', '*', '*', 'MON-FRI'), ('0', '0', '*', '*', '*'))
    """
    if len(cron) > MOST_CHARACTERS:
        raise InvalidSchedule(f"cron has {len(cron)} characters: at most {MOST_CHARACTERS} are allowed")
    text = ALIASES.get(cron.strip().lower(), cron).upper()
    parts = list(re.finditer(r"\S+", text))
    if text.lstrip().startswith("@"):
        raise InvalidSchedule(f"cron is {shown(cron)}: it must have five fields, or be one of {', '.join(ALIASES)}")
    if len(parts) != len(FIELDS):
        problem = f"it has {len(parts)} fields and must have 5: {_NAMES}; seconds and years it has none"
        raise InvalidSchedule(f"cron is {shown(cron)}: {problem}")
    for field, part in zip(FIELDS, parts, strict=True):
        _check(field, part, cron)
    return tuple(part[0] for part in parts)


def _check(field: Field, part: re.Match[str], cron: str) -> None:
    at = part.start() + 1
    for term in part[0].split(","):
        try:
            field.check(term)
        except ValueError as why:
            told = f"its {field.name} has {term!r} at character {at}"
            raise InvalidSchedule(f"cron is {shown(cron)}: {told}: {why}") from None
        at += len(term) + 1
