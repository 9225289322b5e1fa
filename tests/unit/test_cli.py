"""The command line, by transcripts: what is typed, what the deployment gets and answers, and what is shown.

In tests/unit/transcripts a block begins with `== its name`. `$ dueline …` is a command (`tty$` at a terminal), after
variables of the environment, if there are any, `| …` a line of its stdin, `< …` an answer of the API in place of the
usual ones, `> …` a request that it gets, `! …` a line on stderr, `[…]` an exit code that is not 0, and every other line
one on stdout, where `…` stands for any text, and alone for any lines. `$ dies BODY error=…` is no command: it puts a
dead letter of emails there, with such attributes; `$ refuses BODY` has SQS refuse it.
"""

import json
import re
import shlex
import signal
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import takewhile
from pathlib import Path
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner

from dueline import Client, Patience
from dueline.cli import connect, console_command, options, schedule_commands, screen
from dueline.cli.app import COMMANDS, app
from dueline.cli.connect import Target
from dueline.core.clock import SystemClock
from dueline.core.message import ERROR, ID, REASON, Message
from dueline.errors import ERRORS, Forbidden
from dueline.operations.redrive import RedriveQueues
from dueline.testing import MemoryQueue, VirtualClock
from dueline.worker import log
from tests.api_harness import call_api, forward_to_api, import_api
from tests.builders import EMAILS, NOW, a_job, a_queue, an_id
from tests.fake_api_server import Reply, json_reply, problem_reply
from tests.memory_operations import MemoryBackup
from tests.system import System
from tests.unit.test_restore import a_restore, lose
from tests.wire import Wire, failing, losing_the_answer, on, refusing, straight

ROOT = Path(__file__).parents[2]
MODULES = {
    "theirs": """
import dueline
class Worker(dueline.Worker):
    def run(self, **options):
        print(sorted(options.items()))
worker, number = Worker(), 5
""",
    "real": "import dueline\nworker = dueline.Worker()\nworker.job('emails')(print)\n",
    "broken": "1 / 0\n",
    "misused": "import dueline\nworker = dueline.Worker()\n@worker.job\ndef send(job): ...\n",
    "lacking": "import nowhere\n",
}


@dataclass(kw_only=True)
class Step:
    """One command of a transcript, and the `lines` for it and expected of it, by how they begin."""

    command: str
    has_terminal: bool
    lines: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    exit_code: int = 0


def blocks():
    for path in sorted((ROOT / "tests" / "unit" / "transcripts").glob("*.txt")):
        for block in re.split(r"^== ", path.read_text(), flags=re.MULTILINE)[1:]:
            name, *lines = block.strip().splitlines()
            yield pytest.param(path.stem, [*steps_of(lines)], id=f"{path.stem}: {name}")


def steps_of(lines):
    step = None
    for line in lines:
        line = re.sub(r"\bID(\d)\b", r"emails.0.t.1795244700000.00000000-0000-4000-8000-00000000000\1", line)
        if match := re.match(r"(tty)?\$ (.*)", line):
            if step:
                yield step
            step = Step(command=match[2], has_terminal=bool(match[1]))
        elif match := re.fullmatch(r"\[(\d+)\]", line):
            step.exit_code = int(match[1])
        else:
            kind = line[:1] if f"{line} "[:2] in ("| ", "< ", "> ", "! ") else ""
            step.lines[kind].append(line[2:] if kind else line)
    yield step


