# SPDX-License-Identifier: GPL-2.0-only
"""Lists that are fetched over HTTPS, in policies and as entries; the server fails in each way."""
import hashlib

import pytest

from feedserver import Feed
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
        return write(f'set list {{ url "{feed.url}" ca "{feed.ca}" every 1h {words} }}\n"list" drop from @list\n',
                     *options, **run_options)

    apply.weir = on
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
        ("404", "the server answered 404"), ("cut", "the gzip body is cut off"), ("type", "is not an address")])
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
