"""The CloudWatch alarms."""

from math import exp

from aws_cdk import Duration
from aws_cdk.aws_cloudwatch import Alarm, ComparisonOperator, IMetric, TreatMissingData
from aws_cdk.aws_cloudwatch_actions import SnsAction
from aws_cdk.aws_lambda import IFunction
from aws_cdk.aws_sqs import IQueue
from constructs import Construct

from dueline.config import metrics
from dueline.config.names import runbook
from infra.constructs import watched
from infra.constructs.alarm_topic import AlarmTopics
from infra.constructs.schedules import PLANNER_WATCH_HOURS, WATCH_MINUTES
from infra.constructs.ttl_guard import TTL_MINUTES

_INBOUND_TOO_OLD_SECONDS = 300
_TOO_LATE_SECONDS = 60
_TICKS_MINUTES = 5
_LEAST_PERCENT_ON_TIME = 99.9
_GROWTH_MINUTES = 15
_DEPLOYMENT_HOURS = 2


class Alarms(Construct):
    """Alarms that report when they begin and when they are over. Each says what is wrong in its description.

    Those that cost jobs their time wake somebody. The others are tickets: nothing is lost if they wait for the morning.
    """

    def __init__(self, scope: Construct, id: str, *, topics: AlarmTopics, deployment: str) -> None:
        super().__init__(scope, id)
        self._topics, self._deployment = topics, deployment

    def on_dead_letters(self, id: str, queue: IQueue, *, what: str, page: str) -> None:
        """Alarm when a dead-letter queue holds a message, and again when there are more: the first may stay for days.

        For that, one of the last minutes is enough: what trickles in rings once, and not with each message.
        """
        reason = f"{what}. See the messages' attributes for the reason."
        self._alarm(id, watched.waiting(queue), description=reason, page=page, is_ticket=True)
        self._alarm(
            f"{id}Growing",
            watched.growth(queue),
            one_of=_GROWTH_MINUTES,
            description=f"More than before: {reason}",
            page=page,
            is_ticket=True,
        )

    def on_failed_firings(self, dead_letters: IQueue) -> None:
        """Alarm when a tick's firing is given up. By what is sent: nobody needs the messages, nor has to purge them."""
        self._alarm(
            "TickDeadLetters",
            dead_letters.metric_number_of_messages_sent(period=Duration.minutes(5), statistic="Sum"),
            description="Ticks could not be invoked or failed. See the messages of the queue.",
            page="failed-firings",
            is_ticket=True,
        )

    def on_old_messages(self, inbound: IQueue) -> None:
        """Alarm when jobs wait for ingest: past 10 min they are late, and one queue's flood delays the others."""
        self._alarm(
            "InboundAge",
            inbound.metric_approximate_age_of_oldest_message(period=Duration.minutes(1), statistic="Maximum"),
            at_least=_INBOUND_TOO_OLD_SECONDS,
            description="Jobs wait in the inbound queue: ingest does not keep up, or cannot write to the table.",
            page="inbound-backlog",
        )

    def on_errors(self, name: str, function: IFunction) -> None:
        """Alarm when a function fails."""
        errors = function.metric_errors(period=Duration.minutes(5), statistic="Sum")
        description = f"The function {name} failed. See its log."
        self._alarm(
            f"{name.capitalize()}Errors", errors, description=description, page="function-errors", is_ticket=True
        )

    def on_throttles(self, name: str, function: IFunction) -> None:
        """Alarm when Lambda does not run a function."""
        throttles = function.metric_throttles(period=Duration.minutes(5), statistic="Sum")
        description = f"Lambda did not run the function {name}: as many run at once as it or the account may."
        self._alarm(f"{name.capitalize()}Throttles", throttles, description=description, page="function-throttled")

    def on_api_faults(self) -> None:
        """Alarm when the API's function failed requests because AWS failed.

        It answers 503 then, alone or for one of many; and it answers 503 for what cannot be done yet, which is no
        fault. So the statuses of its answers do not show it.
        """
        self._alarm(
            "ApiFaults",
            watched.own(metrics.API_FAULTS, self._deployment, statistic="Sum", minutes=5),
            description="AWS failed the HTTP API, and its callers have to try again. See the api function's log.",
            page="api-faults",
        )

    def on_late_jobs(self, queue: str) -> None:
        """Alarm when a queue's oldest job that is not handed over is a minute past due.

        And when over one in a thousand of its jobs was handed over more than a minute late, in an hour. Where none was
        delayed, there is no share: that is no alarm.
        """
        self._alarm(
            "Lateness",
            watched.own(metrics.LATENESS, self._deployment, queue, statistic="Maximum", minutes=1),
            at_least=_TOO_LATE_SECONDS,
            description=f"Jobs of queue {queue} are late. See the tick function's log for what stopped it.",
            page="late-jobs",
        )
        self._alarm(
            "OnTime",
            watched.percent_on_time(self._deployment, queue),
            below=_LEAST_PERCENT_ON_TIME,
            description=f"Under {_LEAST_PERCENT_ON_TIME} % of the jobs of queue {queue} were on time (60 s).",
            page="jobs-not-on-time",
            is_ticket=True,
        )

    def on_missing_ticks(self, queue: str, *, partitions: int) -> None:
        """Alarm when fewer ticks end than are fired: one that dies leaves no sample of lateness.

        A schedule fires once in each minute, so five minutes bring five samples a partition, but for a few. Of up to
        40 partitions, one that is dead rings; of more, the watch of the core reports it.
        Silence after that is reported, too.
        """
        firings, minutes = _TICKS_MINUTES * partitions, _TICKS_MINUTES
        self._alarm(
            "MissingTicks",
            watched.own(metrics.LATENESS, self._deployment, queue, statistic="SampleCount", minutes=minutes),
            below=firings - ticks_that_may_miss(firings),
            all_of=2,
            is_silence_reported=True,
            description=f"A partition of queue {queue} has no tick: its ticks die, or are not fired.",
            page="missing-ticks",
        )

    def on_partitions_without_tick(self) -> None:
        """Alarm when a partition that had ticks has had none for ten minutes, or when nobody looks any more.

        And when a partition of queues.yaml never had a tick, once a deployment should be through: until its queue's
        stack stands, nobody can give it jobs.
        """
        self._alarm(
            "WithoutTick",
            self._most(metrics.WITHOUT_TICK, minutes=WATCH_MINUTES),
            all_of=2,
            is_silence_reported=True,
            description="Partitions have no tick any more. See the tick function's log for which.",
            page="partitions-without-tick",
        )
        self._alarm(
            "NeverTicked",
            self._most(metrics.NEVER_TICKED, minutes=WATCH_MINUTES),
            all_of=60 * _DEPLOYMENT_HOURS // WATCH_MINUTES,
            description="Partitions of queues.yaml never had a tick. See the tick function's log for which.",
            page="partitions-without-tick",
            is_ticket=True,
        )

    def on_ttl_off(self) -> None:
        """Alarm while TTL is switched off, because jobs wait for ticks, or when nobody guards it."""
        self._alarm(
            "TtlOff",
            self._most(metrics.TTL_OFF, minutes=3 * TTL_MINUTES),
            is_silence_reported=True,
            description="TTL is off or should be: jobs are hours late. Or its guard does not run. See the log of ttl.",
            page="ttl-off",
        )

    def on_schedules_that_stand_still(self) -> None:
        """Alarm when the planner's watch found schedules whose next runs were not made, or when nobody looks."""
        self._alarm(
            "StandingStill",
            # Two of the watch's periods hold at least one of its looks.
            self._most(metrics.STANDING_STILL, minutes=2 * 60 * PLANNER_WATCH_HOURS),
            is_silence_reported=True,
            description="Schedules stood still: their next runs were not made. See the planner function's log.",
            page="schedules-stand-still",
        )

    def _most(self, metric: str, *, minutes: int) -> IMetric:
        return watched.own(metric, self._deployment, statistic="Maximum", minutes=minutes)

    def _alarm(
        self,
        id: str,
        metric: IMetric,
        *,
        description: str,
        page: str,
        at_least: float = 1,
        below: float = 0,
        one_of: int = 1,
        all_of: int = 1,
        is_silence_reported: bool = False,
        is_ticket: bool = False,
    ) -> None:
        """Alarm when a metric is at least so much, or below that, in one of some periods or in all of them.

        If its silence is reported, that is by CloudWatch's state for insufficient data. A new alarm begins in it and
        reports nothing; one that takes missing data for a breach would ring in each new deployment.
        """
        operators = ComparisonOperator.LESS_THAN_THRESHOLD, ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
        alarm = Alarm(
            self,
            id,
            alarm_description=f"{description} Runbook: {runbook(page)}",
            metric=metric,
            comparison_operator=operators[not below],
            threshold=below or at_least,
            evaluation_periods=max(one_of, all_of),
            datapoints_to_alarm=all_of,
            # SQS and Lambda report nothing where nothing happens.
            treat_missing_data=TreatMissingData.MISSING if is_silence_reported else TreatMissingData.NOT_BREACHING,
        )
        for action in map(SnsAction, self._topics.ticket if is_ticket else self._topics.page):
            alarm.add_alarm_action(action)
            alarm.add_ok_action(action)
            if is_silence_reported:
                alarm.add_insufficient_data_action(action)


# Of the firings of five minutes, those of the last second: a tick takes up to a second, and is counted when it ends.
# That Scheduler loses one is rarer by far: it invokes at least once, and tries again for two minutes.
_COUNTED_ELSEWHERE = 1 / 300
# In one period. Two in a row are one in a million, and CloudWatch looks each minute: every other year.
_FALSE_ALARMS = 1 / 1000
# Of two partitions that fire together, at the end of the period.
_AT_LEAST = 2


def ticks_that_may_miss(firings: int) -> int:
    """Return how many of a period's firings may leave no sample in it.

    As many as are missing by chance in all but one of a thousand periods; by the Poisson distribution, since each
    firing is counted elsewhere with the same small probability. For one, four, 60 and 400 partitions:

    >>> [ticks_that_may_miss(5 * partitions) for partitions in (1, 4, 60, 400)]
    [2, 2, 5, 16]
    """
    expected = firings * _COUNTED_ELSEWHERE
    missing, term = 0, exp(-expected)
    likely = term
    while likely < 1 - _FALSE_ALARMS:
        missing += 1
        term *= expected / missing
        likely += term
    return max(_AT_LEAST, missing)
