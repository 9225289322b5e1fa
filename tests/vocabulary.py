"""Words that are said in plain English instead: in names, docstrings, comments, messages and documentation.

`NOWHERE` has words and phrases that stand nowhere; `NOT_IN_NAMES` has those that read well in a sentence, but say
nothing in the name of a function, a class or a variable.
"""

import ast
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

NOWHERE = {
    "tell": "report, show, return, say",
    "tells": "reports, shows, returns, says",
    "told": "reported, shown, returned",
    "telling": "reporting, showing",
    "ask": "request, call, query, read",
    "asks": "requests, calls, queries, reads",
    "asked": "requested, called, queried; request, parameters",
    "asking": "requesting, calling, querying",
    "whoever": "who, the caller",
    "whomever": "the caller",
    "lest": "so that … not",
    "befall": "happen to",
    "befalls": "happens to",
    "astray": "undeliverable, to the wrong queue",
    "hasten": "hurry, send early",
    "hastened": "sent early",
    "by and by": "over time",
    "of before": "earlier, legacy",
    "of nobody": "unowned",
    "as it is told": "as configured",
    "what is asked": "the request",
    "what was asked": "the request",
    "what is not there": "what is missing",
    "that is not there": "that does not exist",
    "that are not there": "that do not exist",
    "is not there": "does not exist",
    "begun": "started",
    "hither": "here",
    "thereof": "of it",
    "anew": "again",
    "dearer": "more expensive",
    "heed": "handle, notice",
    "heeds": "handles, notices",
    "ordeal": "scenario",
    "weather": "network",
    "calm": "baseline",
    "drought": "throttling",
}
NOT_IN_NAMES = {
    "taken": "written, received",
    "handed": "sent, dispatched",
    "found": "the noun: settings, row, result",
    "known": "the noun: cached, existing",
    "given": "the noun: parameters, options",
    "wanted": "the noun: desired, target",
    "met": "the noun",
    "seen": "the noun: observed",
    "listed": "the noun",
    "translated": "map_errors",
    "standing": "active_partitions",
    "wish": "desired_state",
    "nominal": "scheduled_for",
    "letter": "dead_letter",
    "letters": "dead_letters",
    "gate": "server",
    "desk": "harness",
    "fates": "outcomes",
    "cargo": "payload",
}
# Terms of the field, and sentences: what a test says, and what is true or not.
_ALLOWED = re.compile(r"^(test|_*(is|are|was|were|has|have|can|check))_.*|_?dead_?letters?|not_?found|given_up", re.I)
_PHRASES = "|".join(sorted(NOWHERE, key=len, reverse=True)).replace(" ", r"\s+")
# In a name too: after an underscore, or as a part that begins with a capital.
_WORDS = re.compile(rf"(?:(?<![A-Za-z])|(?<=[a-z])(?=[A-Z]))(?i:{_PHRASES})(?![a-z])")
_PART = re.compile(r"[A-Z]?[a-z]+")


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Return all of a module's syntax tree, which is walked once."""
    return list(ast.walk(ast.parse(path.read_text())))


def dialect_of(path: Path) -> list[str]:
    """Return what a file says that is said otherwise, each as `line: word`."""
    text = path.read_text()
    found = [f"{text.count(chr(10), 0, match.start()) + 1}: {match[0]}" for match in _WORDS.finditer(text)]
    return found + (dialect_of_names(nodes_of(path)) if path.suffix == ".py" else [])


def dialect_of_names(nodes: Iterable[ast.AST]) -> list[str]:
    """Return the names that a module gives which have a word of `NOT_IN_NAMES`, each as `line: name`."""
    return [
        f"{line}: {name}"
        for line, name in names_given(nodes)
        if {part.lower() for part in _PART.findall(_ALLOWED.sub("", name))} & NOT_IN_NAMES.keys()
    ]


def names_given(nodes: Iterable[ast.AST]) -> list[tuple[int, str]]:
    """Return the names of functions, classes, parameters and variables, each with its line."""
    names = []
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append((node.lineno, node.name))
        elif isinstance(node, ast.arg):
            names.append((node.lineno, node.arg))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append((node.lineno, node.id))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.append((node.lineno, node.attr))
    return names
