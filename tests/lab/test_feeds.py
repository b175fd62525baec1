# SPDX-License-Identifier: GPL-2.0-only
"""Lists that are fetched over HTTPS, in policies and as entries; the server fails in each way."""
import gzip
import hashlib
import json
import pathlib
import re
import signal
import time

import pytest

from feedserver import Feed
from labnet import until
from policylab import Policies, udp

FIRST, OTHER = "100.64.0.1", "100.65.0.1"


@pytest.fixture(name="feed")
def feed_server(pair, tmp_path):
    feed = Feed(pair, tmp_path)
    feed.lines(1000)
    yield feed
    feed.stop()


@pytest.fixture(name="apply")
def policies(on, feed, tmp_path):
    """apply() applies a policy with the feed; apply(WORDS) with further options of the feed."""
    write = Policies(on, tmp_path)

    def apply(words="", *options, **run_options):
        return write(f'set list {{ url "{feed.url}" ca "{feed.ca}" every {apply.every} {words} }}\n"list" drop from @list\n',
                     *options, **run_options)

    apply.weir, apply.every = on, "1h"
    return apply


class TestPolicy:
    def test_what_is_fetched_is_dropped(self, pair, apply):
        apply()
        assert pair.passes(udp(src=FIRST), udp(src=OTHER)) == [False, True]

    def test_the_copy_is_not_fetched_again(self, apply, feed):
        apply()
        assert "unchanged" in apply().stdout
        assert "If-None-Match" in feed.requests[-1] and "If-None-Match" not in feed.requests[0]

    def test_a_changed_feed_is_another_revision(self, pair, apply, feed):
        apply()
        feed.lines(1000, 1 << 16)
        apply()
        assert pair.passes(udp(src=FIRST), udp(src=OTHER)) == [True, False]

    @pytest.mark.parametrize("mode, why", [
        ("404", "the server answered 404"), ("br", "has an encoding other than gzip"), ("cut", "the gzip body is cut off"), ("type", "is not an address")])
    def test_a_failure_keeps_the_last_good_text(self, pair, apply, feed, mode, why):
        apply()
        feed.mode = mode
        warnings = apply("min 1").stderr
        assert why in warnings and "its last good content is used" in warnings
        assert pair.passes(udp(src=FIRST)) == [False]
        feed.mode = ""
        assert not apply().stderr

    def test_a_failure_without_a_copy_is_an_error(self, apply, feed):
        feed.mode = "404"
        done = apply(check=False)
        assert done.returncode == 1 and "the server answered 404" in done.stderr

    def test_bad_lines_have_numbers(self, apply, feed):
        feed.body = b"192.0.2.1\nbad line\n"
        done = apply(check=False)
        assert done.returncode == 1 and "line 2" in done.stderr

    def test_a_feed_that_shrinks_needs_force(self, pair, apply, feed):
        apply()
        feed.lines(400)
        warnings = apply().stderr
        assert "would shrink from 1000 to 400 entries" in warnings
        assert pair.passes(udp(src="100.64.2.1")) == [False]
        apply("", "--force")
        assert pair.passes(udp(src="100.64.2.1"), udp(src=FIRST)) == [True, False]

    def test_certificates_are_checked(self, apply, feed):
        feed.use(*feed.authority.certificate("expired", days=-1))
        done = apply(check=False)
        assert done.returncode == 1 and "certificate" in done.stderr
        feed.use(*feed.authority.certificate("good"))
        apply()

    def test_an_unknown_authority_is_refused(self, on, feed, tmp_path):
        shown = Policies(on, tmp_path).fails(1, f'set a {{ url "{feed.url}" }}\ndrop from @a\n')
        assert "certificate" in shown

    def test_the_digest_must_fit(self, apply, feed):
        digest = hashlib.sha256(feed.body).hexdigest()
        apply(f'sha256 "{digest}"')
        done = apply(f'sha256 "{"0" * 64}"', check=False)
        assert done.returncode == 1 and "another digest" in done.stderr

    def test_offline_uses_the_copy(self, pair, apply, feed):
        apply()
        feed.stop()
        fetched = len(feed.requests)
        apply("min 1", "--offline")
        assert len(feed.requests) == fetched
        assert pair.passes(udp(src=FIRST)) == [False]

    def test_attach_needs_no_server(self, pair, apply, feed):
        apply()
        feed.stop()
        apply.weir("detach")
        apply.weir("attach", "near0")
        assert pair.passes(udp(src=FIRST), udp(src=OTHER)) == [False, True]

    def test_a_damaged_copy_is_fetched_again(self, apply, feed):
        apply()
        copy = next((apply.weir.state / "feeds").iterdir())
        copy.write_bytes(copy.read_bytes().replace(b"100.64.0.7\n", b"100.64.0.8\n"))
        apply()
        assert "If-None-Match" not in feed.requests[-1]


