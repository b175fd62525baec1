# SPDX-License-Identifier: GPL-2.0-only
"""How many packets of a run each way must see: the numbers of ways.h."""
import pathlib
import re

TEXT = pathlib.Path(__file__).with_name("ways.h").read_text(encoding="ascii")
LEAST_PERCENT = int(re.search(r"define WAYS_LEAST_PERCENT\s+(\d+)", TEXT)[1])
HISTORIES = int(re.search(r"define WAYS_LEAST_PERCENT_HISTORIES\s+(\d+)", TEXT)[1])


def describe(packets, general):
    return f"{packets - general} of {packets} packets took the short way, {general} the general way"


def enough(packets, general, least_short=LEAST_PERCENT):
    """May a run have been so? Prints why not."""
    if packets * LEAST_PERCENT / 100 <= general <= packets * (100 - least_short) / 100:
        return True
    print(f"the short way must see {least_short} % of the packets, the general way {LEAST_PERCENT} %")
    return False
