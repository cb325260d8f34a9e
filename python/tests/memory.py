"""How much memory many calls take, for the tests of each framework."""

import gc

import my_ops


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def is_flat(call):
    """10,000 calls take less than 4 MB, a thousandth of their arguments, and no import stays."""
    before = my_ops.live_imports()
    for _ in range(1000):
        call()
    start = resident()
    for _ in range(10_000):
        call()
    grown = resident() - start
    gc.collect()
    return grown < 4 << 20 and my_ops.live_imports() == before
