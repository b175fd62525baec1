# SPDX-License-Identifier: GPL-2.0-only
"""weir run FILE: the policy, its includes, lists and databases are watched, and feeds are fetched again."""
import contextlib
import json
import os
import pathlib
import re
import signal
import time

import pytest

import mmdb
from feedserver import Feed
from labnet import until
from policylab import MARK, programs, udp

FIRST, OTHER = "198.51.100.1", "198.51.100.2"
QUIET = 0.6  # seconds after which nothing follows a change any more


class Site:
    """A policy of several files: main.weir, rules.weir in conf.d, and a list; the agent runs on main.weir."""

    def __init__(self, weir, folder):
        self.weir, self.folder = weir, folder
        (folder / "conf.d").mkdir()
        self.main, self.include, self.list = folder / "main.weir", folder / "conf.d/rules.weir", folder / "bad.txt"
        self.list.write_text(f"{FIRST}\n")
        self.include.write_text('set bad { file "../bad.txt" }\n"bad" drop from @bad\n')
        self.main.write_text('interface near0\ninclude "conf.d/*.weir"\n')

    def run(self, *options):
        self.agent = self.weir.run(self.main, *options)  # pylint: disable=attribute-defined-outside-init
        return self.agent

    def dropped(self, *addresses):
        return [not passed for passed in self.weir.pair.passes(*[udp(src=address) for address in addresses])]

    def until_dropped(self, *wanted, seconds=8):
        until(lambda: self.dropped(FIRST, OTHER) == list(wanted), seconds, f"dropped {wanted}")

    def problems(self):
        """Of all parts."""
        status = json.loads(self.weir("-j", "status", check=False).stdout)["agent"]
        return [problem for part in status["parts"] for problem in part["problems"]]


@pytest.fixture(name="site")
def policy_of_files(weir, tmp_path):
    return Site(weir, tmp_path)


def part(weir, name):
    """What a part of the agent reports."""
    parts = json.loads(weir("-j", "status", check=False).stdout)["agent"]["parts"]
    return next(one for one in parts if one["name"] == name)


def replace(path, text):
    """As editors do: another file under the same name."""
    new = path.with_name(path.name + "~")
    new.write_text(text)
    new.rename(path)


