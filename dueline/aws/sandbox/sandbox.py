"""A sandbox: the deployment that checks run in, with a caller's own credentials."""

import json
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

import boto3

from dueline.aws import clients, gateway
from dueline.aws.dynamodb.table import DynamoTable
from dueline.aws.faults import of_callers
from dueline.aws.published import Published
from dueline.aws.sandbox.alarms import states_of, tell
from dueline.aws.sandbox.as_deployed import Looks
from dueline.aws.sandbox.dead_letters import DeadLetters, redriven
from dueline.aws.sandbox.deployments import Deployments
from dueline.aws.sandbox.expiring import Expiring
from dueline.aws.sandbox.faults import AwsFaults
from dueline.aws.sandbox.holders import Holders, answer_of
from dueline.aws.sandbox.inbox import failing, receiving
from dueline.aws.sandbox.simulator import Simulator
from dueline.aws.sandbox.tidying import Tidying
from dueline.aws.sandbox.usage import Usage
from dueline.client.client import Client
from dueline.clock import SystemClock
from dueline.config.names import Names
from dueline.model import instant, rows
from dueline.model.job import Partition
from dueline.retry.calls import Calls
from dueline.retry.patience import Patience
from dueline.verify.check import NotJudged
from dueline.verify.sandbox import PRIORITIES, Answer, AsDeployed, Call, Deployed, Figure, Landed, Left, Periods, Used
from dueline.worker.received import ReceivedJob

_LONGEST_REQUEST = timedelta(seconds=20)
# A local AWS is one process, which starts another for each invocation that is under way.
_LANES, _LOCAL_LANES = 10, 4
# Enough that a message is received when it is visible, and not when there is time for it.
_RECEIVERS, _LOCAL_RECEIVERS = 8, 2
_OF_AWS = ("amazonaws.com", "api.aws")


