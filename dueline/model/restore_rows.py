"""Rows of a restore: how far each segment of a backup is taken over.

| row      | pk                  | sk                      | holds                                    |
|----------|---------------------|-------------------------|------------------------------------------|
| progress | `!restore#{backup}` | `{segment}.{segments}`  | after: pk, sk as JSON; begun or done; ttl |
| lock     | same                | `run`                   | owner; ttl: until then                   |

They are in the table of jobs. No queue's name begins with `!`.
"""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta

from dueline.model.rows import Key, Row

_BEFORE_ALL = "!restore#"
_KEPT = timedelta(days=45)


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """All rows up to the key `after` are taken over, and of a few after it that is not known if it was `begun`."""

    after: Key | None = None
    begun: bool = False
    done: bool = False


def progress_key(backup: str, segment: int, *, of: int) -> Key:
    return f"{_BEFORE_ALL}{backup}", f"{segment}.{of}"


def lock_row(backup: str, *, owner: str, until: datetime) -> Row:
    return {"pk": f"{_BEFORE_ALL}{backup}", "sk": "run", "owner": owner, "ttl": int(until.timestamp())}


def is_progress(key: Key) -> bool:
    return key[0].startswith(_BEFORE_ALL)


def progress_row(key: Key, progress: Progress, *, now: datetime) -> Row:
    pk, sk = key
    after = {"after": json.dumps(progress.after)} if progress.after else {}
    flags = {"begun": progress.begun, "done": progress.done}
    return {"pk": pk, "sk": sk, **after, **flags, "ttl": int((now + _KEPT).timestamp())}


def read_progress(row: Row | None) -> Progress:
    if row is None:
        return Progress()
    pk, sk = json.loads(str(row["after"])) if "after" in row else ("", "")
    return Progress(after=(pk, sk) if pk else None, begun=bool(row["begun"]), done=bool(row["done"]))
