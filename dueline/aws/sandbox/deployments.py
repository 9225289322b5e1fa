"""Deployments: a sandbox is deployed with another number of a queue's partitions, by a command of its user's."""

import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any

import dueline.verify
from dueline.aws import clients
from dueline.aws.published import Published
from dueline.aws.tick_schedules import TickSchedules
from dueline.client.client import Client
from dueline.clock import SystemClock
from dueline.config.names import Names
from dueline.config.other_partitions import partitions_of, with_partitions
from dueline.verify.sandbox import Deployed
from dueline.verify.trial import NotDeployed

if TYPE_CHECKING:
    from boto3 import Session

SHIPPED = Path(dueline.verify.__file__).parent / "queues.yaml"
# What of a command is the path of the file that it is to deploy.
QUEUES = "{queues}"
_LONGEST_REQUEST = timedelta(seconds=20)
_TOLD_CHARACTERS = 2000
_LOOK_SECONDS = 1.0


class Deployments:
    """Deploys the sandbox by a command, which is run as it is, without a shell; `{queues}` in it is a file's path."""

    def __init__(self, names: Names, session: "Session", *, client: Client, command: str | None) -> None:
        self._names, self._client, self._command = names, client, command
        self._ssm = clients.ssm(session, longest=_LONGEST_REQUEST)
        self._scheduler: Any = clients.of_service("scheduler", session, longest=_LONGEST_REQUEST)
        self._clock = SystemClock()

    @property
    def is_possible(self) -> bool:
        return self._command is not None

    @contextmanager
    def deploying(self, partitions: Mapping[str, int]) -> Iterator[Callable[[], Deployed | None]]:
        """Deploy what is shipped, but for the partitions of some queues; end when that is over, and not before.

        CloudFormation goes on with what it has begun, and nobody can mend a stack meanwhile. A session of its own, so
        that Ctrl-C ends the run, and not the deployment half-way.
        """
        for queue in partitions:
            self._forget_what_went(queue)
        with TemporaryDirectory() as folder:
            words = self._words(self._file(partitions, folder=Path(folder)))
            with (Path(folder) / "told").open("w+b") as told:
                process = subprocess.Popen(  # noqa: S603, whoever types it runs it
                    words, stdin=subprocess.DEVNULL, stdout=told, stderr=told, start_new_session=True
                )
                try:
                    yield lambda: _ended(process, told)
                finally:
                    process.wait()

    def mend(self, cancel_all: Callable[[], object]) -> None:
        """Deploy as many partitions as are shipped, if there are others. Raises NotDeployed.

        Jobs in partitions that are to go keep them. Those that a deployment has half taken away are not listed, so that
        nobody can cancel them, before it is deployed whole again.
        """
        declared, stand = self._declared(), self._standing()
        wanted = partitions_of(SHIPPED)
        wrong = [queue for queue, number in wanted.items() if {declared.get(queue), stand[queue]} != {number}]
        if wrong:
            if not self.is_possible:
                raise NotDeployed(f"queue {', '.join(wrong)}: add --deploy, or deploy what is shipped by hand")
            if any(declared.get(queue, 0) < stand[queue] for queue in wrong):
                self._deploy({queue: stand[queue] for queue in wrong})
                cancel_all()
            self._deploy({})
        for queue in wanted:
            self._forget_what_went(queue)

    def _deploy(self, partitions: Mapping[str, int]) -> None:
        with self.deploying(partitions) as ended:
            while (done := ended()) is None:
                self._clock.sleep(_LOOK_SECONDS)
        if not done.is_through:
            raise NotDeployed(done.told)

    def _file(self, partitions: Mapping[str, int], *, folder: Path) -> Path:
        file = folder / "queues.yaml"
        file.write_text(with_partitions(SHIPPED, partitions, name=self._names.deployment))
        return file

    def _words(self, file: Path) -> list[str]:
        return [word.replace(QUEUES, str(file)) for word in shlex.split(self._command or "")]

    def _declared(self) -> dict[str, int]:
        return {queue.name: queue.partitions for queue in self._client.queues()}

    def _standing(self) -> dict[str, int]:
        # Anew each time: what was read is kept for a minute.
        published = Published(self._ssm, self._names, clock=self._clock)
        return {queue: published.queue(queue).partitions for queue in partitions_of(SHIPPED)}

    def _forget_what_went(self, queue: str) -> None:
        """Delete the schedules of partitions that the queue's stack has no more, as `dueline adopt` does.

        They stay when it lets them go, and CloudFormation refuses to create what is there.
        """
        group, stands = self._names.schedule_group, self._standing()[queue]
        for partition in TickSchedules(self._scheduler, group).partitions():
            if partition.queue == queue and partition.number >= stands:
                self._scheduler.delete_schedule(GroupName=group, Name=self._names.schedule(queue, partition.number))


def _ended(process: "subprocess.Popen[bytes]", told: IO[bytes]) -> Deployed | None:
    if process.poll() is None:
        return None
    told.seek(0)
    text = told.read().decode(errors="replace").strip()
    return Deployed(is_through=process.returncode == 0, told=text[-_TOLD_CHARACTERS:])