class TestPolicyInEffect:
    """The agent follows the feeds of the active policy, whichever file that came from."""

    @pytest.fixture(name="follow")
    def applied_each_second(self, apply):
        apply.every = "1s"
        return apply

    def test_without_a_file(self, pair, on, follow, feed, tmp_path):
        follow()
        agent = on.run()
        (tmp_path / "lab.weir").write_text("this is not to be applied\n")
        feed.lines(1000, 1 << 16)
        until(lambda: pair.passes(udp(src=FIRST), udp(src=OTHER)) == [True, False])
        feed.mode = "404"
        until(lambda: "the server answered 404" in agent.said())
        assert pair.passes(udp(src=OTHER)) == [False]
        feed.mode = ""
        until(lambda: "is good again" in agent.said())
        assert not on.json("status")["alarms"]

    def test_the_interfaces_of_the_command(self, pair, weir, feed, tmp_path):
        """They are not in the text: the apply of the new list must not detach them."""
        path = tmp_path / "lab.weir"
        path.write_text(f'set list {{ url "{feed.url}" ca "{feed.ca}" every 1s }}\n"list" drop from @list\n')
        weir("apply", path, "-i", "near0")
        weir.run()
        feed.lines(1000, 1 << 16)
        until(lambda: pair.passes(udp(src=FIRST), udp(src=OTHER)) == [True, False])

    def test_another_file_than_that_of_the_agent(self, pair, on, follow, feed, tmp_path):
        own = tmp_path / "own.weir"
        own.write_text("interface near0\npass from 192.0.2.0/24\n")
        on.run(own)
        follow()
        feed.lines(1000, 1 << 16)
        until(lambda: pair.passes(udp(src=FIRST), udp(src=OTHER)) == [True, False])

    def test_a_change_that_is_refused(self, pair, on, follow, feed, tmp_path):
        """The new list drops what an expect line passes: told once; a better list is applied."""
        path = tmp_path / "lab.weir"
        follow()
        path.write_text(path.read_text() + f"expect pass udp from {OTHER} to 10.77.0.1 port 9\n")
        on("apply", path)
        agent = on.run()
        feed.lines(1000, 1 << 16)
        why = "the feeds of the policy have changed, but"
        until(lambda: why in agent.said())
        until(lambda: any(why in one for one in on.json("status", status=2)["alarms"]))
        assert pair.passes(udp(src=FIRST), udp(src=OTHER)) == [False, True]
        feed.lines(1000, 256)
        until(lambda: pair.passes(udp(src=FIRST)) == [True])
        until(lambda: not on.json("status")["alarms"])
        assert agent.said().count(why) == 1

    def test_again(self, pair, on, apply, feed):
        assert "no policy is active" in on.fails(3, "apply", "--again")
        apply("", "--note", "a reason")
        assert "unchanged" in on("apply", "--again").stdout
        feed.lines(1000, 1 << 16)
        assert "unchanged" in on("apply", "--again", "--offline").stdout
        on("apply", "--again")
        assert pair.passes(udp(src=FIRST), udp(src=OTHER)) == [True, False]
        assert on.json("history")["revisions"][0]["note"] == "a reason"
        assert "cannot be combined" in on.fails(1, "apply", "--again", "-i", "near0")
        on.fails(1, "apply", "--again", "lab.weir")


