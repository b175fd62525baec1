# SPDX-License-Identifier: GPL-2.0-only
"""What a busy machine adds to a measured time: for how long threads were ready to run and waited for a processor.

A limit less this time holds on a busy machine, and who is slow or blocked still exceeds it."""
import bisect
import contextlib
import pathlib
import threading
import time


class Waiting:
    """Of the threads WHO=ID, read each 20 ms while the `with` lasts. Instants are of the monotonic clock."""

    def __init__(self, **threads):
        self.paths = {who: pathlib.Path(f"/proc/{tid}/schedstat") for who, tid in threads.items()}
        self.at, self.ran, self.waited = [], {who: [] for who in threads}, {who: [] for who in threads}
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.sample)

    def read(self):
        at = time.monotonic()
        with contextlib.suppress(OSError):  # one has ended
            now = {who: path.read_text(encoding="ascii").split() for who, path in self.paths.items()}
            self.at.append(at)
            for who, (ran, waited, _) in now.items():
                self.ran[who].append(int(ran) / 1e9)
                self.waited[who].append(int(waited) / 1e9)

    def sample(self):
        while not self.over.wait(0.02):
            self.read()

    def between(self, since, to, *whose):
        """Seconds that they waited, from the last reading before to the first one after."""
        if to <= since:
            return 0
        first = max(bisect.bisect_right(self.at, since) - 1, 0)
        last = min(bisect.bisect_left(self.at, to), len(self.at) - 1)
        return sum(self.waited[who][last] - self.waited[who][first] for who in whose)

    def shares(self):
        """{who: (share of the time for which it ran, share for which it waited)}."""
        took = self.at[-1] - self.at[0]
        return {who: tuple((seen[-1] - seen[0]) / took for seen in (self.ran[who], self.waited[who])) for who in self.paths}

    def __enter__(self):
        self.read()
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.over.set()
        self.thread.join()
        self.read()