class AwsSandbox:
    """The deployment of that name. `url` is the API of a local run, which signs what it is sent.

    `deploy` is the command that deploys a file of queues, whose path stands for `{queues}` in it. `new_session` makes
    the caller's session: one is not to be used by several threads that make clients.
    """

    def __init__(
        self,
        name: str,
        *,
        client: Client,
        new_session: Callable[[], boto3.Session],
        url: str | None,
        deploy: str | None = None,
    ) -> None:
        self.name, self.client, self.clock, self._deploy = name, client, SystemClock(), deploy
        self._new_session, self._names = new_session, Names(name)
        self._session = session = new_session()
        self.region = str(session.region_name)
        self._sqs: Any = clients.sqs(session, longest=3 * _LONGEST_REQUEST)
        host = urlsplit(self._sqs.meta.endpoint_url).hostname or ""
        self.is_local = not host.endswith(_OF_AWS)
        patience = Patience(seconds=240) if self.is_local else Patience()
        self._calls = Calls(patience=patience, clock=self.clock, jitter=random.random)
        self._way = gateway.connect(name, url=url, session=session if url is None else None, lanes=_LANES)
        with of_callers(f"finding the deployment {name!r}"):
            ssm = clients.ssm(session, longest=_LONGEST_REQUEST)
            settings = Published(ssm, self._names, clock=self.clock).settings()
        self.periods = Periods(direct_horizon=settings.direct_horizon, lookahead=settings.lookahead)
        self._queue_urls = settings.queue_urls
        dynamodb = clients.dynamodb(session, longest=_LONGEST_REQUEST)
        self._table = DynamoTable(dynamodb, self._names.table, state=self._names.state)

    @cached_property
    def faults(self) -> AwsFaults:
        return AwsFaults(self._names, self._session, url=self._url)

    def spread(self, ask: Callable[[Any], Any], items: Iterable[Any], *, lanes: int | None = None) -> Iterable[Any]:
        with ThreadPoolExecutor(lanes or (_LOCAL_LANES if self.is_local else _LANES)) as pool:
            return list(pool.map(ask, items))

    def as_deployed(self) -> AsDeployed:
        with of_callers("looking at what is deployed"):
            return Looks(self._names, self._new_session(), url=self._url).run()

    def inbox(self, queue: str, *, priority: int = 1) -> AbstractContextManager[Sequence[Landed]]:
        lanes = _LOCAL_RECEIVERS if self.is_local else _RECEIVERS
        return receiving(self._sqs, self._url(self._names.queue(queue, priority)), lanes=lanes)

    @contextmanager
    def failing(self, queue: str) -> Iterator[None]:
        levels = [self._url(self._names.queue(queue, priority)) for priority in range(1, PRIORITIES + 1)]
        with ExitStack() as stack:
            for level in levels:
                stack.enter_context(failing(self._sqs, level))
            yield

    def redrive(self, queue: str | None) -> int:
        return redriven(self.name, queue, session=self._new_session(), calls=self._calls)

    @contextmanager
    def working(self, queue: str, function: Callable[[ReceivedJob], None], *, seconds: float = 0.0) -> Iterator[None]:
        def process(job: ReceivedJob) -> None:
            function(job)
            self.clock.sleep(seconds)

        worker = self._worker()
        worker.job(queue)(process)
        broken: list[BaseException] = []
        thread = threading.Thread(target=_run, args=(worker, broken), name="worker", daemon=True)
        thread.start()
        try:
            yield
        finally:
            worker.stop()
            thread.join()
        if broken:
            raise broken[0]

    def send(self, queue: str, bodies: Sequence[str], *, delay: int) -> None:
        entries = [{"Id": str(n), "MessageBody": body, "DelaySeconds": delay} for n, body in enumerate(bodies)]
        with of_callers(f"sending to queue {queue}"):
            self._sqs.send_message_batch(QueueUrl=self._url(self._names.queue(queue)), Entries=entries)

    def fence(self, queue: str) -> datetime | None:
        key = rows.state_key(Partition(queue=queue, number=0))
        fence = rows.read_state(self._table.read([key]).rows.get(key)).fence
        return instant.parse(fence) if fence else None

    def request(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Answer:
        text = None if body is None else json.dumps(body)
        return answer_of(self._calls.ask(lambda: self._way.send(method, path, text, headers={})))

    def put(self, url: str, headers: Mapping[str, str], body: bytes) -> int:
        return self._way.put(url, headers, body).status

    def holding(self, policy: str, queue: str) -> AbstractContextManager[Callable[[Call], bool]]:
        return self._holders.holding(policy, queue)

    def simulating(self, policy: str, queue: str) -> Callable[[Call], bool]:
        return self._simulator.of_policy(policy, queue)

    def simulating_function(self, function: str) -> Callable[[Call], bool]:
        return self._simulator.of_function(function)

    def ringing(self) -> AbstractContextManager[None]:
        return self._dead_letters.ringing()

    def most_at_once(self) -> int:
        client = clients.of_service("lambda", self._new_session(), longest=_LONGEST_REQUEST)
        with of_callers("asking how many functions may run at once"):
            return int(client.get_account_settings()["AccountLimit"]["ConcurrentExecutions"])

    def alarms(self) -> Mapping[str, str]:
        with of_callers("looking at alarms"):
            return states_of(self._names, self._cloudwatch)

    def fail(self, function: str) -> None:
        client = clients.of_service("lambda", self._new_session(), longest=3 * _LONGEST_REQUEST)
        client.invoke(FunctionName=self._names.function(function), Payload=b"{}")

    def tell(self, figures: Sequence[Figure]) -> None:
        with of_callers("telling CloudWatch figures"):
            tell(self._names, self._cloudwatch, figures)

    def deploying(self, queue: str, partitions: int) -> AbstractContextManager[Callable[[], Deployed | None]]:
        if not self._deployments.is_possible:
            raise NotJudged("nothing was said to deploy with: --deploy COMMAND, as `make verify-aws` does")
        return self._deployments.deploying({queue: partitions})

    def used(self, queue: str, *, start: datetime, end: datetime) -> Used:
        with of_callers("reading metrics from CloudWatch"):
            ssm = clients.ssm(self._session, longest=_LONGEST_REQUEST)
            api_id = ssm.get_parameter(Name=self._names.api_id_parameter)["Parameter"]["Value"]
            return Usage(self._names, self._cloudwatch, api_id=api_id).between(queue, start=start, end=end)

    def leave(self, name: str, *, until: datetime) -> None:
        self._expiring.leave(name, until=until)

    def left(self) -> Sequence[Left]:
        return self._expiring.left()

    def forget(self, name: str) -> None:
        self._expiring.forget(name)

    def tidy(self) -> list[str]:
        """Mend and remove whatever a run left behind; return what could not be, and why."""
        return Tidying(self.client, self.faults, self._holders, self._dead_letters, self._deployments).run()

    @cached_property
    def _holders(self) -> Holders:
        return Holders(self._names, self._session, url=self._way.url, queue_url=self._url)

    @cached_property
    def _deployments(self) -> Deployments:
        return Deployments(self._names, self._session, client=self.client, command=self._deploy)

    @cached_property
    def _simulator(self) -> Simulator:
        return Simulator(self._names, self._new_session())

    @cached_property
    def _dead_letters(self) -> DeadLetters:
        return DeadLetters(self._names, self._sqs, url=self._url)

    @cached_property
    def _expiring(self) -> Expiring:
        dynamodb = clients.of_service("dynamodb", self._session, longest=_LONGEST_REQUEST)
        return Expiring(dynamodb, self._names.table)

    @cached_property
    def _cloudwatch(self) -> Any:
        return clients.of_service("cloudwatch", self._session, longest=_LONGEST_REQUEST)

    def _url(self, name: str) -> str:
        return self._queue_urls + name

    def _worker(self) -> Any:
        try:
            from dueline.worker.watch.log import logger
        except ModuleNotFoundError as error:
            raise NotJudged(f"there is no {error.name}: pip install '.[worker]'") from None
        from dueline.worker.worker import Worker

        # Its lines would stand in the middle of what is shown.
        logger.setLevel("ERROR")
        return Worker(self.name, session=self._new_session())


def _run(worker: Any, broken: list[BaseException]) -> None:
    try:
        worker.run(grace=5)
    except Exception as error:
        broken.append(error)