@pytest.fixture(autouse=True)
def _environment(monkeypatch, tmp_path):
    """Run in an empty folder, in UTC, with clients that try once and two queues of dead letters and restored rows."""
    monkeypatch.chdir(tmp_path)
    for name in ("DUELINE_NAME", "DUELINE_URL", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    connected = connect.client
    monkeypatch.setattr(
        connect, "client", lambda target, patience=None: Client(connected(target)._api, patience=Patience(attempts=1))
    )


@pytest.fixture(autouse=True)
def dead(monkeypatch):
    """The dead letters of emails, three of one error and one of another, and a parked job, in memory."""
    clock, wire = VirtualClock(datetime.now(UTC) - timedelta(hours=3)), Wire()
    queues = {name: wire.to(name, MemoryQueue(name=name, clock=clock)) for name in ("dead", "parked", "emails")}
    ends, parked = (RedriveQueues(dead_letters=queues[name], queues=[queues["emails"]]) for name in ("dead", "parked"))
    for number, error in enumerate(["KeyError", "KeyError", "KeyError", "TypeError"]):
        attributes = {ID: str(an_id()), ERROR: error, REASON: "why\x9b31m"}
        ends.dead_letters.send([Message(body=str(number), attributes=attributes)])
    parked.dead_letters.send([Message.of(a_job(due=datetime.now(UTC).replace(microsecond=0))).with_reason("gone")])
    monkeypatch.setattr(connect, "dead_letters", lambda _, queue: ends if queue else parked)
    return ends, wire


@pytest.fixture(autouse=True)
def _restored(monkeypatch):
    """A deployment that lost a job, and a backup that has it."""
    system = System()
    system.tick(EMAILS)
    system.schedule(3600)
    backup = MemoryBackup(system.stores.table)
    lose(system)
    monkeypatch.setattr(connect, "restore", lambda *_, **__: a_restore(system, backup))


@pytest.fixture
def function(api_server, monkeypatch):
    """The API's own function, which answers from memory."""
    with import_api(monkeypatch, a_queue(), a_queue(name="invoices")) as api:
        api_server.respond = partial(forward_to_api, api)
        # It runs in this process: its metrics are no output of the command.
        monkeypatch.setattr("dueline.functions.telemetry._line", lambda *_: {})
        yield api


def typed(*args, stdin=None, **environment):
    return CliRunner().invoke(app, list(args), input=stdin, env=environment)


@pytest.mark.parametrize(("kind", "steps"), list(blocks()))
def test_transcript(kind, steps, dead, api_server, monkeypatch, request):
    if kind == "schedules":
        request.getfixturevalue("function")
    for step in steps:
        run_step(step, dead, api_server, monkeypatch)


@pytest.mark.parametrize(("options", "is_text"), [(["--log", "text"], True), (["--log", "json"], False), ([], False)])
def test_worker_logs_in_the_form_of_its_option(options, is_text):
    try:
        log.write_as("json" if is_text else "text")
        assert typed("worker", "theirs:worker", *options).exit_code == 0
        assert isinstance(log.logger.registered_handler.formatter, log.TextFormatter) is is_text
    finally:
        log.write_as("json")


def run_step(step, dead, api_server, monkeypatch):
    words = shlex.split(step.command)
    environment = dict(word.split("=", 1) for word in takewhile(lambda word: "=" in word, words))
    program, *args = words[len(environment) :]
    if program == "cat":
        return check(step.lines[""], Path(args[0]).read_text(), step.command)
    if program == "write":
        Path(args[0]).write_bytes(args[1].encode().decode("unicode_escape").encode("latin-1"))
        return None
    if program == "dies":
        attributes = dict(each.encode().decode("unicode_escape").split("=", 1) for each in args[1:])
        dead[0].dead_letters.send([dead_letter(payload=args[0], **attributes)])
        return None
    if program == "refuses":
        dead[1].around = on("emails.send", refusing(lambda message: message.body == args[0]))
        return None
    monkeypatch.setattr(screen, "can_confirm", lambda: step.has_terminal)
    api_server.requests.clear()
    api_server.queues_reply = None if "GET /queues" in step.lines[">"] else json_reply({"queues": []})
    api_server.script = [Reply(status=int(each[:3]), body=each[4:].encode()) for each in step.lines["<"]]
    # A worker's deployment is in its code.
    options = [] if environment or "worker" in args else ["--url", api_server.url]
    variables = {name: value.replace("http://api", api_server.url) for name, value in environment.items()}
    result = typed(*options, *args, stdin="".join(f"{line}\n" for line in step.lines["|"]), **variables)
    check(step.lines["!"], result.stderr.replace(api_server.url, "http://api"), step.command)
    check(step.lines[""], result.stdout.replace(api_server.url, "http://api"), step.command)
    if step.lines[">"]:
        requests = [f"{each.method} {each.path} {each.body.decode()}".strip() for each in api_server.requests]
        check(step.lines[">"], "\n".join(requests), step.command)
    assert (step.command, result.exit_code) == (step.command, step.exit_code)
    return None


def check(expected, output, command):
    """Compare lines, of which those expected may have `…` for any text."""
    lines = [_narrow(line) for line in output.splitlines() if line.strip()]
    patterns = ("(?s:.*)" if line == "…" else re.escape(_narrow(line)).replace("…", ".*") for line in expected)
    assert re.fullmatch("\n".join(patterns), "\n".join(lines)), f"{command} shows:\n{output}"


def _narrow(line):
    """Return a line of a table with narrow columns: their widths depend on how long ago something was."""
    return re.sub(" {2,}", "  ", line.rstrip())


@pytest.mark.parametrize("name", [*COMMANDS, *(f"schedules {name}" for name in schedule_commands.COMMANDS)])
def test_help_has_an_example(name):
    result = typed(*name.split(), "--help")
    assert (result.exit_code, f"For example: dueline {name}" in result.stdout) == (0, True)
    assert typed(*name.split(), "-h").stdout == result.stdout


def completed(words):
    """Return what bash would offer for the last of these words."""
    result = typed(_DUELINE_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(words.count(" ")))
    return result.stdout.split(), result.stderr


def test_shell_completes_commands_and_names_of_queues(api_server):
    assert completed("dueline res") == (["reschedule", "resume", "restore"], "")
    queues = [{"queue": name, **a_queue().to_json()} for name in ("emails", "events", "invoices")]
    api_server.queues_reply = json_reply({"queues": queues})
    for command in ("pause", "queues", "dead", "schedules list"):
        assert completed(f"dueline --url {api_server.url} {command} e") == (["emails", "events"], "")
    api_server.queues_reply = problem_reply(403, "forbidden")
    assert completed(f"dueline --url {api_server.url} pause e") == ([], "")


@pytest.mark.parametrize(
    ("command", "sent"),
    [
        ("jobs emails --from 1d", ["from=2026-11-22T07%3A05%3A00.000Z"]),
        ("jobs emails --to 1h30m", ["to=2026-11-21T08%3A35%3A00.000Z"]),
        ("schedules history emails a --before 1w", ["before=2026-11-14T07%3A05%3A00.000Z"]),
        ("schedules backfill emails a --from 2d --to 1d", ["2026-11-19T07:05:00+00:00", "2026-11-20T07:05:00+00:00"]),
    ],
)
def test_times_may_be_spans(api_server, monkeypatch, command, sent):
    monkeypatch.setattr(options, "SystemClock", lambda: VirtualClock(NOW))
    api_server.script = [json_reply({"jobs": [], "runs": [], "next": None})]
    assert typed("--url", api_server.url, *command.split()).exit_code == 0
    (request,) = api_server.requests
    assert [each for each in sent if each not in f"{request.path} {request.body.decode()}"] == []


def an_overview(**fields):
    usual = dict.fromkeys(["scheduled", "waiting", "in_flight", "delayed", "dead"], 0)
    usual |= {"more_scheduled": False, "next_due": None, "fence_age": 90, "paused": False, "rate": None}
    return json_reply({**usual, **fields})


def test_queues_say_how_far_away_the_next_job_is(api_server):
    """The date and the time together would make the table wider than most terminals."""
    overview = an_overview(next_due=(datetime.now(UTC) + timedelta(days=9.5)).isoformat())
    queues = [{"queue": "emails", **a_queue().to_json()}]
    api_server.queues_reply, api_server.script = None, [json_reply({"queues": queues}), overview]
    table = typed("--url", api_server.url, "queues").stdout
    assert ("  in 9 days  " in table, " UTC" in table) == (True, False)
    api_server.script = [overview]
    assert " UTC (in 9 days)" in typed("--url", api_server.url, "queues", "emails").stdout


def test_watch_shows_queues_until_ctrl_c(api_server, monkeypatch):
    replies = [problem_reply(503, "unavailable", "away"), an_overview(), an_overview(scheduled=7)]
    api_server.script, waits = list(replies), []

    def sleep(_, seconds):
        waits.append(seconds)
        if len(waits) == len(replies):
            raise KeyboardInterrupt

    monkeypatch.setattr(SystemClock, "sleep", sleep)
    result = typed("--url", api_server.url, "queues", "emails", "--watch")
    assert (result.exit_code, result.stderr, waits) == (0, "dueline: away\n", [5, 5, 5])
    shown = [line.split(maxsplit=1)[1] for line in result.stdout.splitlines() if line.startswith("scheduled")]
    assert shown == ["0", "7"]
    assert result.stdout.count("last tick  2 min ago") == 2
    missing = typed("--url", api_server.url, "queues", "a_b", "--watch")
    assert (missing.exit_code, len(waits)) == (3, 3)


def test_closed_streams_are_no_terminal(monkeypatch):
    """Python has None for a stream that was closed as it started: no progress, no confirmation, and no failure."""
    for stream in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, stream, None)
    shown = screen.Screen(as_json=False, now=NOW)
    assert not screen.can_confirm()
    with shown.progress("reading") as bar:
        bar(1, 2)
    shown.table(["a"], [["b"]])


