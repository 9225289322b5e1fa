"""The CloudWatch alarms."""

from aws_cdk import Duration
from aws_cdk.aws_cloudwatch import Alarm, ComparisonOperator, IMetric, MathExpression, Metric, TreatMissingData
from aws_cdk.aws_cloudwatch_actions import SnsAction
from aws_cdk.aws_lambda import IFunction
from aws_cdk.aws_sns import ITopic
from aws_cdk.aws_sqs import IQueue
from constructs import Construct

from dueline.config import metrics
from infra.constructs.schedule_group import PLANNER_WATCH_HOURS, WATCH_MINUTES

_INBOUND_TOO_OLD_SECONDS = 300
_TOO_LATE_SECONDS = 60
_TICKS_MINUTES = 5
_TICKS_MAY_MISS = 2
_LEAST_PERCENT_ON_TIME = 99.9


class Alarms(Construct):
    """Alarms that notify one topic. Each says what is wrong in its description."""

    def __init__(self, scope: Construct, id: str, *, topic: ITopic) -> None:
        super().__init__(scope, id)
        self._action = SnsAction(topic)

    def on_dead_letters(self, id: str, queue: IQueue, *, what: str) -> None:
        """Alarm when a dead-letter queue holds a message."""
        waiting = queue.metric_approximate_number_of_messages_visible(period=_minutes(1), statistic="Maximum")
        self._alarm(id, waiting, at_least=1, description=f"{what}. See the messages' attributes for the reason.")

    def on_old_messages(self, id: str, inbound: IQueue) -> None:
        """Alarm when jobs wait for ingest: past 10 min they are late, and one queue's flood delays the others."""
        oldest = inbound.metric_approximate_age_of_oldest_message(period=_minutes(1), statistic="Maximum")
        description = "Jobs wait in the inbound queue: ingest does not keep up, or cannot write to the table."
        self._alarm(id, oldest, at_least=_INBOUND_TOO_OLD_SECONDS, description=description)

    def on_errors(self, id: str, function: IFunction, *, name: str) -> None:
        """Alarm when a function fails."""
        errors = function.metric_errors(period=_minutes(5), statistic="Sum")
        self._alarm(id, errors, at_least=1, description=f"The function {name} failed. See its log.")

    def on_throttles(self, id: str, function: IFunction, *, name: str) -> None:
        """Alarm when Lambda does not run a function."""
        throttles = function.metric_throttles(period=_minutes(5), statistic="Sum")
        description = f"Lambda did not run the function {name}: as many run at once as the account may."
        self._alarm(id, throttles, at_least=1, description=description)

    def on_api_faults(self, id: str, *, deployment: str) -> None:
        """Alarm when the API's function failed requests because AWS failed.

        It answers 503 then, alone or for one of many; and it answers 503 for what cannot be done yet, which is no
        fault. So the statuses of its answers do not tell.
        """
        faults = _deployment_metric(metrics.API_FAULTS, deployment, statistic="Sum", minutes=5)
        description = "AWS failed the HTTP API, which told its callers to try again. See the api function's log."
        self._alarm(id, faults, at_least=1, description=description)

    def on_lateness(self, id: str, *, deployment: str, queue: str) -> None:
        """Alarm when a queue's oldest job that is not handed over is a minute past due."""
        latest = _lateness_metric(deployment, queue, statistic="Maximum")
        description = f"Jobs of queue {queue} are late. See the tick function's log for what stopped it."
        self._alarm(id, latest, at_least=_TOO_LATE_SECONDS, description=description)

    def on_delayed_jobs(self, id: str, *, deployment: str, queue: str) -> None:
        """Alarm when over one in a thousand jobs of a queue was handed over more than a minute late, in an hour.

        Where none was delayed, one of the two metrics is missing, and so is the share: that is no alarm.
        """
        of_queue = {
            name: _queue_metric(metric, deployment, queue, statistic="Sum", minutes=60)
            for name, metric in (("on_time", metrics.ON_TIME), ("delayed", metrics.DELAYED))
        }
        Alarm(
            self,
            id,
            alarm_description=f"Under {_LEAST_PERCENT_ON_TIME} % of the jobs of queue {queue} were on time (60 s).",
            metric=MathExpression(
                expression="100 * on_time / (on_time + delayed)",
                using_metrics=of_queue,
                label="% on time",
                period=_minutes(60),
            ),
            comparison_operator=ComparisonOperator.LESS_THAN_THRESHOLD,
            threshold=_LEAST_PERCENT_ON_TIME,
            evaluation_periods=1,
            treat_missing_data=TreatMissingData.NOT_BREACHING,
        ).add_alarm_action(self._action)

    def on_missing_ticks(self, id: str, *, deployment: str, queue: str, partitions: int) -> None:
        """Alarm when fewer ticks end than are fired: one that dies leaves no sample of lateness.

        A schedule fires once in each minute, so five minutes bring five samples a partition. Two may be missing.
        A new queue's alarm rings until its ticks have run for ten minutes.
        """
        Alarm(
            self,
            id,
            alarm_description=f"A partition of queue {queue} has no tick: its ticks die, or are not fired.",
            metric=_lateness_metric(deployment, queue, statistic="SampleCount", minutes=_TICKS_MINUTES),
            comparison_operator=ComparisonOperator.LESS_THAN_THRESHOLD,
            threshold=_TICKS_MINUTES * partitions - _TICKS_MAY_MISS,
            evaluation_periods=2,
            treat_missing_data=TreatMissingData.BREACHING,
        ).add_alarm_action(self._action)

    def on_partitions_without_tick(self, id: str, *, deployment: str) -> None:
        """Alarm when a partition of queues.yaml has had no tick for ten minutes, or when nobody looks.

        A queue's own alarms come with its stack; where that is missing or failed, this one tells.
        """
        Alarm(
            self,
            id,
            alarm_description="Partitions of queues.yaml have no tick. See the tick function's log for which.",
            metric=_deployment_metric(metrics.WITHOUT_TICK, deployment, statistic="Maximum", minutes=WATCH_MINUTES),
            comparison_operator=ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            threshold=1,
            evaluation_periods=2,
            treat_missing_data=TreatMissingData.BREACHING,
        ).add_alarm_action(self._action)

    def on_schedules_that_stand_still(self, id: str, *, deployment: str) -> None:
        """Alarm when the planner's watch found schedules whose next runs were not made, or when nobody looks."""
        # Two of the watch's periods hold at least one of its looks.
        minutes = 2 * 60 * PLANNER_WATCH_HOURS
        Alarm(
            self,
            id,
            alarm_description="Schedules stood still: their next runs were not made. See the planner function's log.",
            metric=_deployment_metric(metrics.STANDING_STILL, deployment, statistic="Maximum", minutes=minutes),
            comparison_operator=ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            threshold=1,
            evaluation_periods=1,
            treat_missing_data=TreatMissingData.BREACHING,
        ).add_alarm_action(self._action)

    def _alarm(self, id: str, metric: IMetric, *, at_least: int, description: str) -> None:
        Alarm(
            self,
            id,
            alarm_description=description,
            metric=metric,
            comparison_operator=ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            threshold=at_least,
            evaluation_periods=1,
            # SQS and Lambda report nothing where nothing happens.
            treat_missing_data=TreatMissingData.NOT_BREACHING,
        ).add_alarm_action(self._action)


def _lateness_metric(deployment: str, queue: str, *, statistic: str, minutes: int = 1) -> IMetric:
    return _queue_metric(metrics.LATENESS, deployment, queue, statistic=statistic, minutes=minutes)


def _queue_metric(name: str, deployment: str, queue: str, *, statistic: str, minutes: int) -> IMetric:
    return Metric(
        namespace=metrics.NAMESPACE,
        metric_name=name,
        dimensions_map=metrics.dimensions(deployment, queue),
        statistic=statistic,
        period=_minutes(minutes),
    )


def _deployment_metric(name: str, deployment: str, *, statistic: str, minutes: int) -> IMetric:
    return Metric(
        namespace=metrics.NAMESPACE,
        metric_name=name,
        dimensions_map=metrics.dimensions(deployment),
        statistic=statistic,
        period=_minutes(minutes),
    )


def _minutes(count: int) -> Duration:
    return Duration.minutes(count)
