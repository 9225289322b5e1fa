"""Deploy the sandbox into an AWS account, run the acceptance tests there, and remove it: `python -m tests.acceptance`.

`remove` only removes it. What follows `--` is pytest's.
"""

import argparse
import sys

import boto3

from tests.acceptance import sandbox

DEPLOY = (*sandbox.CDK, "deploy", *sandbox.APP, "--require-approval", "never")
TESTS = (sys.executable, "-m", "pytest", "tests/acceptance", "--junit-xml=acceptance.xml")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance", description=__doc__)
    parser.add_argument("command", nargs="?", choices=("run", "remove"), default="run")
    parser.add_argument("--yes", action="store_true", help="do not prompt")
    parser.add_argument("pytest", nargs="*", help="arguments for pytest, after --")
    options = parser.parse_args()
    session = boto3.Session()
    account, region = session.client("sts").get_caller_identity()["Account"], session.region_name
    where = f"the deployment {sandbox.NAME} in account {account}, {region}"
    if not options.yes and input(f"{options.command}: {where}, for under a dollar? [y/N] ") != "y":
        return 1
    try:
        sandbox.refuse_others(session)
        if options.command == "remove":
            return sandbox.remove(session)
        sandbox.refuse_jobs(session)
    except sandbox.Refused as reason:
        print(f"refused: {reason}", file=sys.stderr)
        return 2
    return sandbox.run(DEPLOY, [*TESTS, *options.pytest], remove=lambda: sandbox.remove(session))


if __name__ == "__main__":
    sys.exit(main())
