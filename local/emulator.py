"""The emulator of AWS (MiniStack) as a process of its own, on loopback."""

import os
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import boto3
import httpx
import trustme

REGION = "us-east-1"
ACCOUNT = "000000000000"
CREDENTIALS = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
_PROGRAM = Path(__file__).with_name("emulated_gateway.py")
_START_SECONDS = 120
# Only a hang takes so long, however busy the machine is.
_STOP_SECONDS = 120


class Emulator:
    """An emulator that runs while its context is open.

    With `state` it keeps its state in that folder and goes on from it. With `tls`, a folder for a certificate, it
    enforces IAM as well: queue policies refuse whatever does not come over TLS. Functions log all. `environment` is
    added to what they find in theirs.
    """

    def __init__(
        self,
        *,
        log: Path,
        state: Path | None = None,
        tls: Path | None = None,
        port: int | None = None,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.port = port or free_port()
        self.endpoint = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self.authority = tls / "authority.pem" if tls else None
        self._log = log
        self._state = state
        self._scratch = ""
        self._env = {
            **_surroundings(self.port),
            **({} if state is None else _kept_in(state)),
            **({} if tls is None else _enforced_with(tls)),
            **environment,
        }
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        self._scratch = tempfile.mkdtemp(prefix="dueline-")
        env = {**self._env, "TMPDIR": self._scratch}
        with self._log.open("wb") as log:
            # A session of its own: Ctrl-C reaches the run, which then stops the emulator in order.
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(_PROGRAM)], env=env, stdout=log, stderr=log, start_new_session=True
            )
        try:
            self._wait_until_up()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the emulator and what it started, leaving time to write its state if it is to be kept."""
        process = self._process
        if process is not None and process.poll() is None:
            if self._state is not None:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_STOP_SECONDS)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def client(self, service: str) -> Any:
        """Return a boto3 client of the emulator, as its administrator."""
        make: Any = boto3.client
        verify = str(self.authority) if self.authority else None
        return make(service, endpoint_url=self.endpoint, region_name=REGION, verify=verify, **CREDENTIALS)

    def trust(self) -> ssl.SSLContext | bool:
        """Return what httpx verifies the emulator with."""
        return ssl.create_default_context(cafile=str(self.authority)) if self.authority else True

    def _wait_until_up(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process is not None and self._process.poll() is None:
            try:
                if httpx.get(f"{self.endpoint}/_localstack/health", timeout=2, verify=self.trust()).is_success:
                    return
            except httpx.TransportError:
                time.sleep(0.1)
        said = self._log.read_text(errors="replace")[-2000:]
        raise RuntimeError(f"the emulator ended, or did not answer within {_START_SECONDS} s: {self._log}: {said}")


def free_port() -> int:
    """Return a port of loopback that is free, and that no outgoing connection takes before a server listens on it.

    A port that the system picks for `bind(0)` is one of those it also gives to connections: seconds pass until a server
    has started, and on a busy machine one of them may have it by then. Linux hands out 32768 and above by itself.
    """
    while True:
        port = 10_000 + secrets.randbelow(22_000)
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


def is_free(port: int) -> bool:
    """Return whether nothing listens on a port of loopback."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def _surroundings(port: int) -> dict[str, str]:
    return {
        # The functions inherit this environment: none of the caller's own AWS settings may reach them.
        **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
        # They log all: of a function that writes nothing, the emulator waits 50 ms for a line.
        "POWERTOOLS_LOG_LEVEL": "DEBUG",
        "GATEWAY_PORT": str(port),
        "BIND_HOST": "127.0.0.1",
        "MINISTACK_REGION": REGION,
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        "SFTP_ENABLED": "0",
        "IOT_MTLS_ENABLED": "0",
    }


def _enforced_with(folder: Path) -> dict[str, str]:
    """Make a certificate for loopback, and the environment that enforces TLS and IAM with it, for the functions too."""
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1", "localhost")
    authority.cert_pem.write_to_path(folder / "authority.pem")
    certificate.private_key_pem.write_to_path(folder / "key.pem")
    for pem in certificate.cert_chain_pems:
        pem.write_to_path(folder / "chain.pem", append=True)
    return {
        "AUTH": "true",
        "USE_SSL": "1",
        "AWS_CA_BUNDLE": str(folder / "authority.pem"),
        "MINISTACK_SSL_CERT": str(folder / "chain.pem"),
        "MINISTACK_SSL_KEY": str(folder / "key.pem"),
    }


def _kept_in(state: Path) -> dict[str, str]:
    return {
        "PERSIST_STATE": "1",
        "S3_PERSIST": "1",
        "STATE_DIR": str(state / "state"),
        "S3_DATA_DIR": str(state / "s3"),
    }
