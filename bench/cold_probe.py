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
    """Import a target; of a function, time the clients that are made meanwhile too."""
    module, _, name = target.partition(":")
    models: list[str] = []
    clients: dict[str, dict[str, float]] = {}
    sys.addaudithook(lambda event, arguments: _note_model(models, event, arguments))
    before = set(sys.modules)
    sys.stderr.write(f"{MARK}\n")
    wall, cpu = time.perf_counter(), time.process_time()
    if module.startswith(_OF_FUNCTIONS):
        _time_clients(clients)
    getattr(__import__(module, fromlist=[name]), name)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    loaded = sorted(set(sys.modules) - before)
    _print({"wall": wall, "cpu": cpu, "clients": clients, "models": models, "loaded": loaded})


def _note_model(models: list[str], event: str, arguments: "tuple[Any, ...]") -> None:
    if event == "open" and _MODELS in str(arguments[0]):
        models.append(str(arguments[0]).split("/")[-3])


def _time_clients(seconds: dict[str, dict[str, float]]) -> None:
    """Note for each client that is made the seconds that it took, by the clock and of the processor."""
    clients = __import__("dueline.aws.clients", fromlist=["clients"])
    make = clients.client

    def made(service: str, *arguments: "Any", **named: "Any") -> "Any":
        wall, cpu = time.perf_counter(), time.process_time()
        client = make(service, *arguments, **named)
        seconds[service] = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        return client

    setattr(clients, "client", made)  # noqa: B010


def _print(result: "dict[str, Any]") -> None:
    import json

    sys.stdout.write(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1])