class TestNames:
    """Feeds have host names, which Weir's resolver answers: in commands and in the agent."""

    @pytest.fixture(name="named")
    def feed_with_a_name(self, feed, dns, pair):
        dns("feed.lab", feed.address)
        dns("mirror.lab", feed.address)
        feed.use(*feed.authority.certificate("named", names="DNS:feed.lab,DNS:mirror.lab"))
        feed.url = "https://feed.lab:8443/list"
        return feed

    def test_the_resolver_of_the_namespace(self, pair, apply, named):
        apply()
        assert named.requests[0]["Host"] == "feed.lab:8443"
        assert pair.passes(udp(src=FIRST), udp(src=OTHER)) == [False, True]

    def test_resolver(self, apply, named):
        why = "'feed.lab': no answer from the name servers in time"
        done = apply("", "--resolver", "10.99.0.1", "--resolver-timeout", "100ms", check=False)
        assert done.returncode == 1 and why in done.stderr and not named.requests

    def test_a_name_that_is_gone(self, apply, named, dns):
        dns("feed.lab", "none")
        done = apply(check=False)
        assert done.returncode == 1 and "'feed.lab': no such name (NXDOMAIN)" in done.stderr

    def test_a_redirect_to_another_name(self, apply, named):
        named.redirect = "https://mirror.lab:8443/list"
        apply()
        assert [one["Host"] for one in named.requests] == ["feed.lab:8443", "mirror.lab:8443"]
        named.redirect = "http://mirror.lab/list"
        warnings = apply("min 1").stderr
        assert "a redirect leads from https to 'http://mirror.lab'" in warnings

    def test_a_redirect_nearer_to_this_host(self, apply, named, dns):
        """The server of a feed would send requests to what listens for this host alone."""
        dns("mirror.lab", "127.0.0.2")
        apply()
        for turn, (host, shown) in enumerate((("127.0.0.1", "127.0.0.1"), ("0x7f000001", "127.0.0.1"), ("0.0.0.0", "0.0.0.0"),
                                              ("[::1]", "::1"), ("[::ffff:127.0.0.1]", "::ffff:127.0.0.1"), ("mirror.lab", "127.0.0.2"),
                                              ("169.254.169.254", "169.254.169.254")), 1):
            named.redirect = f"https://{host}:8443/list"
            warnings = apply(f"min {turn}").stderr
            assert f"a redirect leads to {shown}, an address of this host or its link" in warnings, (host, warnings)

    def test_the_agent_without_threads(self, pair, on, named, dns):
        """The name goes, and moves to where no server is: the entries stay. A reload does not wait for a time-out."""
        named.lines(400)
        agent = on.run()
        on("block", "--url", named.url, "--ca", named.ca, "--sync", "feed", "--every", "1s")
        named.lines(400, 1 << 16)
        until(lambda: pair.passes(udp(src=FIRST), udp(src=OTHER)) == [True, False])
        dns("feed.lab", "none")
        until(lambda: "'feed.lab': no such name (NXDOMAIN)" in agent.said())
        assert pair.passes(udp(src=OTHER)) == [False]
        dns("feed.lab", "10.99.0.1")
        tasks = pathlib.Path(f"/proc/{agent.pid}/task")
        most = [len(list(tasks.iterdir())) for _ in range(20) if not time.sleep(0.1)]
        assert max(most) == 1
        dns("feed.lab", named.address)
        agent.process.send_signal(signal.SIGHUP)
        until(lambda: "is good again" in agent.said(), 3)


