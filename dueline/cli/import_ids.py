"""Import ids: those of a run's jobs, all told by one token, so that a line that is tried again is the same job."""

import re
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta

import typer

from dueline.client.id_terms import IdTerms
from dueline.client.new_job import NewJob
from dueline.model import instant
from dueline.model.job import JobId, Partition, Route
from dueline.model.routing import JOBS_TO_A_PARTITION, partition_of
from dueline.model.text import shown

_TOKEN = re.compile(
    r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([1-9][0-9]{0,2})\.([dt])\.(0|[1-9][0-9]{0,12})", re.ASCII
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportIds:
    """The ids of one run's lines, whichever command makes them. All are due at once, and go by one route.

    Those of up to 100 neighbours share one of `partitions`, as the jobs of one call do. `number` names the run.
    """

    number: uuid.UUID
    partitions: int
    route: Route
    due: datetime

    @classmethod
    def begun(cls, number: uuid.UUID, terms: IdTerms, *, at: datetime | None, delay: timedelta | None) -> "ImportIds":
        """Return the ids of a run that begins now. Raises InvalidJob for a time that no job can be due at."""
        # It is AWS's clock that shows how far ahead a time is.
        request = NewJob(payload=None, at=at, delay=delay).checked(now=terms.moment.latest)
        due = terms.due(at=request.at, delay=request.delay)
        return cls(number=number, partitions=terms.partitions, route=terms.route(due), due=due)

    @classmethod
    def parse(cls, token: str) -> "ImportIds":
        """Return the ids that a token names. Raises typer.BadParameter."""
        match = _TOKEN.fullmatch(token)
        if match is None:
            form = "{UUID}.{partitions}.{d or t}.{due in ms}, as an earlier run printed it"
            raise typer.BadParameter(f"{shown(token, most=200)} is no run: it must be of the form {form}")
        number, partitions, route, due_ms = match.groups()
        due = instant.from_epoch_ms(int(due_ms))
        return cls(number=uuid.UUID(number), partitions=int(partitions), route=Route(route), due=due)

    def __str__(self) -> str:
        return f"{self.number}.{self.partitions}.{self.route}.{instant.epoch_ms(self.due)}"

    def id(self, queue: str, line: int) -> JobId:
        """Return the id of a line's job."""
        first = self._uid(line - line % JOBS_TO_A_PARTITION)
        partition = Partition(queue=queue, number=partition_of(first, self.partitions))
        return JobId(partition=partition, route=self.route, due=self.due, uid=self._uid(line))

    def _uid(self, line: int) -> str:
        return str(uuid.uuid5(self.number, str(line)))
