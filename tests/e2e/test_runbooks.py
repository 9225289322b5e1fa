"""The commands of each page of docs/runbooks work as typed."""

import re
from pathlib import Path

import pytest

from local.emulator import ACCOUNT, REGION
from local.endpoints import Endpoints
from tests.e2e.conftest import Shell

pytestmark = pytest.mark.thorough
PAGES = sorted((Path(__file__).parents[2] / "docs" / "runbooks").glob("*.md"))
# The doctor exits with 1 where it finds something. For SQS the command line would use an endpoint of its own.
PROMPT = """
dueline() { command dueline "$@" || [ "$1 $?" = "doctor 1" ]; }
aws() { command aws --endpoint-url "$AWS_ENDPOINT_URL" "$@"; }
"""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_of_each_page_work(page: Path, shell: Shell, endpoints: Endpoints) -> None:
    filled = {"name": endpoints.name, "region": REGION, "account": ACCOUNT, "queue": "emails", "partition": "0"}
    filled |= {"function": "tick"} | {f"{queue}_dlq_url": url for queue, url in endpoints.dead_letter_queues.items()}
    filled |= {"planner_dlq_url": filled["emails_dlq_url"].replace("emails_dlq", "dueline-planner_dlq")}
    # What is no placeholder is of JSON or of JMESPath.
    for block in re.findall(r"```bash\n(.*?)```", page.read_text(), re.DOTALL):
        shell(PROMPT + re.sub(r"\{([a-z_]+)\}", lambda match: filled.get(match[1], match[0]), block))
