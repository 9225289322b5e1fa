"""The local run: the emulator, the deployment into it, the demonstration."""
