"""The ports in memory, for tests, simulations and programs without AWS.

They keep the contracts of ports.py: one suite of tests checks them and the ports on AWS alike.
"""

from dueline.memory.backup import MemoryBackup
from dueline.memory.clock import VirtualClock
from dueline.memory.locks import MemoryLocks
from dueline.memory.payloads import MemoryPayloads
from dueline.memory.queue import Delivery, MemoryQueue
from dueline.memory.table import MemoryTable
from dueline.memory.time_to_live import MemoryTimeToLive

__all__ = [
    "Delivery",
    "MemoryBackup",
    "MemoryLocks",
    "MemoryPayloads",
    "MemoryQueue",
    "MemoryTable",
    "MemoryTimeToLive",
    "VirtualClock",
]
