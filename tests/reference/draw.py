# SPDX-License-Identifier: GPL-2.0-only
"""Random numbers, the same for the same seed."""
import random


class Draw(random.Random):
    """Faster than the methods of the base class: millions of numbers are drawn."""

    def below(self, n):
        """0 … n - 1; 0 for n = 0."""
        return int(self.random() * n)

    def between(self, low, high):
        """low … high"""
        return low + int(self.random() * (high - low + 1))

    def chance(self, percent):
        return self.random() * 100 < percent

    def pick(self, items):
        return items[int(self.random() * len(items))]