class TestFiles:
    def test_a_named_file_that_goes_and_comes_back(self, site):
        agent = site.run()
        text = site.main.read_text()
        site.main.unlink()
        until(lambda: site.problems() == [f"'{site.main}' no longer exists; the active policy stays"])
        assert site.dropped(FIRST, OTHER) == [True, False] and "has errors" not in agent.said()
        site.main.write_text(text + f"drop from {OTHER}\n")
        site.until_dropped(True, True)
        assert site.problems() == []

    def test_each_error_is_logged_once(self, site):
        """Two errors end with the same sentence."""
        agent = site.run()
        good = site.main.read_text()
        for word in "nonsense", "rubbish":
            site.main.write_text(f"{good}drop {word}\n")
            until(lambda: agent.said().count(f"unknown word '{word}'") == 1, what=word)  # pylint: disable=cell-var-from-loop
        site.main.write_text(good)
        site.list.write_text(f"{OTHER}\n")
        site.until_dropped(False, True)

    def test_a_list_is_written_in_place(self, site):
        site.run()
        assert site.dropped(FIRST, OTHER) == [True, False]
        site.list.write_text(f"{OTHER}\n")
        site.until_dropped(False, True)

    def test_a_list_is_replaced_twice(self, site):
        site.run()
        replace(site.list, f"{OTHER}\n")
        site.until_dropped(False, True)
        replace(site.list, f"{FIRST}\n{OTHER}\n")
        site.until_dropped(True, True)

    def test_the_main_file_and_a_new_include(self, site):
        site.run()
        replace(site.folder / "conf.d/more.weir", f'"more" drop from {OTHER}\n')
        site.until_dropped(True, True)
        replace(site.main, "interface near0\ndefault pass\n")
        site.until_dropped(False, False)

    def test_a_link_in_the_path_is_swapped(self, site):
        for name, address in ("one", FIRST), ("two", OTHER):
            (site.folder / name).mkdir()
            (site.folder / name / "list.txt").write_text(f"{address}\n")
        link = site.folder / "current"
        link.symlink_to("one")
        site.include.write_text('set bad { file "../current/list.txt" }\n"bad" drop from @bad\n')
        site.run()
        assert site.dropped(FIRST, OTHER) == [True, False]
        (site.folder / "next").symlink_to("two")
        (site.folder / "next").rename(link)
        site.until_dropped(False, True)
        (site.folder / "two/list.txt").write_text(f"{FIRST}\n")
        site.until_dropped(True, False)

    def test_a_folder_is_swapped(self, site):
        site.run()
        other = site.folder / "other"
        other.mkdir()
        (other / "rules.weir").write_text(f'"bad" drop from {OTHER}\n')
        (site.folder / "conf.d").rename(site.folder / "old")
        other.rename(site.folder / "conf.d")
        site.until_dropped(False, True)

    def test_a_bad_edit_changes_nothing_and_is_shown(self, site):
        agent = site.run()
        before = programs(site.weir)
        replace(site.include, "drop nonsense\n")
        until(site.problems)
        assert "has errors" in site.problems()[0]
        assert "nonsense" in agent.said() and "rules.weir:1" in agent.said()
        assert programs(site.weir) == before and site.dropped(FIRST, OTHER) == [True, False]
        replace(site.include, f'"bad" drop from {FIRST} port 53\n')  # warns
        until(lambda: not site.problems())
        assert "?" not in agent.said().replace("53'?", ""), "lines are joined"
        assert "\nweir:     1 | " in agent.said() and "\nweir: notice: applied " in agent.said()
        replace(site.include, f'"other" drop from {OTHER}\n')
        site.until_dropped(False, True)
        until(lambda: not site.problems())

    def test_words_of_a_message_decide_nothing(self, weir, tmp_path):
        """The path has the words by which an apply says that nothing has changed."""
        folder = tmp_path / "unchanged: "
        folder.mkdir()
        site = Site(weir, folder)
        agent = site.run()
        replace(site.include, f'"other" drop from {OTHER}\n')
        site.until_dropped(False, True)
        until(lambda: agent.said().count(f"applied {site.main}: 1 rule") == 1)

    def test_a_burst_is_one_change(self, site):
        site.run()
        before = len(site.weir.json("history")["revisions"])
        for last in range(2, 30):
            replace(site.list, f"198.51.100.{last}\n")
        site.until_dropped(False, False)
        time.sleep(QUIET)
        assert len(site.weir.json("history")["revisions"]) - before <= 2

    def test_what_says_the_same_writes_nothing(self, site):
        site.run()
        before = programs(site.weir), site.weir("history").stdout
        replace(site.list, site.list.read_text())
        os.utime(site.main)
        time.sleep(QUIET * 2)
        assert (programs(site.weir), site.weir("history").stdout) == before
        assert not site.problems()

    def test_what_needs_force_is_refused(self, site):
        service = "service %s {{ vip 192.0.2.10; port 80; mode dr; ring {ring}; backend 10.77.0.2 }}\n"
        replace(site.include, service.format(ring=4093) % "www")
        agent = site.run()
        replace(site.include, service.format(ring=16381) % "www")
        until(site.problems)
        assert "--force" in agent.said()

    def test_a_new_database(self, site):
        databases = site.folder / "geo"
        databases.mkdir()
        database = databases / "a.mmdb"
        database.write_bytes(mmdb.build({f"{FIRST}/32": "country DE"}))
        site.include.write_text('set bad { country DE }\n"bad" drop from @bad\n')
        site.run("--geo", databases)
        assert site.dropped(FIRST, OTHER) == [True, False]
        new = site.folder / "new"
        new.write_bytes(mmdb.build({f"{OTHER}/32": "country DE"}))
        new.rename(database)
        site.until_dropped(False, True)

    def test_what_was_rolled_back_stays_so(self, site):
        site.weir("apply", "-i", "near0", site.include)
        site.run()
        site.weir("rollback")
        replace(site.list, f"{OTHER}\n")
        time.sleep(QUIET * 2)
        assert site.dropped(FIRST, OTHER) == [True, False]
        site.main.write_text(site.main.read_text() + "# again\n")
        site.until_dropped(False, True)


def rules(*addresses):
    return "interface near0\n" + "".join(f"drop from {address}\n" for address in addresses)


