# SPDX-License-Identifier: GPL-2.0-only
"""The same frames by Weir and by nft: a second link of the pair, whose near end has a chain of hook ingress."""

import contextlib

from labnet import Sniffer, run, socket_in

DEVICE, PEER, COPY = "nft0", "nft1", "copy0"  # what the chain does not drop is sent to the third
MARK = b"nft:"  # the end of each frame: this and its number
END = b"\x88\xb5" + b"the end".ljust(60)
BATCH = 100  # frames that are sent before they are read


class Nft:
    """nft = Nft(pair); nft.differences(RULES, FRAMES) after the policy was applied to near0."""

    def __init__(self, pair):
        self.pair = pair
        run(["ip", "link", "add", DEVICE, "netns", pair.near_netns, "address", pair.near_mac, "type", "veth",
             "peer", PEER, "netns", pair.far_netns])
        pair.link("add", COPY, "type", "veth", "peer", "copy1")
        for device in DEVICE, COPY, "copy1":
            pair.link("set", device, "up")
        pair.link("set", PEER, "up", host="far")

    def close(self):
        self.pair.near(["nft", "delete", "table", "netdev", "words"], check=False)
        self.pair.link("del", DEVICE)
        self.pair.link("del", COPY)

    def rules(self, sets, rules):
        """Replaces the chain. Each rule ends in drop; sets are complete statements."""
        text = "\n".join(["table netdev words", "delete table netdev words", "table netdev words {", *sets,
                          f"chain in {{ type filter hook ingress device {DEVICE} priority 0;", *rules,
                          f'fwd to "{COPY}"', "}", "}"])
        self.pair.near(["nft", "-f", "-"], input=text)

    def send(self, device, frames):
        with socket_in(self.pair.far_netns, 17, 3, 0) as sock:  # AF_PACKET, SOCK_RAW
            sock.bind((device, 0))
            for frame in frames:
                sock.send(frame)

    def passed(self, frames):
        """The frames that pass Weir, and those that pass nft: numbers."""
        got = [set(), set()]
        with contextlib.ExitStack() as stack:
            sniffers = [stack.enter_context(contextlib.closing(Sniffer(self.pair.near_netns, device)))
                        for device in (self.pair.near_device, COPY)]
            for start in range(0, len(frames), BATCH):
                for device in self.pair.far_device, PEER:
                    self.send(device, frames[start:start + BATCH] + [frames[0][:12] + END])
                for sniffer, found in zip(sniffers, got):
                    found |= self.read_batch(sniffer)
        return got

    @staticmethod
    def read_batch(sniffer):
        found = set()
        for data, _ in sniffer.frames(20):
            if data[12:].startswith(END[:9]):
                return found
            if data[-8:-4] == MARK:
                found.add(int.from_bytes(data[-4:], "big"))
        raise AssertionError("the last frame did not arrive")
