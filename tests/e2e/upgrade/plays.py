"""The stacks that the predecessor makes, and those of this checkout."""

import json
import subprocess
import sys
from pathlib import Path

from dueline.config.deployment import load
from dueline.config.names import Names
from dueline.model.queue_settings import PLANNER as OWN_QUEUE
from local.template import SynthesisError
from tests.e2e.faults.stage import Play, rehearse
from tests.predecessor import environment_of

_SYNTHESIZE = """\
import sys
from pathlib import Path
from local.template import configure, synthesize

queues, out = map(Path, sys.argv[1:])
synthesize(configure(queues, out=out), out=out / "cdk.out")
"""


def rehearse_predecessor(checkout: Path, queues: Path, *, out: Path) -> Play:
    """Synthesize a deployment with the predecessor's code alone. Raises SynthesisError."""
    command = [sys.executable, "-c", _SYNTHESIZE, str(queues), str(out)]
    env = environment_of(checkout)
    done = subprocess.run(command, cwd=checkout, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SynthesisError(done.stderr.strip() or done.stdout.strip())
    return Play(deployment=load(out / "queues.yaml"), assembly=out / "cdk.out")


def rehearse_both(checkout: Path, queues: Path, *, out: Path, again_after: int) -> tuple[Play, Play]:
    """Synthesize a deployment with the predecessor's code, and with this checkout's.

    In both, messages to ingest and to the planner come again after so many seconds: with the minutes of a deployment,
    nobody would live to see that.
    """
    before = rehearse_predecessor(checkout, queues, out=out / "before")
    after = rehearse(out / "after", queues=queues)
    for play in (before, after):
        _let_messages_come_again(play, again_after)
    return before, after


def _let_messages_come_again(play: Play, seconds: int) -> None:
    names: Names = play.deployment.names
    queues = {names.inbound, names.queue(OWN_QUEUE.name)}
    path = play.assembly / f"{names.core_stack}.template.json"
    template = json.loads(path.read_text())
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::SQS::Queue" and resource["Properties"]["QueueName"] in queues:
            resource["Properties"]["VisibilityTimeout"] = seconds
            queues.remove(resource["Properties"]["QueueName"])
    assert not queues, f"{path} makes no queue {queues}"
    path.write_text(json.dumps(template))
