"""The ports in memory, for tests, simulations and programs that want no AWS.

They keep the contracts of ports.py, which one suite checks here and on AWS's protocol alike.
"""

from dueline.memory.clock import VirtualClock
from dueline.memory.payloads import MemoryPayloads
from dueline.memory.queue import Delivery, MemoryQueue
from dueline.memory.table import MemoryTable

__all__ = ["Delivery", "MemoryPayloads", "MemoryQueue", "MemoryTable", "VirtualClock"]