class TestEntries:
    """weir block --url."""

    @pytest.fixture(name="block")
    def block_from_feed(self, on, feed):
        feed.lines(400)
        return lambda *words, **options: on("block", "--url", feed.url, "--ca", feed.ca, "--sync", "feed", *words,
                                            **options)

    def test_the_list_is_the_feed(self, pair, on, block, feed):
        assert "list feed (400 entries: 400 added, 0 removed)" in block().stdout
        assert pair.passes(udp(src=FIRST), udp(src=OTHER)) == [False, True]
        feed.lines(400, 1 << 16)
        assert "400 added, 400 removed" in block().stdout
        assert "0 added, 0 removed" in block().stdout
        assert "If-None-Match" in feed.requests[-1]

    @pytest.mark.parametrize("mode", ["file", ""])
    def test_a_feed_that_is_a_gz_file(self, on, block, feed, mode):
        """Sent as it is, or packed by the server once more; in two parts, as gzip(1) reads them."""
        feed.mode, text = mode, feed.body
        feed.body = gzip.compress(text[:2000]) + gzip.compress(text[2000:])
        assert "list feed (400 entries: 400 added, 0 removed)" in block().stdout
        feed.tagged, feed.body = False, gzip.compress(text)[:-5]
        assert "the gzip file is cut off" in on.fails(2, "block", "--url", feed.url, "--ca", feed.ca, "--sync", "feed", "--force")
        assert len(on.entries()) == 400

    def test_host_bits_of_a_feed_are_cleared(self, on, block, feed):
        feed.body = b"203.0.113.7/24\n"
        assert "has host bits set" in block(check=False).stderr
        block("--mask")
        assert set(on.entries()) == {"203.0.113.0/24"}

    def test_bad_lines_have_the_url(self, on, block, feed):
        feed.body = b"192.0.2.1\nbad/line\n"
        done = block(check=False)
        assert done.returncode == 1 and f"{feed.url}:2: " in done.stderr
        assert not on.entries()

    def test_a_shrunk_list_needs_force(self, on, block, feed):
        block()
        feed.lines(10)
        assert block(check=False).returncode == 3
        block("--force")
        assert len(on.entries()) == 10

    @pytest.mark.parametrize("mode", ["404", "cut", "type"])
    def test_a_failure_changes_nothing(self, on, block, feed, mode):
        block()
        feed.mode = mode
        assert block(check=False).returncode in (1, 2)
        assert len(on.entries()) == 400

    @pytest.mark.parametrize("words, sentence", [
        (("--url", "https://x/"), "--url needs a list: --sync NAME"),
        (("--url", "ftp://x/", "--sync", "a"), "is not an http or https URL"),
        (("--url", "https://x/", "--sync", "a", "192.0.2.1"), "cannot be combined with '192.0.2.1'"),
        (("--url", "https://x/", "--sync", "a", "--every", "soon"), "is not a time of 1s to 30d"),
        (("--every", "1h", "192.0.2.1"), "--every and --ca need --url"),
    ])
    def test_refusals(self, on, words, sentence):
        assert sentence in on.fails(1, "block", *words)

    @pytest.mark.parametrize("words, lines", [(("unblock", "--sync", "feed"), None), (("batch",), "unblock --sync feed\n")])
    def test_a_removed_list_follows_no_feed(self, on, block, words, lines):
        block()
        assert list((on.state / "feeds").glob("*.list"))
        on(*words, input=lines)
        assert not on.entries() and not list((on.state / "feeds").glob("*.list"))

    @pytest.mark.parametrize("end", ["unblock --sync feed", "unblock --all", "block", "detach, forget --all"])
    def test_the_alarm_of_a_damaged_file_ends(self, on, block, end):
        """The file is named, and its copy goes with it; other lists stay."""
        block()
        path, = (on.state / "feeds").glob("*.list")
        block("--origin", "other")
        path.write_text(path.read_text().replace("feed", "f**d"))
        other, = set((on.state / "feeds").glob("*.list")) - {path}

        def alarms():
            return [one for one in json.loads(on("-j", "status", check=False).stdout)["alarms"] if "the list follows no feed" in one]

        assert len(alarms()) == 1 and str(path) in alarms()[0]
        assert f"rm {path}" in on("status", check=False).stdout
        if end == "unblock --sync feed":
            other.write_text("damaged too")
            assert len(alarms()) == 2
        for command in end.split(", "):
            block() if command == "block" else on(*command.split())
        left = {one.name for one in (on.state / "feeds").glob("*")}
        if end == "unblock --sync feed":
            assert len(alarms()) == 1 and other.name in left and len(left) == 2
        elif end == "block":
            assert not alarms() and len(left) == 4
        elif end == "unblock --all":
            assert not alarms() and not left
        else:
            assert {path.name.split(".")[0] for path in on.state.iterdir()} == {"changes"}  # the record remains

    def test_the_same_text_writes_nothing(self, on, block, feed):
        feed.tagged = False
        on.run()
        block("--every", "1s")
        files = {path: path.stat().st_mtime_ns for path in (on.state / "feeds").iterdir()}
        fetched = len(feed.requests)
        until(lambda: len(feed.requests) >= fetched + 2)
        assert files and files == {path: path.stat().st_mtime_ns for path in (on.state / "feeds").iterdir()}

    def test_an_agent_that_has_ended_is_missed(self, on, block):
        agent = on.run()
        block()
        assert on.json("status")["alarms"] == [] and agent.stop() == 0
        (alarm,) = on.json("status", status=2)["alarms"]
        assert "is missed for: feeds; " in alarm

    def test_the_agent_follows_it(self, pair, on, block, feed):
        agent = on.run()
        block("--every", "1s", "--note", "from a feed")
        feed.lines(400, 1 << 16)
        until(lambda: pair.passes(udp(src=FIRST), udp(src=OTHER)) == [True, False])
        feed.lines(3)
        until(lambda: "would shrink" in agent.said())
        assert pair.passes(udp(src=OTHER)) == [False]
        assert {holder["by"] for entry in on.entries().values() for holder in entry["holders"]} == {f"agent (feed {feed.url})"}
        assert re.search(rf"^feed +{re.escape(feed.url)}, list 'feed', 400 entries, ", on("status", check=False).stdout, re.MULTILINE)
        feed.body = b"192.0.2.1\nbad/line\n" * 1000
        until(lambda: "line 2: " in agent.said())
        feed.lines(500, 1 << 16)
        until(lambda: len(on.entries()) == 500)
        until(lambda: "is good again" in agent.said())
        on("unblock", "--sync", "feed")
        time.sleep(1)
        fetched = len(feed.requests)
        time.sleep(1.5)
        assert len(feed.requests) == fetched and not on.entries()


