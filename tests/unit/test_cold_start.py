"""What the functions import as they start: nothing that they do not use. `make bench` tells how long it takes."""

import sys

import pytest

from bench.cold.staged import FUNCTIONS, environment, stage
from bench.cold.start import start


def under(package, names):
    return {f"{package}.{name}" for name in names.split()}


BOTO3 = {"boto3", "botocore", "certifi", "dateutil", "jmespath", "s3transfer", "six", "urllib3"}
# typing_extensions: Powertools wants it.
LIBRARIES = BOTO3 | {"aws_lambda_powertools", "typing_extensions"}
PYDANTIC = {"annotated_types", "pydantic", "pydantic_core", "typing_inspection"}
OURS = {
    *under("dueline", "aws clock config errors model ports protocol retry retry.threads"),
    *under("dueline.aws", "clients deployed dynamodb faults sqs transport"),
    *under("dueline.aws.dynamodb", "before items table typed updates"),
    *under("dueline.aws.transport", "connections sending signature"),
    *under("dueline.config", "metrics names registry settings"),
    *under(
        "dueline.model", "folding instant job message move_rows nominal packing pointer queue_settings routing rows"
    ),
    *under("dueline.model", "text trace units"),
    *under("dueline.model", "control_rows rate schema"),
    *under("dueline.protocol", "dispatch park"),
    "dueline",
    "dueline.aws.sqs.queue",
    "functions",
    *under("functions", "declared_queues log metrics"),
}
# What knows how far queues are deployed.
STANDING = {
    *under("dueline.aws", "published standing"),
    *under("dueline.model", "retry_policy work_settings"),
    "dueline.config.work",
    "functions.queue_registry",
}
# What knows what a schedule is.
SCHEDULES = {
    "dueline.model.schedule_rows",
    "dueline.schedules",
    *under(
        "dueline.schedules",
        "cron definition ending every head local_times missed occurrence rule submitting syntax zones",
    ),
}
OURS_OF = {
    "ingest": STANDING
    | {
        *under("dueline.protocol", "astray ingest move table_route"),
        *under("dueline", "retry retry.patience"),
        *under("functions", "ingest on_time"),
    },
    "tick": {*under("dueline.protocol", "entries lease partitions tick"), *under("functions", "on_time tick")},
    "planner": SCHEDULES
    | {
        *under("dueline.schedules", "plan_step planner watchdog"),
        *under("dueline", "aws.sqs.inbox model.request protocol.table_route"),
        *under("functions", "on_time planner"),
    },
    "api": STANDING
    | {
        *under("dueline", "client client.answers client.listed lookup operate operate.control"),
        *under("dueline.aws", "payloads resources"),
        *under("dueline.lookup", "control listing outcome overview status submitted"),
        "dueline.model.request",
        *under(
            "dueline.protocol",
            "breaker cancel given_id keys move offload partitions preparation reschedule sender submission submit"
            " table_route uploads write_through",
        ),
        *under("functions", "api http"),
        *under(
            "functions.http",
            "bodies forms job_answers listed_jobs logs_and_metrics problems query_strings queue_answers",
        ),
    },
}
OF_RULES = {"cronsim"}
LIBRARIES_OF = {
    "ingest": LIBRARIES,
    "tick": LIBRARIES,
    "planner": LIBRARIES | OF_RULES,
    "api": LIBRARIES | PYDANTIC,
}
# Descriptions of services that boto3 reads to make a client: ingest seldom sends, and nobody needs S3 at once.
MODELS_OF = {
    "ingest": ("ssm", "dynamodb"),
    "tick": ("dynamodb", "sqs"),
    "planner": ("dynamodb", "sqs"),
    "api": ("ssm", "dynamodb", "sqs"),
}
# Powertools brings the classes of 40 kinds of events with the first of them.
OF_HTTP = ("aws_lambda_powertools.event_handler", "aws_lambda_powertools.utilities.data_classes")


@pytest.fixture(scope="module")
def code(tmp_path_factory):
    return stage(tmp_path_factory.mktemp("code"))


@pytest.fixture(scope="module")
def started(code):
    return {name: start(f"functions.{name}:handler", code=code, environment=environment(name)) for name in FUNCTIONS}


def packages(loaded):
    return {name.partition(".")[0] for name in loaded}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_imports_those_of_our_modules_that_it_uses(started, name):
    ours = {each for each in started[name].loaded if packages([each]) <= {"dueline", "functions"}}
    assert ours == OURS | OURS_OF[name]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_imports_no_library_that_it_does_not_use(started, name):
    libraries = packages(started[name].loaded) - sys.stdlib_module_names - {"dueline", "functions"}
    # Python's own: how it was built, and what multiprocessing calls a script.
    libraries = {each for each in libraries if not each.startswith("_")}
    assert libraries <= LIBRARIES_OF[name]
    assert {"boto3", "aws_lambda_powertools"} <= libraries


@pytest.mark.parametrize("name", ["ingest", "tick", "planner"])
def test_the_api_alone_imports_what_powertools_has_for_http(started, name):
    def of_http(loaded):
        return {each for each in loaded if each.startswith(OF_HTTP)}

    assert not of_http(started[name].loaded)
    assert of_http(started["api"].loaded)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_makes_those_clients_as_it_starts_that_it_will_need(started, name):
    assert started[name].models == MODELS_OF[name]
    assert tuple(started[name].clients) == MODELS_OF[name]


@pytest.mark.parametrize("name", ["Client", "Worker"])
def test_what_users_import_brings_the_standard_library_alone(code, name):
    loaded = start(f"dueline:{name}", code=code).loaded
    libraries = {each for each in packages(loaded) - sys.stdlib_module_names if not each.startswith("_")}
    assert libraries == {"dueline"}


def test_a_start_that_fails_says_why(code):
    with pytest.raises(RuntimeError, match="DUELINE_DEPLOYMENT"):
        start("functions.tick:handler", code=code)