@pytest.mark.parametrize(
    ("away", "shown"), [(timedelta(hours=2), "09:05:00 UTC"), (timedelta(days=2), "2026-11-23 07:05:00 UTC")]
)
def test_row_of_a_table_is_one_line_however_narrow(monkeypatch, capsys, away, shown):
    """An id that is wrapped cannot be copied."""
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(screen, "_is_terminal", lambda _: True)
    id = str(an_id())
    screen.Screen(as_json=False, now=NOW).table(["id", "due", "n"], [[id, NOW + away, 5], ["漢", None, 1234]])
    header, first, second = capsys.readouterr().out.splitlines()
    assert first == f"{id}  {shown}      5"
    assert second == f"漢{' ' * (len(id) + len(shown) + 2)}1,234"
    assert header.endswith("    n")


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ("9" * 5000, "5000 digits"),
        ('"\udcff"', "the payload is not text in UTF-8"),
        ("[" * 100_000, "it nests too deep"),
    ],
    ids=["digits", "bytes", "depth"],
)
def test_payloads_that_no_transcript_can_show(api_server, payload, message):
    result = typed("--url", api_server.url, "schedule", "emails", payload)
    assert (result.exit_code, result.stderr.count("\n"), api_server.requests) == (2, 1, [])
    assert message in result.stderr