class TestUnchangedText:
    """A list whose feed stays as it is: ends are renewed, and names resolved again."""

    @pytest.fixture(name="follow")
    def follow_feed(self, on, feed):
        """follow(BODY, OPTION...): a list follows the feed, and the agent runs."""
        def follow(body, *options, every="1s"):
            feed.body = body.encode()
            on("block", "--url", feed.url, "--ca", feed.ca, "--sync", "feed", "--every", every, *options)
            return on.run()

        return follow

    @staticmethod
    def end(weir, address=FIRST):
        """When the entry ends, by the clock of the test; 0: it does not exist."""
        entry = weir.entries().get(address)
        return time.time() + entry["left_s"] if entry else 0

    @staticmethod
    def written(weir):
        """The copies of texts, with their times."""
        return {path.name: path.stat().st_mtime_ns for path in (weir.state / "feeds").iterdir() if "." not in path.name}

    @staticmethod
    def fetches(feed, count):
        """Waits for so many requests."""
        fetched = len(feed.requests)
        until(lambda: len(feed.requests) >= fetched + count, 30)

    @pytest.mark.parametrize("body, options, tagged", [(f"{FIRST}\n", ("--for", "1m"), True), (f"{FIRST} for 1m\n192.0.2.1\n", (), False)])
    def test_ends_are_renewed(self, on, feed, follow, body, options, tagged):
        feed.tagged = tagged
        agent = follow(body, *options)
        first, copies = self.end(on), self.written(on)
        until(lambda: self.end(on) > first + 4, 30)
        assert self.written(on) == copies and copies
        feed.mode = "404"  # the last good text counts as long as its ends
        until(lambda: "the server answered 404" in agent.said())
        assert ("stay until their ends" in agent.said()) == bool(options)
        last = self.end(on)
        self.fetches(feed, 2)
        assert abs(self.end(on) - last) < 2
        feed.mode = ""
        until(lambda: self.end(on) > last + 2, 30)
        assert "0 added" not in agent.said()

    def test_the_next_agent_renews_at_once(self, on, feed, follow):
        follow(f"{FIRST}\n", "--for", "1h", every="20d").stop()
        first = self.end(on)
        until(lambda: on.entries()[FIRST]["left_s"] < 3597)
        on.run()
        until(lambda: self.end(on) > first + 1, 30)

    def test_names_are_resolved_again(self, on, feed, follow, dns):
        dns("moves.lab", "198.51.100.7")
        agent = follow("moves.lab\n192.0.2.1\n")
        copies = self.written(on)
        dns("moves.lab", "198.51.100.8")
        until(lambda: set(on.entries()) == {"198.51.100.8", "192.0.2.1"}, 30)
        until(lambda: "1 added, 1 removed" in agent.said())
        journal = (on.state / "overlay").stat()
        self.fetches(feed, 2)
        assert (on.state / "overlay").stat() == journal and self.written(on) == copies
        dns("moves.lab", "none")
        until(lambda: any("moves.lab" in one for one in json.loads(on("-j", "status", check=False).stdout)["alarms"]), 30)
        assert set(on.entries()) == {"198.51.100.8", "192.0.2.1"}
        dns("moves.lab", "198.51.100.7")
        until(lambda: set(on.entries()) == {"198.51.100.7", "192.0.2.1"}, 60)
        until(lambda: not on.json("status")["alarms"])
