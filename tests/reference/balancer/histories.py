# SPDX-License-Identifier: GPL-2.0-only
"""Random histories of a service in the words of refslots.c, the same for the same seed.

By default the rules move no active flow (one with a packet within each idle), so that `refslots --check` must
find none. These switches allow other histories:

any_trials      a trial goes back also if slots were changing before it or changed in it
raise_untidied  the hold is raised without tidying first
back_in_time    now and then time is up to 40 jiffies earlier for some lines"""
from draw import Draw

IDS, MEMBERS = 1200, 24  # backends that are ever used, and of the pool at once
FLOWS, KEEN = 240, 24  # the first of them speak within each idle
CHANGES = 256
TICK = 16  # jiffies
NEVER = 1 << 64
SIZES = (4093, 4093, 4093, 4093, 8191, 16381, 65537)
HZS = (100, 250, 300, 1000)
BUCKETS = (1, 2, 7, 32, 64, 100, 256, 1024, 1024, 4096)
OTHER, OPENS, CLOSES = "other", "opens", "closes"


class Backend:
    """The values of a line `backend`."""

    def __init__(self, place):
        self.place = place  # address and port
        self.weight, self.state, self.backup, self.member = 0, "up", False, False


class Flow:
    """Protocol, addresses and ports, and when it was active."""

    def __init__(self, proto, text):
        self.proto, self.text = proto, text
        self.closed = False
        self.spoke = self.due = 0  # jiffies; keen ones speak again when due, at the latest


