"""The environment in which the command `dueline` reaches a deployment in the emulator."""

import os

from local.emulator import CREDENTIALS, REGION, Emulator


def environment_of(emulator: Emulator, name: str) -> dict[str, str]:
    """Return this process's environment, with none of its own AWS settings, and an administrator's credentials."""
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "DUELINE_"))}
    variables = {"AWS_ENDPOINT_URL": emulator.endpoint, "AWS_DEFAULT_REGION": REGION, "DUELINE_NAME": name}
    trusted = {"AWS_CA_BUNDLE": str(emulator.authority)} if emulator.authority else {}
    return surroundings | variables | trusted | {name.upper(): value for name, value in CREDENTIALS.items()}
