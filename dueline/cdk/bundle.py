"""What the asset of a Lambda function holds: the modules that its handler imports, the libraries that those need, and
the declared queues if it reads them.

Plain files, built without Docker and without the CDK. The libraries are those of dueline/functions/requirements.lock,
as pip installs them for the functions' platform, whatever machine this is.
"""

import ast
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.metadata import Distribution, distributions
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "dueline" / "functions" / "requirements.lock"
PYTHON = "3.13"
PLATFORM = "manylinux2014_aarch64"
# Where Lambda unpacks an asset: tracebacks name it.
_TASK_ROOT = "/var/task"
_TAG = f"cpython-{PYTHON.replace('.', '')}"
# The module that reads registry.json.
_READS_REGISTRY = "dueline.functions.declared_queues"
# What is read as data, and not imported: zoneinfo reads the time zones of tzdata.
_READS = {"zoneinfo": "tzdata"}
_NAME = re.compile(r"^([A-Za-z0-9._-]+)==", re.MULTILINE)
# boto3's resources are not used. Of botocore's services, those that the function's role may call.
_UNUSED = ("boto3/data/", "boto3/examples/")
_SERVICE = re.compile(r"botocore/data/([^/]+)/")


class BundleError(RuntimeError):
    """The functions' libraries could not be installed; the message says why."""


def bundle(
    function: str, folder: Path, *, registry: str, services: Collection[str], libraries: Path | None, root: Path = ROOT
) -> str:
    """Write what `dueline.functions.{function}` needs into a new folder; return its hash, which is of contents alone.

    `libraries` is a folder of installed packages, or None where the functions' Python has them. Of boto3's clients,
    those of `services` can be made.
    """
    modules, imported = _closure(f"dueline.functions.{function}", root)
    for source in modules.values():
        _copy(source, folder / source.relative_to(root))
    if _READS_REGISTRY in modules:
        (folder / "registry.json").write_text(registry)
    if libraries is not None:
        _compile(folder)
        for file in _files_of(libraries, imported, services):
            _copy(libraries / file, folder / file)
            if (compiled := _compiled(libraries / file)).is_file():
                _copy(compiled, _compiled(folder / file))
    return _hash(folder)


def installed(cache_folder: Path) -> Path:
    """Return a folder with the libraries for the functions' platform, installed once for each lock.

    Raises BundleError.
    """
    key = sha256(f"{LOCK.read_text()} {PLATFORM} {PYTHON} {bool(compiler())}".encode()).hexdigest()[:16]
    place = cache_folder / key
    if not place.exists():
        cache_folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache_folder, prefix=".") as scratch:
            made = Path(scratch) / key
            _install(made)
            _compile(made)
            # Another process may have been first.
            if not place.exists():
                made.rename(place)
    return place


def _install(folder: Path) -> None:
    of_platform = ("--platform", PLATFORM, "--python-version", PYTHON, "--only-binary=:all:")
    checked = ("--require-hashes", "--no-deps", "--requirement", str(LOCK))
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-compile")
    command = [*pip, *of_platform, *checked, "--target", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["it said nothing"]
        errors = [line.removeprefix("ERROR: ") for line in said if line.startswith("ERROR: ")] or said[-1:]
        raise BundleError(
            f"the functions' libraries ({LOCK.relative_to(ROOT)}, for Python {PYTHON} on {PLATFORM}) could not be"
            f" installed with pip, which needs a package index: {errors[-1]}"
        )


@cache
def _closure(module: str, root: Path) -> tuple[dict[str, Path], set[str]]:
    """Return our modules that a module imports, at once or later, by name; and the names of all others."""
    modules: dict[str, Path] = {}
    others: set[str] = set()
    left = [module]
    while left:
        name = left.pop()
        package, _, _ = name.partition(".")
        if package != "dueline":
            others.add(package)
        elif name not in modules and (path := _source(name, root)):
            modules[name] = path
            left += [name.rpartition(".")[0]] if "." in name else []
            left += _imports(path)
    return modules, others


def _source(module: str, root: Path) -> Path | None:
    place = root.joinpath(*module.split("."))
    return next((path for path in (place / "__init__.py", place.with_suffix(".py")) if path.is_file()), None)


@cache
def _imports(source: Path) -> tuple[str, ...]:
    """Return all that may be a module of what a file imports, inside functions too, but for types alone."""
    return tuple(_imports_below(ast.parse(source.read_text())))


def _imports_below(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
    is_for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    for child in node.orelse if is_for_types else ast.iter_child_nodes(node):  # type: ignore[attr-defined]
        yield from _imports_below(child)


def _files_of(libraries: Path, imported: set[str], services: Collection[str]) -> Iterator[Path]:
    """Yield the files, below `libraries`, of the packages that are imported and of all that those require."""
    installed = _distributions(libraries)
    used = imported | {read for name, read in _READS.items() if name in imported}
    names = {
        name
        for name, each in installed.items()
        if used & {file.parts[0].removesuffix(".py") for file in each.files or ()}
    }
    left = list(names)
    while left:
        # Without extras; what its markers leave out is not in the lock.
        required = [each for each in installed[left.pop()].requires or () if "extra ==" not in each]
        new = ({_normal(re.split(r"[^\w.-]", each, maxsplit=1)[0]) for each in required} & installed.keys()) - names
        names |= new
        left += new
    for name in sorted(names):
        yield from (Path(file) for file in map(str, installed[name].files or ()) if _is_used(file, services))


def _distributions(libraries: Path) -> dict[str, Distribution]:
    """Return what is installed of the lock, by name: the folder may hold more."""
    locked = {_normal(name) for name in _NAME.findall(LOCK.read_text())}
    installed = {_normal(each.metadata["Name"]): each for each in distributions(path=[str(libraries)])}
    return {name: each for name, each in installed.items() if name in locked}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _is_used(file: str, services: Collection[str]) -> bool:
    top = file.partition("/")[0]
    if top in ("..", "bin") or top.endswith(".dist-info") or file.endswith((".pyc", ".pyi")):
        return False
    service = _SERVICE.match(file)
    return not file.startswith(_UNUSED) and (service is None or service[1] in services)


def _copy(source: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, place)


@cache
def compiler() -> str | None:
    """Return a Python of the functions' version, this one or another: they read no other's bytecode."""
    for python in (sys.executable, f"python{PYTHON}"):
        with suppress(FileNotFoundError):
            command = [python, "-I", "-c", "import sys; print(sys.implementation.cache_tag)"]
            if subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() == _TAG:  # noqa: S603
                return python
    return None


def _compile(folder: Path) -> None:
    if python := compiler():
        # Where a zip's dates are all the same, they say nothing of whether a source is newer.
        modes = ("-q", "--invalidation-mode", "unchecked-hash", "-s", str(folder), "-p", _TASK_ROOT)
        subprocess.run([python, "-I", "-m", "compileall", *modes, str(folder)], capture_output=True, check=True)  # noqa: S603


def _compiled(source: Path) -> Path:
    return source.parent / "__pycache__" / f"{source.stem}.{_TAG}.pyc"


def _hash(folder: Path) -> str:
    """Return a hash of the files and of which bytecode there is; bytecode itself is not the same each time."""
    digest = sha256(b"with bytecode" if any(folder.rglob("*.pyc")) else b"")
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()
