# SPDX-License-Identifier: GPL-2.0-only
"""How many packets of a run each way must see: the numbers of ways.h."""
import pathlib
import re

TEXT = pathlib.Path(__file__).with_name("ways.h").read_text(encoding="ascii")
LEAST_PERCENT = int(re.search(r"define WAYS_LEAST_PERCENT\s+(\d+)", TEXT)[1])


def describe(packets, general):
    return f"{packets - general} of {packets} packets took the short way, {general} the general way"


def enough(packets, general):
    """May a run have been so? Prints why not."""
    least = packets * LEAST_PERCENT / 100
    if least <= general <= packets - least:
        return True
    print(f"each way must see {LEAST_PERCENT} % of the packets")
    return False