SIX = rules(FIRST, OTHER, *[f"198.51.100.{last}" for last in range(11, 15)])
SERVICE = "service www { vip 192.0.2.10; port 80; mode dr; backend 10.77.0.2 }\n"


class TestWhatIsLost:
    """A file of which little is left is not applied without a person."""

    @staticmethod
    def alarms(weir):
        return json.loads(weir("-j", "status", check=False).stdout)["alarms"]

    def refuses(self, site, text, what):
        before = programs(site.weir), site.weir("history").stdout
        site.main.write_text(text)
        until(lambda: self.alarms(site.weir), 20)
        assert len(self.alarms(site.weir)) == 1 and self.alarms(site.weir)[0].endswith(what)
        assert site.weir("status", check=False).returncode == 2
        assert (programs(site.weir), site.weir("history").stdout) == before
        assert site.dropped(FIRST, OTHER) == [True, True]

    @staticmethod
    def command(site):
        return f"'weir -n {site.weir.name} apply {site.main}' applies it"

    @pytest.mark.parametrize("text", ["", "interface near0\n", "# nothing\nversion 1\n"])
    def test_a_file_without_a_rule(self, site, text):
        site.main.write_text(rules(FIRST, OTHER))
        agent = site.run()
        self.refuses(site, text, f"'{site.main}' has errors; nothing was changed")
        assert "write 'default pass' if nothing shall be filtered" in agent.said()
        replace(site.main, "interface near0\ndefault pass\n")  # two rules are too few to compare
        site.until_dropped(False, False)
        until(lambda: not self.alarms(site.weir))

    def test_half_of_the_rules_until_a_person_applies_it(self, site):
        site.main.write_text(SIX)
        agent = site.run()
        self.refuses(site, rules(FIRST, "192.0.2.1", "192.0.2.2"),
                     f"main.weir has 3 rules, the active policy 6: {self.command(site)}")
        assert agent.said().count("the active policy 6") == 1
        assert agent.stop() == 0
        site.run()  # as after a restart
        assert site.dropped(FIRST, OTHER) == [True, True] and self.alarms(site.weir)
        site.weir("apply", site.main)
        until(lambda: not self.alarms(site.weir), 8, "the end of the alarm, before the agent would try again")
        assert site.dropped(FIRST, OTHER) == [True, False]
        replace(site.main, rules(OTHER))
        site.until_dropped(False, True)

    def test_it_ends_when_the_file_is_as_it_was(self, site):
        site.main.write_text(SIX)
        site.run()
        before = programs(site.weir)
        self.refuses(site, rules(FIRST), f"main.weir has 1 rule, the active policy 6: {self.command(site)}")
        site.main.write_text(SIX)
        until(lambda: not self.alarms(site.weir))
        assert programs(site.weir) == before

    @pytest.mark.parametrize("text, fewer, what", [
        (rules(FIRST, OTHER) + SERVICE, rules(FIRST), "no service, the active policy 1"),
        (rules(FIRST, OTHER) + MARK + "default drop\n", rules(FIRST), "no 'default drop', the active policy has one"),
    ])
    def test_services_and_default_drop(self, site, text, fewer, what):
        site.main.write_text(text)
        site.run()
        self.refuses(site, fewer, f"main.weir has {what}: {self.command(site)}")

    def test_an_edit_that_takes_less(self, site):
        site.main.write_text(SIX)
        site.run()
        replace(site.main, rules(OTHER, *[f"198.51.100.{last}" for last in range(11, 14)]))
        site.until_dropped(False, True)
        assert not self.alarms(site.weir)

    def test_force_takes_everything(self, site):
        site.main.write_text(SIX)
        site.run("--force")
        replace(site.main, rules(OTHER))
        site.until_dropped(False, True)
        assert not self.alarms(site.weir)

    def test_a_start_without_an_interface(self, weir, tmp_path):
        """Nothing runs that could stay active: as with a file that has an error, the agent does not start."""
        site = Site(weir, tmp_path)
        site.main.write_text(SIX)
        weir("apply", site.main)
        weir("detach")
        site.main.write_text(rules(FIRST))
        done = weir("run", site.main, check=False)
        assert done.returncode == 3 and "main.weir has 1 rule, the active policy 6" in done.stderr
        assert not weir.pair.xdp_attached()