# None is an answer of API Gateway, without a code of ours.
ANSWERS = {(kind.status, kind.code): kind.exit_code for kind in ERRORS if kind.status != 500} | {
    (404, "route_not_found"): 3,
    (403, None): 5,
}


@pytest.mark.parametrize(("answer", "code"), ANSWERS.items())
def test_each_error_is_a_line_and_an_exit_code(api_server, answer, code):
    status, name = answer
    api_server.script = [problem_reply(status, name, "a detail\nof two lines")] * 2
    command = ("--url", api_server.url, "reschedule", str(an_id()), "--delay", "3d")
    result = typed(*command)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (code, "", 1)
    assert "a detail of two lines" in result.stderr
    machine = typed(*command, "--json")
    document = json.loads(machine.stderr)
    assert machine.exit_code == code
    assert document["error"]["message"].startswith("a detail of two lines")
    assert name in (None, "route_not_found", document["error"]["code"])


def test_unexpected_error_is_a_line(monkeypatch):
    monkeypatch.setattr(connect, "client", Mock(side_effect=RuntimeError("a defect")))
    result = typed("get", str(an_id()))
    assert (result.exit_code, result.stderr) == (1, "dueline: RuntimeError: a defect\n")


@pytest.mark.parametrize(("options", "port"), [([], 18400), (["--port", "0"], 0)])
def test_console_port_is_an_option_or_of_the_environment(monkeypatch, options, port):
    serving = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr(console_command, "serving", serving)
    monkeypatch.setenv("DUELINE_CONSOLE_PORT", "18400")
    assert typed("console", *options).exit_code == 0
    assert serving.call_args.kwargs == {"port": port, "read_only": False}


def test_deployment_and_credentials_are_passed_on(monkeypatch):
    targets = []
    monkeypatch.setattr(connect, "client", lambda target: targets.append(target) or Mock(queues=list))
    typed("--name", "sandbox", "--profile", "ops", "--region", "eu-west-1", "queues")
    typed("queues")
    monkeypatch.setenv("DUELINE_NAME", "e2e")
    monkeypatch.setenv("DUELINE_URL", "http://127.0.0.1:1")
    typed("queues")
    Path("queues.yaml").write_text("name: shop\nqueues: {emails: {schedules: {a: {every: 60}}}}")
    monkeypatch.delenv("DUELINE_NAME")
    typed("schedules", "apply", "queues.yaml")
    function = "arn:aws:lambda:eu-west-1:111122223333:function:shop-api"
    monkeypatch.setenv("DUELINE_URL", function)
    typed("--name", "shop", "queues")
    assert targets == [
        Target(name="sandbox", profile="ops", region="eu-west-1"),
        Target(),
        Target(name="e2e", url="http://127.0.0.1:1"),
        Target(name="shop", url="http://127.0.0.1:1"),
        Target(name="shop", url=function),
    ]


# Schedules


def test_apply_overwrites_no_concurrent_change(api_server, function):
    answer = api_server.respond

    def change_first(request):
        if request.method == "PUT":
            api_server.respond = answer
            call_api(function, "PUT", request.path, {"every": 3600, "owner": "they"})
        return answer(request)

    schedules = partial(typed, "--url", api_server.url, "schedules")
    schedules("put", "emails", "raced", "--every", "2h")
    api_server.respond = change_first
    Path("s.yaml").write_text("schedules: {raced: {every: 900}}")
    result = schedules("apply", "s.yaml", "--queue", "emails")
    assert (result.exit_code, "0 of 1 done" in result.stdout) == (4, True)
    schedule = json.loads(schedules("get", "emails", "raced", "--json").stdout)
    assert schedule["owner"] == "they"


