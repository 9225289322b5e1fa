"""Import what is named `module:attribute` in this fresh interpreter, and print as JSON what that took.

Run as a script, and with nothing imported that Python itself has not: what is imported here is not measured.
"""

import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What `-X importtime` printed before it is the interpreter's own.
MARK = "begin"
_MODELS = "service-2.json"
_OF_FUNCTIONS = "functions."


def main(target: str) -> None:
    """Import a target, or nothing if it is empty; of a function, time the clients that are made meanwhile too."""
    module, _, name = target.partition(":")
    models: list[str] = []
    clients: dict[str, dict[str, float]] = {}
    sys.addaudithook(lambda event, given: _note_model(models, event, given))
    known = set(sys.modules)
    sys.stderr.write(f"{MARK}\n")
    wall, cpu = time.perf_counter(), time.process_time()
    if module.startswith(_OF_FUNCTIONS):
        _time_clients(clients)
    if module:
        getattr(__import__(module, fromlist=[name]), name)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    loaded = sorted(set(sys.modules) - known)
    _print(
        {"wall": wall, "cpu": cpu, "clients": clients, "models": models, "loaded": loaded, "peak_kilobytes": _peak()}
    )


def _note_model(models: list[str], event: str, given: "tuple[Any, ...]") -> None:
    if event == "open" and _MODELS in str(given[0]):
        models.append(str(given[0]).split("/")[-3])


def _time_clients(seconds: dict[str, dict[str, float]]) -> None:
    """Note for each client that is made the seconds that it took, by the clock and of the processor."""
    clients = __import__("dueline.aws.clients", fromlist=["clients"])
    for service in ("dynamodb", "sqs", "ssm", "s3"):
        setattr(clients, service, _timed(getattr(clients, service), service, seconds))


def _timed(make: "Any", service: str, seconds: dict[str, dict[str, float]]) -> "Any":
    def made(*given: "Any", **named: "Any") -> "Any":
        wall, cpu = time.perf_counter(), time.process_time()
        client = make(*given, **named)
        seconds[service] = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        return client

    return made


def _peak() -> int:
    """Return the most memory that this process has had, in KB.

    Not `ru_maxrss`: that begins with what the process had that started this one (Linux carries it over an exec).
    """
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    except FileNotFoundError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024  # in bytes on macOS


def _print(result: "dict[str, Any]") -> None:
    import json

    sys.stdout.write(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1])