class TestDefaultFile:
    """/etc/weir/NAME.weir need not exist: it is applied when it appears, and may go."""

    BAD, WORSE = f'interface near0\n"bad" drop from {FIRST}\n', f'interface near0\n"bad" drop from {FIRST}, {OTHER}\n'

    @pytest.fixture(name="default")
    def default_file(self, weir):
        path = pathlib.Path(f"/etc/weir/{weir.name}.weir")
        path.parent.mkdir(exist_ok=True)
        yield path
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            path.parent.rmdir()

    @staticmethod
    def alarms(weir):
        return json.loads(weir("-j", "status", check=False).stdout)["alarms"]

    @staticmethod
    def drops(pair, *wanted):
        until(lambda: pair.free(FIRST, OTHER) == [not dropped for dropped in wanted], 20, f"dropped {wanted}")

    def test_it_appears_and_goes(self, pair, on, default):
        agent = on.run()
        assert not self.alarms(on) and part(on, "policy")["path"] is None
        replace(default, self.BAD)
        self.drops(pair, True, False)
        until(lambda: part(on, "policy")["path"] == str(default))
        default.unlink()
        until(lambda: any("no longer exists; the active policy stays" in alarm for alarm in self.alarms(on)))
        assert pair.free(FIRST) == [False]
        replace(default, self.WORSE)
        self.drops(pair, True, True)
        until(lambda: not self.alarms(on))
        default.unlink()
        until(lambda: self.alarms(on))
        agent.send(signal.SIGHUP)  # it is to be so
        until(lambda: not self.alarms(on))
        assert pair.free(FIRST, OTHER) == [False, False]
        assert agent.said().count("no longer exists") == 2 and "cannot open" not in agent.said()

    def test_a_bad_one_that_goes(self, pair, on, default):
        on.run()
        default.write_text("nonsense\n")
        until(lambda: any("has errors" in alarm for alarm in self.alarms(on)), 20)
        default.unlink()
        until(lambda: not any("has errors" in alarm for alarm in self.alarms(on)))
        default.write_text(self.BAD)
        self.drops(pair, True, False)

    def test_a_reload_finds_it(self, pair, on, default):
        """READY=1 is sent when it is active."""
        agent = on.run()
        default.write_text(self.BAD)
        agent.send(signal.SIGHUP)
        agent.wait_for("READY=1")
        assert pair.free(FIRST) == [False]

    def test_it_is_in_effect_already(self, on, default):
        """As contrib/ansible does: the policy is applied from another file, then it becomes the default one."""
        agent = on.run()
        staged = default.with_suffix(".staged")
        try:
            staged.write_text(self.BAD)
            on("apply", staged)
            before = programs(on), on("history").stdout
            staged.rename(default)
        finally:
            staged.unlink(missing_ok=True)
        until(lambda: part(on, "files").get("applies_ok") == 1, 20)
        assert (programs(on), on("history").stdout) == before and not self.alarms(on) and "applied" not in agent.said()

    def test_a_file_that_is_named_must_exist(self, weir, tmp_path):
        done = weir("run", tmp_path / "none.weir", check=False)
        assert done.returncode == 1 and "cannot open" in done.stderr