# Redrive


def dead_letter(*, payload="1", reason="why", bytes=0, **attributes):
    message = Message.of(a_job(payload=payload, offloaded_bytes=int(bytes) or None))
    named = {f"dueline-{name}": value for name, value in {"reason": reason, **attributes}.items()}
    return replace(message, attributes=message.attributes | named)


@pytest.mark.parametrize(("option", "done", "waiting"), [("--delete", "deleted", 0), ("--retry", "put back", 4)])
def test_dead_changes_only_what_it_showed(dead, monkeypatch, option, done, waiting):
    """What fails while somebody reads the question is neither shown nor deleted."""
    ends, _ = dead

    def confirm(*_, **__):
        ends.dead_letters.send([dead_letter()])
        return True

    monkeypatch.setattr(screen, "can_confirm", lambda: True)
    monkeypatch.setattr("typer.confirm", confirm)
    result = typed("dead", "emails", option)
    assert (result.exit_code, f"4 of 5 dead letters of queue emails: 4 {done}" in result.stdout) == (0, True)
    assert (ends.dead_letters.depth().waiting, ends.queues[0].depth().waiting) == (1, waiting)


def test_first_dead_letters_are_listed_and_all_counted(dead, monkeypatch):
    monkeypatch.setattr("dueline.cli.operator_commands._LISTED", 2)
    *_, counted, last = typed("dead", "emails").stdout.splitlines()
    assert (counted, last) == ("4 of 4 dead letters of queue emails", "the first 2 are listed: --limit shows more")


@pytest.mark.parametrize("option", ["--retry", "--delete"])
def test_messages_that_did_not_arrive_are_reported(dead, option):
    _, wire = dead
    wire.around = on("dead.receive", losing_the_answer, times=1)
    lines = typed("dead", "emails", option, "--yes").stdout.splitlines()
    assert lines[-1] == "about 4 more did not arrive: try again in 10 minutes"


def test_failed_redrive_shows_what_it_did(dead):
    ends, wire = dead
    for number in range(200):
        ends.dead_letters.send([dead_letter(payload=str(number))])
    wire.around = on("emails.send", failing(Forbidden("not any more")), skip=8)
    result = typed("dead", "emails", "--retry", "--yes")
    assert (result.exit_code, result.stderr) == (5, "dueline: not any more\n")
    assert result.stdout.splitlines()[-2:] == [
        "160 of 160 dead letters of queue emails: 80 put back",
        "about 44 more were not received before it failed",
    ]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_ends_a_command_as_ctrl_c_does(dead, handle_signal, number):
    ends, wire = dead
    # Under nohup this process may ignore it.
    handle_signal(number, signal.SIG_DFL)

    def terminated(call):
        signal.raise_signal(number)
        return straight(call)

    wire.around = on("emails.send", terminated)
    result = typed("dead", "emails", "--retry", "--yes", "--error", "KeyError")
    assert (result.exit_code, result.stderr) == (130, "dueline: interrupted\n")
    assert ends.dead_letters.depth().waiting == 1
    assert signal.getsignal(number) is signal.SIG_DFL


def test_hangup_is_ignored_under_nohup(dead, handle_signal):
    _, wire = dead
    handle_signal(signal.SIGHUP, signal.SIG_IGN)
    wire.around = lambda call: signal.raise_signal(signal.SIGHUP) or straight(call)
    assert typed("dead", "emails", "--retry", "--yes").exit_code == 0


# As a process


def process(*arguments):
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True)


def test_without_typer_it_says_what_to_install():
    done = process("-c", "import sys; sys.modules['typer'] = None; from dueline.cli import main; sys.exit(main())")
    message = "the command line needs typer and rich: pip install 'dueline[cli]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)


def test_a_process_returns_its_exit_code():
    wrong, help = process("-m", "dueline", "get", "x", "--url"), process("-m", "dueline")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    assert (help.returncode, "restore" in help.stdout) == (0, True)


@pytest.mark.parametrize("command", ["--version", "queues --help", "schedules get --help", "get x --url nowhere"])
def test_commands_import_only_what_they_need(command):
    done = process(
        "-c",
        f"""if True:
        import sys
        from dueline.cli import main
        sys.argv[1:] = {command.split()}
        main()
        print(*sys.modules, sep="\\n", file=sys.stderr)
    """,
    )
    rooms = {".".join(name.split(".")[:2]) for name in done.stderr.splitlines()}
    assert "dueline.cli" in rooms
    assert not rooms & {"boto3", "dueline.aws", "dueline.console", "dueline.worker"}
