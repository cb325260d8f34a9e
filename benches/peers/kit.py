"""The Python version of the Rust kit: see kit/src/lib.rs."""

import math
import os
import resource
import sys
import time

import numpy as np

CHAIN = 100
USES = 10_000
MEMORY = (1 << 20, 50)
ELEMENTWISE = 4_000_000
ABC = (1.5, -0.25, 0.75)
SCALARS = (0.9995, 0.00025)
WIDTHS = (64, 256, 256, 10)
BATCH = 128
RATE = 0.01
PICTURES = (32, 16, 32, 32)
KERNELS = (32, 16, 3, 3)
MAPS = (32, 32, 32, 32)
THREADS = int(os.environ.get("OMP_NUM_THREADS", "1"))


def scaled(n, scale, dtype=np.float32):
    return ((np.arange(n) * 37 % 101 - 50.0) / 25.0 * scale).astype(dtype)


def numbers(n, dtype=np.float32):
    return scaled(n, 1.0, dtype)


def tensor(shape, scale=1.0):
    return scaled(math.prod(shape), scale).reshape(shape)


def weights(widths):
    return [
        (scaled(m * n, 0.05).reshape(m, n), scaled(n, 0.05)) for m, n in zip(widths, widths[1:])
    ]


SIDE = 1000


def places(n):
    return np.arange(n, dtype=np.int64) * 7919 % SIDE


def classes(batch, count):
    return np.arange(batch, dtype=np.int64) * 7 % count


def size(row):
    return int(row.rsplit("-", 1)[1])


def sample(values):
    values = np.asarray(values, dtype=np.float64).ravel()
    n = min(values.size, 64)
    return [values[i * values.size // n - 1] for i in range(1, n + 1)]


def status(name):
    with open("/proc/self/status") as lines:
        for line in lines:
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def own(name):
    """A line of the status without file pages: a program's code is loaded as it runs."""
    return status(name) - status("RssFile:")


def forget_peak():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return own("VmRSS:")


class Work:
    """`run` does the work once; `answer` converts its result to an array."""

    def __init__(self, run, answer):
        before = forget_peak()
        result = run()
        self.answer = sample(answer(result))
        self.peak = max(0, own("VmHWM:") - before)
        self.run = run
        self.repeats = 0

    def time(self):
        run, repeats = self.run, range(self.repeats)
        start = time.perf_counter()
        for _ in repeats:
            run()
        return time.perf_counter() - start

    def turn(self, seconds):
        if self.repeats == 0:
            self.repeats = 1
            while self.time() < seconds / 2:
                self.repeats *= 2
            self.repeats = math.ceil(self.repeats * seconds / self.time())
        return self.time() / self.repeats


def three_steps(step):
    """A training step whose answer is the losses of the first three steps."""
    first = [step(), step()]
    return Work(step, lambda third: [*first, third])


def serve(rows):
    last = (None, None)
    for line in sys.stdin:
        words = line.split()
        row = words[1]
        if last[0] != row:
            last = (None, None)
            last = (row, rows(row))
        work = last[1]
        if work is None:
            print("none", flush=True)
        elif words[0] == "answer":
            print("numbers", *(f"{v:e}" for v in work.answer), flush=True)
        elif words[0] == "peak":
            print("bytes", work.peak, flush=True)
        else:
            print("seconds", work.turn(float(words[2])), flush=True)