class TestFeeds:
    @pytest.fixture(name="feed")
    def feed_server(self, pair, tmp_path):
        feed = Feed(pair, tmp_path)
        feed.body = f"{FIRST}\n".encode()
        yield feed
        feed.stop()

    @pytest.fixture(name="fed")
    def site_with_feed(self, site, feed):
        site.include.write_text(f'set bad {{ url "{feed.url}" ca "{feed.ca}" every 1s }}\n"bad" drop from @bad\n')
        return site

    def test_who_did_it(self, fed, feed):
        """The author of a revision is the agent, with what has changed; a secret of the URL stays out."""
        def last():
            return fed.weir.json("history")["revisions"][0]["by"]

        fed.include.write_text(fed.include.read_text().replace("/list", "/list?key=secret"))
        fed.run()
        assert last() == "agent (file)" == fed.weir.json("status")["by"]
        feed.body = f"{OTHER}\n".encode()
        fed.until_dropped(False, True)
        public = feed.url.split("?")[0]
        assert last() == f"agent (feed {public})"
        assert f"agent (feed {public})" in fed.weir("history").stdout
        fed.include.write_text("drop from 192.0.2.1\n")
        until(lambda: last() == "agent (file)")
        other = fed.folder / "other.weir"
        other.write_text("interface near0\ndrop from 192.0.2.2\n")
        fed.weir("apply", other)
        assert last().startswith("root (")

    def test_a_new_feed_is_fetched_by_the_apply(self, site, feed):
        """Once; the agent follows it from then on. Both at a time would be two requests and two applies."""
        agent = site.run()
        site.include.write_text(f'set bad {{ url "{feed.url}" ca "{feed.ca}" every 1h }}\n"bad" drop from @bad\n')
        site.until_dropped(True, False)
        until(lambda: "applied " in agent.said(), 5)
        time.sleep(1)
        assert len(feed.requests) == 1, feed.requests
        assert agent.said().count("applied ") == 1 and "has changed" not in agent.said(), agent.said()

    def test_a_warning_is_logged_once(self, fed, feed):
        """Each change of a feed is an apply; what the apply before has said is not said again."""
        fed.include.write_text(fed.include.read_text() + "drop from v4only.lab\n")
        agent = fed.run("--resolver", fed.weir.pair.resolver)
        for number in range(3):
            feed.body = f"{OTHER}\n198.51.100.{number}\n".encode()
            until(lambda: agent.said().count("applied ") == number + 1, 20)  # pylint: disable=cell-var-from-loop
        said = agent.said()
        assert said.count("'v4only.lab' has no AAAA record") <= 2, said  # at the start, and of the first apply

    def test_status_shows_a_feed_that_is_well(self, fed, feed):
        fed.run()
        fed.until_dropped(True, False)
        feed.body = f"{OTHER}\n{FIRST}\n".encode()
        line = rf"^feed +{re.escape(feed.url)}, 2 entries, fetched [01]s ago, next (in 1s|now)$"
        until(lambda: re.search(line, fed.weir("status").stdout, re.MULTILINE))
        one, = part(fed.weir, "feeds")["feeds"]
        assert one["next_s"] >= one["good_s"] and one["failures"] == 0
        feed.mode = "404"
        until(lambda: re.search(rf"^feed +{re.escape(feed.url)}, 2 entries, .* FAILING \(\d+ in a row\), next (in|now)", fed.weir("status", check=False).stdout, re.MULTILINE))

    def test_a_change_is_applied(self, fed, feed):
        fed.run()
        feed.body = f"{OTHER}\n".encode()
        fed.until_dropped(False, True)
        assert not fed.problems()

    @pytest.mark.parametrize("tagged", [True, False])
    def test_an_unchanged_feed_writes_nothing(self, fed, feed, tagged):
        feed.tagged = tagged
        agent = fed.run()
        before = programs(fed.weir), fed.weir("history").stdout
        fetched = len(feed.requests)
        until(lambda: len(feed.requests) >= fetched + 2)
        assert (programs(fed.weir), fed.weir("history").stdout) == before and "has changed" not in agent.said()
        assert all(("If-None-Match" in request) == tagged for request in feed.requests[1:])
        feed.body = f"{OTHER}\n".encode()
        fed.until_dropped(False, True)

    @pytest.mark.parametrize("mode, body, why", [
        ("404", None, "the server answered 404"),
        ("cut", None, "the gzip body is cut off"),
        ("type", None, "is not an address"),
        ("", b"198.51.100.1\nbad line\n", "line 2"),
        ("", b"", "would shrink from 1 to 0 entries"),
    ])
    def test_a_failure_is_a_problem(self, fed, feed, mode, body, why):
        agent = fed.run()
        feed.mode = mode
        if body is not None:
            feed.body = body
        until(fed.problems)
        assert why in fed.problems()[0] and why in agent.said()
        assert fed.dropped(FIRST, OTHER) == [True, False]

    def test_a_server_that_is_gone_and_back(self, fed, feed):
        agent = fed.run()
        feed.stop()
        until(fed.problems)
        assert "refused" in fed.problems()[0].lower() or "connect" in fed.problems()[0].lower()
        assert fed.dropped(FIRST, OTHER) == [True, False]
        feed.body = f"{OTHER}\n".encode()
        feed.start()
        fed.until_dropped(False, True)
        until(lambda: not fed.problems())
        assert "is good again" in agent.said()
