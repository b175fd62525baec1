# SPDX-License-Identifier: GPL-2.0-only
"""A random policy and packets for it, with the reference's answers, which decide where the next packets are aimed."""
import collections
import re
import subprocess

import packets
import reference

BATCH = 400  # packets between two looks at the answers, which have to fit into a pipe
TRACE = re.compile(r"(?: count=([\d,]+))?(?: add=\S+)?$")
RULE = re.compile(r"\S+ rule:(\d+)")


class Matcher:
    """refmatch as a process of its own: it answers a batch while the next one is made."""

    def __init__(self, policy):
        self.process = subprocess.Popen([reference.REF / "refmatch", "--trace", policy], encoding="ascii",
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        if self.process.wait():
            raise subprocess.CalledProcessError(self.process.returncode, self.process.args)

    def send(self, lines):
        """An empty line requests all answers so far."""
        self.process.stdin.write("".join(lines) + "\n")
        self.process.stdin.flush()

    def receive(self, count):
        lines = [self.process.stdout.readline().rstrip("\n") for _ in range(count)]
        if not all(lines):
            raise RuntimeError(f"refmatch has ended: {self.process.args}")
        return lines


class Tally:
    """Counts the answers."""

    def __init__(self, rules):
        self.hits = [0] * (rules + 1)  # by number in the file
        self.packets = 0
        self.words = collections.Counter()  # verdicts and what decided them

    def count(self, rule, answer):
        self.packets += 1
        self.hits[rule] += 1
        for number in TRACE.search(answer)[1].split(",") if " count=" in answer else ():
            self.hits[int(number)] += 1
        verdict, via = answer.split(" ", 2)[:2]
        self.words[verdict.split(":")[0]] += 1
        self.words[f"by {via.split(':')[0]}"] += 1

    def line(self, seed):
        met = sum(hits > 0 for hits in self.hits[1:])
        shares = ", ".join(f"{word} {100 * n / self.packets:.1f} %" for word, n in sorted(self.words.items()))
        return f"seed {seed}: {len(self.hits) - 1} rules ({met} met), {self.packets} packets: {shares}"


class Aimed:
    """A packet that is made again while no rule decides it, so many times."""
    __slots__ = ("rule", "tries", "packet")

    def __init__(self, rule, tries):
        self.rule, self.tries, self.packet = rule, tries, None


def pick_rule(gen, tally):
    """Of two random rules the one that decided fewer packets."""
    one, other = gen.draw.below(len(gen.rules)), gen.draw.below(len(gen.rules))
    return gen.rules[one if tally.hits[one + 1] <= tally.hits[other + 1] else other]


def make_one(gen, tally):
    """Mostly aimed at rules; a packet that misses all of them is mostly tried again."""
    roll, one = gen.draw.below(100), Aimed(None, 1)
    if roll < 11:
        one.packet = packets.special(gen)
    elif roll < 19:
        one.packet = packets.broken(gen, pick_rule(gen, tally))
    else:
        one = Aimed(None, 6 if gen.draw.chance(60) else 1)
        one.packet = packets.aimed(gen, pick_rule(gen, tally))
    return one


class Writer:
    """Frames and answers, line by line. Every 16th packet arrives a second time, on an interface that the
    policy does not name: in addition to the requested number."""

    def __init__(self, frames, answers):
        self.frames, self.answers = frames, answers
        self.strays = []

    def put(self, packet, answer, number):
        end = packet.end()
        self.frames.write(f"{packet.iface} {end}")
        self.answers.write(answer + "\n")
        if number % 16 == 0:
            self.strays.append(f"{packets.STRAY} {end}")

    def put_strays(self, matcher):
        for at in range(0, len(self.strays), BATCH):
            some = self.strays[at:at + BATCH]
            matcher.send(some)
            self.frames.writelines(some)
            self.answers.writelines(f"{plain(answer)}\n" for answer in matcher.receive(len(some)))


def plain(answer):
    """Without the trace."""
    return answer[:TRACE.search(answer).start()] if " count=" in answer or " add=" in answer else answer


def write_packets(gen, count, matcher, writer):
    tally, again, under_way = Tally(len(gen.rules)), [], []
    while tally.packets < count or under_way:
        batch, again = again, []
        wanted = min(BATCH, count - tally.packets - len(under_way))
        batch += [make_one(gen, tally) for _ in range(wanted - len(batch))]
        matcher.send(f"{one.packet.iface} {one.packet.end()}" for one in batch)
        for one, answer in zip(under_way, matcher.receive(len(under_way))):
            found = RULE.match(answer)
            one.tries -= 1
            if not found and one.tries:
                one.packet = packets.aimed(gen, pick_rule(gen, tally))
                again.append(one)
                continue
            tally.count(int(found[1]) if found else 0, answer)
            writer.put(one.packet, plain(answer), tally.packets)
        under_way = batch
    return tally


def make(gen, count, frames, answers):
    """Writes policy, frames and answers. The tally."""
    gen.write()
    with Matcher(gen.options.policy) as matcher, open(frames, "w", encoding="ascii") as frames_to, \
            open(answers, "w", encoding="ascii") as answers_to:
        writer = Writer(frames_to, answers_to)
        tally = write_packets(gen, count, matcher, writer)
        writer.put_strays(matcher)
    return tally
