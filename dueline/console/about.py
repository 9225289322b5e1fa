"""`/console/about`: which deployment is shown, and with whose credentials."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPMethod

from dueline import __version__
from dueline.console.routes import Call, Route
from dueline.console.web import Answer


@dataclass(frozen=True, kw_only=True, slots=True)
class About:
    """What a console shows: a deployment, in a region if it is on AWS, by its API's URL.

    `caller` tells the ARN of the credentials, or None where there are none or nobody tells.
    """

    deployment: str
    region: str | None
    url: str
    read_only: bool
    caller: Callable[[], str | None]

    def routes(self) -> Iterator[Route]:
        yield Route(method=HTTPMethod.GET, form="/console/about", answer=self._answer)

    def _answer(self, _: Call) -> Answer:
        told = {"deployment": self.deployment, "region": self.region, "url": self.url, "read_only": self.read_only}
        return Answer.json(told | {"version": __version__, "as": self.caller()})