class History:
    """A history in the making, line by line."""

    def __init__(self, seed, steps, any_trials=False, raise_untidied=False, back_in_time=False):
        self.draw, self.steps, self.lines = Draw(seed), steps, []
        self.any_trials, self.raise_untidied, self.back_in_time = any_trials, raise_untidied, back_in_time
        self.backends, self.before = {}, {}  # by number: now, and (member, weight, backup) of the last ring
        self.changes = []  # ticks of rings that may still have changing slots
        self.trial = self.trial_clean = False  # clean: no slot was changing when it began, no ring since
        self.trial_end = 0  # jiffies, at the latest
        self.make_service()
        for _ in range(self.draw.between(1, MEMBERS)):
            self.add_backend()
        self.ring()
        self.flows = [self.begin_flow() for _ in range(FLOWS)]

    def write(self, line):
        self.lines.append(line)

    # ---- the service ----------------------------------------------------------------------------------

    def some_idle(self):
        """In jiffies."""
        draw, what = self.draw, self.draw.below(100)
        if what < 15:
            return draw.between(2, 100)
        return self.hz * draw.between(1, 900) if what < 60 else draw.between(self.hz, 20 * self.hz)

    def some_start(self):
        draw, little = self.draw, self.draw.below(1 << self.shift)
        return draw.pick((
            little,
            (65536 << self.shift) - little,  # pin time comes round
            (draw.between(1, 3) << 40) - little,  # so does `since`
            (1 << 32) - little,  # 32 bits of jiffies do
            draw.getrandbits(44)))

    def make_service(self):
        draw, protos = self.draw, self.draw.below(6)  # 0: no TCP, 1: no UDP
        self.hz, self.size = draw.pick(HZS), draw.pick(SIZES)
        self.hold = 1 if draw.chance(70) else draw.between(1, 16)
        self.shift = (self.hz - 1).bit_length()  # a unit of pin time is 2^shift jiffies
        self.idle_tcp = self.some_idle() if protos != 0 else 0  # 0: neither TCP nor SCTP
        self.idle_udp = self.some_idle() if protos != 1 else 0
        self.idle_longest = max(self.idle_tcp, self.idle_udp)
        self.write(f"service {self.size} {self.idle_tcp or '-'} {self.idle_udp or '-'} {self.hold} "
                   f"{draw.pick(BUCKETS)} {'source' if draw.chance(25) else 'tuple'} "
                   f"{'move' if draw.chance(25) else 'stay'} {self.hz} {draw.getrandbits(128):032x}")
        self.now = self.some_start()
        self.write(f"time {self.now}")

    # ---- flows and floods -----------------------------------------------------------------------------

    def idle(self, flow):
        return self.idle_udp if flow.proto == "udp" else self.idle_tcp

    def some_proto(self):
        if self.idle_udp and (not self.idle_tcp or self.draw.chance(35)):
            return "udp"
        return "tcp" if self.draw.chance(75) else "sctp"

    def some_flow(self):
        draw, proto = self.draw, self.some_proto()
        host = draw.below(16 if draw.chance(30) else 65535)  # not 2001:db8:ffff::
        port, vip = draw.below(65536), draw.between(1, 3)
        to = 443 if draw.chance(80) else draw.between(440, 447)  # those of kernel.c
        if draw.chance(60):
            return Flow(proto, f"{proto} 198.51.{host >> 8}.{host & 255} {port} 192.0.2.{vip} {to}")
        return Flow(proto, f"{proto} 2001:db8:{host:x}::{draw.below(65536):x} {port} 2001:db8:ffff::{vip} {to}")

    def speak(self, flow, what):
        if (what == OPENS and flow.proto == "udp") or (what == CLOSES and flow.proto != "tcp"):
            self.write(f"packet {flow.text} {OTHER}")
        else:
            self.write(f"packet {flow.text} {what}")
        if what != OTHER:
            flow.closed = what == CLOSES and flow.proto == "tcp"
        flow.spoke, idle = self.now, self.idle(flow)
        flow.due = self.now + (self.draw.between(1, idle) if self.draw.chance(40) else idle)

    def begin_flow(self):
        flow = self.some_flow()
        self.speak(flow, OPENS if self.draw.chance(85) else OTHER)
        return flow

    def close_flow(self, flow):
        """The last packets of a connection, and sooner or later its client's port again."""
        draw = self.draw
        self.speak(flow, CLOSES)
        if draw.chance(40):
            self.speak(flow, OTHER if draw.chance(80) else CLOSES)
        if draw.chance(60):
            self.speak(flow, OPENS)
        if draw.chance(50):
            self.speak(flow, OTHER)

    def flow_event(self):
        draw = self.draw
        at = draw.below(KEEN if draw.chance(25) else FLOWS)
        if draw.chance(4 if at < KEEN else 12):
            self.flows[at] = self.begin_flow()
        elif draw.chance(12):
            self.close_flow(self.flows[at])
        else:
            self.speak(self.flows[at], OPENS if draw.chance(50 if self.flows[at].closed else 4) else OTHER)

    def flood(self):
        """Packets of flows that are never heard of again, of one kind."""
        draw, what = self.draw, self.draw.pick((OTHER, OPENS, CLOSES))
        for _ in range(draw.between(10, 300)):
            flow = self.some_flow()
            self.speak(flow, what)
            if what != OPENS and draw.chance(5):
                self.speak(flow, OTHER)
            if draw.chance(5):
                self.small_time()

    # ---- the pool, rings, trials ------------------------------------------------------------------------

    def members(self):
        return [number for number, backend in self.backends.items() if backend.member]

    def write_backend(self, number):
        one = self.backends[number]
        self.write(f"backend {number} {one.place} {one.weight} {one.state} "
                   f"{'backup' if one.backup else 'primary'}")

    def some_weight(self):
        what = self.draw.below(100)
        if what < 70:
            return self.draw.between(1, 10)
        if what < 76:
            return 0
        return 65535 if what < 80 else self.draw.between(1, 1000)

    def some_place(self, number):
        port = 0 if self.draw.chance(50) else self.draw.below(65536)
        if number == 2:
            return "here 0"
        return f"2001:db8::{number:x} {port}" if number % 3 == 0 else f"10.0.{number >> 8}.{number & 255} {port}"

    def add_backend(self):
        """Adds a removed one again, or a new one."""
        draw = self.draw
        if len(self.members()) == MEMBERS:
            return
        number = draw.between(1, len(self.backends)) if self.backends else 0
        if not number or self.backends[number].member or draw.chance(30):
            if len(self.backends) == IDS:
                return
            number = len(self.backends) + 1
            self.backends[number] = Backend(self.some_place(number))
        one = self.backends[number]
        one.member, one.weight, one.backup = True, self.some_weight(), draw.chance(15)
        self.write_backend(number)

    def change_state(self, number):
        one, what = self.backends[number], self.draw.below(100)
        if one.state == "up":
            one.state = "drain" if what < 40 else "failing" if what < 75 else "down"
        elif what < 75:
            one.state = "up"
        else:
            one.state = "down" if one.state in ("drain", "failing") and what < 85 else "drain"
        self.write(f"state {number} {one.state}")

    def edit_pool(self):
        what, members = self.draw.below(100), self.members()
        if what < 40 or len(members) < 2:
            self.add_backend()
            return
        number = self.draw.pick(members)
        if what < 65:
            self.backends[number].member = False
            self.write(f"remove {number}")
        else:
            self.backends[number].weight = self.some_weight()
            self.write_backend(number)

    def note_change(self):
        if not self.changes or self.changes[-1] != self.now // TICK:
            self.changes.append(self.now // TICK)

    def keep_before(self):
        self.before = {number: (one.member, one.weight, one.backup) for number, one in self.backends.items()}

    def ring(self):
        if len(self.changes) == CHANGES:
            return
        self.write("ring")
        self.note_change()
        self.trial_clean = False
        if not self.trial:
            self.keep_before()

    def pool_event(self):
        """Few at once mostly, now and then many, with little time between them."""
        draw = self.draw
        for _ in range(1 if draw.chance(70) else draw.between(2, 5)):
            members = self.members()
            if not members or (not self.trial and draw.chance(30)):
                self.edit_pool()
            else:
                self.change_state(draw.pick(members) if draw.chance(85) else draw.between(1, len(self.backends)))
            if draw.chance(30):
                self.flow_event()
            if draw.chance(85):
                self.ring()
            if draw.chance(30):
                self.small_time()

    def begin_trial(self):
        draw, edits = self.draw, self.draw.below(4)
        if draw.chance(50):
            self.wait_for_slots()
        if len(self.changes) == CHANGES:
            return
        for _ in range(edits):
            self.edit_pool()
        self.write("trial begin")
        self.trial, self.trial_clean = True, not self.changes
        self.trial_end = self.now + self.idle_longest
        self.note_change()

    def end_trial(self):
        """Not back if slots of the ring before may be changing: their clocks run while the ring on trial
        serves their flows, and those without a pin move when the clocks end."""
        back = self.draw.chance(70) and (self.trial_clean or self.any_trials)
        self.write(f"trial {'back' if back else 'confirm'}")
        self.trial = False
        if not back:
            self.keep_before()
            return
        for number, one in self.backends.items():  # but for their states
            one.member, one.weight, one.backup = self.before.get(number, (False, 0, False))

    def trial_event(self):
        if self.trial:
            self.end_trial()
        else:
            self.begin_trial()

    def tidy(self):
        self.write("tidy")
        if self.draw.chance(30):
            self.write("slots")
            self.write("pins")

    def hold_event(self):
        """Slots are tidied before the hold is raised, else those that are pins only change again."""
        hold = self.draw.between(1, 3 if self.draw.chance(80) else 16)
        if self.trial:
            return
        if hold > self.hold and not self.raise_untidied:
            self.write("tidy")
        self.hold = hold
        self.write(f"hold {hold}")
        self.prune_changes()

    # ---- time: mostly little, often to an edge, seldom very much ----------------------------------------

    def hold_end(self, since):
        """The first jiffies at which a slot that changed then is pins only."""
        return (since + -(-self.idle_longest * self.hold // TICK) + 1) * TICK

    def prune_changes(self):
        self.changes = [since for since in self.changes if self.hold_end(since) > self.now]

    def set_now(self, now):
        if self.back_in_time and self.draw.chance(3):
            self.write(f"time {max(now - self.draw.between(1, 40), 0)}")
            self.flow_event()
        self.now = now
        self.write(f"time {now}")
        self.prune_changes()

    def step_to(self, to):
        """A trial ends when it must."""
        if self.trial and to > self.trial_end:
            if self.trial_end > self.now:
                self.set_now(self.trial_end)
            self.flow_event()
            self.end_trial()
        if to > self.now:
            self.set_now(to)

    def keen_due(self, to):
        """The first keen flow that is due before that time, or None. One whose idle is much shorter than the
        time until then falls silent."""
        for flow in self.flows[:KEEN]:
            if to > self.now + 3 * self.idle(flow):
                flow.due = NEVER
        first = min(self.flows[:KEEN], key=lambda flow: flow.due)
        return first if first.due < to else None

    def pass_time(self, to):
        """Keen flows speak when due."""
        while keen := self.keen_due(to):
            self.step_to(keen.due)
            self.speak(keen, OTHER)
        self.step_to(to)

    def small_time(self):
        self.pass_time(self.now + self.draw.between(1, 3))

    def wait_for_slots(self):
        """Until all are pins only or stable."""
        while self.changes:
            self.pass_time(self.hold_end(self.changes[-1]))

    def edge_of_hold(self):
        if not self.changes:
            return self.now + TICK
        return self.hold_end(self.draw.pick(self.changes)) + self.draw.below(3) - 1

    def edge_of_silence(self):
        flow = self.draw.pick(self.flows)
        return flow.spoke + self.idle(flow) + self.draw.below(3) - 1

    def edge_of_pin(self):
        """Just before and at the time at which a pin expires, or may be given up: a flow is remembered for a
        minute at most that has closed, or whose backend gets no new ones."""
        flow = self.draw.pick(self.flows)
        idle = self.idle(flow)
        if flow.proto == "tcp" and self.draw.chance(60):
            idle = min(60 * self.hz, self.idle_tcp)
        units = (flow.spoke >> self.shift) + -(-idle >> self.shift) + 1
        return (units << self.shift) - self.draw.below(2)

    def idle_after_fresh(self):
        """A flow that is heard about when the time of its pin becomes due, and then after its idle."""
        flow = self.draw.pick(self.flows)
        idle = self.idle(flow)
        exact = idle if flow.proto == "udp" else min(60 * self.hz, idle)
        units = -(-exact >> self.shift) // 7 + self.draw.below(3) - 2
        self.pass_time(max((flow.spoke >> self.shift) + units << self.shift, self.now + 1))
        self.speak(flow, OTHER)
        self.pass_time(max(self.now + idle + self.draw.below(3) - 1, self.now + 1))
        self.speak(flow, OTHER)

    def far(self):
        if self.draw.chance(80):
            return self.now + 1 + self.draw.below(self.idle_longest)
        return self.now + self.idle_longest * self.draw.between(1, self.hold + 1) + self.draw.below(40)

    def edge_of_unit(self, unit, most):
        return (self.now // unit + self.draw.between(1, most)) * unit - self.draw.below(2)

    def time_event(self):
        draw, what = self.draw, self.draw.below(1000)
        if what < 1:  # as far as the time of a pin comes round
            to = self.now + (65536 + draw.below(24) - 20 << self.shift)
        elif what < 20:
            to = self.edge_of_hold()
        elif what < 60:
            to = self.edge_of_silence()
        elif what < 85:
            to = self.edge_of_pin()
        elif what < 105:
            to = self.far()
        elif what < 200:
            to = self.edge_of_unit(1 << self.shift, 1)
        elif what < 450:
            to = self.edge_of_unit(TICK, 4)
        else:
            to = self.now + draw.between(1, 3)
        self.pass_time(max(to, self.now + 1))

    # ---- all of it ----------------------------------------------------------------------------------------

    def heavy_event(self):
        """What walks over all slots; less often for greater rings."""
        what = self.draw.below(100)
        if self.draw.below(1 + self.size // 16381):
            return
        if what < 50:
            self.pool_event()
        elif what < 75:
            self.tidy()
        elif what < 90:
            self.trial_event()
        else:
            self.hold_event()

    def event(self):
        what = self.draw.below(1000)
        if what < 60:
            self.heavy_event()
        elif what < 64:
            self.flood()
        elif what < 70:
            self.idle_after_fresh()
        elif what < 250:
            self.time_event()
        else:
            self.flow_event()

    def play(self):
        """All lines: so many as were asked for, a few more may come."""
        while len(self.lines) < self.steps:
            self.event()
        return [*self.lines, "tidy", "slots", "pins"]
