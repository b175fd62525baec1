// SPDX-License-Identifier: GPL-2.0-only
// The operator's login is found below daemons that the test plays: processes with the name of sshd
// and a connection, and a child that looks for its session.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/net/session.h"
#include "tests/unit/net/skip.h"
#include "tests/unit/net/tcp_pair.h"

// A played process, and what it does before it starts the next one.
struct part {
	void (*enter)(void *ctx);
	void *ctx;
};

static int result_fd; // the current scene

static void tell_session(int fd)
{
	struct session s;

	session_find(&s);
	_exit(write(fd, &s, sizeof(s)) == sizeof(s) ? 0 : 1);
}

static void forget_environment(void)
{
	unsetenv("SSH_CONNECTION");
	unsetenv("SSH_CLIENT");
}

// One process for each part, the first an orphan (so that no login of the developer's own is an
// ancestor), each of the others a child of the one before. The last one looks for its session.
static void play_parts(const struct part *parts, size_t n, int result)
{
	forget_environment();
	for (size_t i = 0; i < n; i++) {
		parts[i].enter(parts[i].ctx);
		if (i + 1 < n && fork()) {
			wait(NULL);
			_exit(0);
		}
	}
	tell_session(result);
}

static void play_as_orphan(const struct part *parts, size_t n, int result)
{
	pid_t starter = getpid();

	if (fork())
		_exit(0);
	while (getppid() == starter)
		usleep(1000);
	play_parts(parts, n, result);
}

// The descriptor of the result survives exec, which one part calls.
static struct session play(const struct part *parts, size_t n)
{
	struct session s = {0};
	pid_t starter;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	result_fd = fds[1];
	starter = fork();
	if (!starter)
		play_as_orphan(parts, n, fds[1]);
	close(fds[1]);
	waitpid(starter, NULL, 0);
	assert_int_equal(read(fds[0], &s, sizeof(s)), sizeof(s));
	close(fds[0]);
	return s;
}

#define PLAY(...)                                \
	play((const struct part[]){__VA_ARGS__}, \
	     sizeof((const struct part[]){__VA_ARGS__}) / sizeof(struct part))

static void bear_name(void *name)
{
	prctl(PR_SET_NAME, name);
}

// sshd with its connection; only the test has the client's end.
static void be_sshd(void *ctx)
{
	struct tcp_pair *pair = ctx;

	bear_name((char[]){"sshd"});
	close(pair->client);
}

static void be_new_sshd(void *ctx)
{
	be_sshd(ctx);
	bear_name((char[]){"sshd-session"});
}

// An sshd that opens a tunnel after its connection.
static void be_sshd_with_tunnel(void *ctx)
{
	static struct tcp_pair tunnel;

	be_sshd(ctx);
	if (!pair_open(false, &tunnel))
		_exit(1);
}

// An sshd whose tunnel has lower descriptors than its connection.
static void be_sshd_with_early_tunnel(void *ctx)
{
	struct tcp_pair *pair = ctx;
	int moved = fcntl(pair->server, F_DUPFD_CLOEXEC, 100);

	close(pair->server);
	pair->server = moved;
	be_sshd_with_tunnel(ctx);
}

// The privileged half: its connection has a high descriptor, so that a tunnel of the half below
// will have a lower one.
static void be_monitor(void *ctx)
{
	struct tcp_pair *pair = ctx;
	int moved = fcntl(pair->server, F_DUPFD_CLOEXEC, 100);

	close(pair->server);
	pair->server = moved;
	be_sshd(ctx);
}

static void set_connection(const struct tcp_pair *pair)
{
	CLEANUP_FREE char *text =
		mem_printf("127.0.0.1 %u 127.0.0.1 %u", pair->client_port, pair->server_port);

	setenv("SSH_CONNECTION", text, 1);
}

static void know_connection(void *ctx)
{
	set_connection(ctx);
}

static void know_client(void *ctx)
{
	struct tcp_pair *pair = ctx;
	CLEANUP_FREE char *text =
		mem_printf("::ffff:127.0.0.1 %u %u", pair->client_port, pair->server_port);

	setenv("SSH_CLIENT", text, 1);
}

static void know_text(void *text)
{
	setenv("SSH_CONNECTION", text, 1);
}

static void be_shell(void *ctx)
{
}

static bool is_loopback_v4(const struct addr *a)
{
	return a->family == 4 && !memcmp(a->bytes, "\x7f\0\0\1", 4);
}

static void check_placed(const struct session *s, const struct tcp_pair *pair)
{
	assert_true(s->remote);
	assert_true(is_loopback_v4(&s->peer));
	assert_true(is_loopback_v4(&s->local));
	assert_int_equal(s->peer_port, pair->client_port);
	assert_int_equal(s->local_port, pair->server_port);
	assert_int_equal(s->guess.family, 0);
}

static const char first_is_remote[] = "this machine's first process is under a remote login";

// The environment of an orphan must not name a login, else the tests about it prove nothing.
static void need_clean_ancestors(void)
{
	if (PLAY({be_shell, NULL}).remote)
		skip_because(first_is_remote);
}

static void finds_the_connection_of_sshd(void **state)
{
	struct tcp_pair pair;
	struct session s;

	assert_true(pair_open(false, &pair));
	s = PLAY({be_sshd, &pair}, {bear_name, "sudo"}, {be_shell, NULL});
	check_placed(&s, &pair);
	s = PLAY({be_new_sshd, &pair}, {be_shell, NULL});
	check_placed(&s, &pair);
	pair_close(&pair);
}

static void walks_through_odd_names(void **state)
{
	struct tcp_pair pair;
	struct session s;

	assert_true(pair_open(false, &pair));
	s = PLAY({be_sshd, &pair}, {bear_name, ") S 1 (x"}, {bear_name, "a b) ("},
		 {be_shell, NULL});
	check_placed(&s, &pair);
	pair_close(&pair);
}

static void undoes_mapped_addresses(void **state)
{
	struct tcp_pair pair;
	struct session s;

	skip_without_ipv6();
	assert_true(pair_open(true, &pair));
	s = PLAY({be_sshd, &pair}, {be_shell, NULL});
	check_placed(&s, &pair);
	pair_close(&pair);
}

static void prefers_the_connection_to_tunnels(void **state)
{
	struct tcp_pair pair;
	struct session s;

	assert_true(pair_open(false, &pair));
	s = PLAY({be_sshd_with_tunnel, &pair}, {be_shell, NULL});
	check_placed(&s, &pair);
	s = PLAY({be_sshd_with_early_tunnel, &pair}, {know_connection, &pair}, {be_shell, NULL});
	check_placed(&s, &pair);
	s = PLAY({be_monitor, &pair}, {be_sshd_with_tunnel, &pair}, {be_shell, NULL});
	check_placed(&s, &pair);
	pair_close(&pair);
}

static void does_not_place_an_sshd_without_connection(void **state)
{
	struct session s;

	s = PLAY({bear_name, "sshd"}, {be_shell, NULL});
	assert_true(s.remote);
	assert_int_equal(s.peer.family, 0);
}

static void believes_a_living_connection(void **state)
{
	struct tcp_pair pair;
	struct session s;

	need_clean_ancestors();
	assert_true(pair_open(false, &pair));
	s = PLAY({know_connection, &pair}, {be_shell, NULL});
	check_placed(&s, &pair);
	s = PLAY({know_client, &pair}, {be_shell, NULL});
	check_placed(&s, &pair);
	pair_close(&pair);
}

static void only_guesses_from_a_dead_one(void **state)
{
	static char dead[] = "198.51.100.9 4711 192.0.2.1 22";
	struct session s;

	need_clean_ancestors();
	s = PLAY({know_text, dead}, {be_shell, NULL});
	assert_true(s.remote);
	assert_int_equal(s.peer.family, 0);
	assert_int_equal(s.guess.family, 4);
	assert_memory_equal(s.guess.bytes, "\xc6\x33\x64\x09", 4);
}

static void takes_a_zone_off(void **state)
{
	static char zone[] = "fe80::7%eth0 4711 fe80::1%eth0 22";
	struct session s;

	need_clean_ancestors();
	s = PLAY({know_text, zone}, {be_shell, NULL});
	assert_int_equal(s.guess.family, 6);
	assert_int_equal(s.guess.bytes[0], 0xfe);
	assert_int_equal(s.guess.bytes[15], 7);
}

static void an_unreadable_claim_is_remote(void **state)
{
	static char *const texts[] = {"UNKNOWN 65535 UNKNOWN 65535", "198.51.100.9",
				      "198.51.100.9 99999 192.0.2.1 22", ""};

	need_clean_ancestors();
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct session s = PLAY({know_text, texts[i]}, {be_shell, NULL});

		assert_true(s.remote);
		assert_int_equal(s.peer.family, 0);
		assert_int_equal(s.guess.family, 0);
	}
}

static void mosh_is_remote_without_place(void **state)
{
	struct session s;

	s = PLAY({bear_name, "mosh-server"}, {be_shell, NULL});
	assert_true(s.remote);
	assert_int_equal(s.peer.family, 0);
}

// Below, a new process image whose first environment names the login, and a child without it.
static void start_anew(void *ctx)
{
	CLEANUP_FREE char *fd = mem_printf("%d", result_fd);

	execl("/proc/self/exe", "test_session", fd, NULL);
	_exit(1);
}

static void reads_the_environment_of_ancestors(void **state)
{
	struct tcp_pair pair;
	struct session s;

	need_clean_ancestors();
	assert_true(pair_open(false, &pair));
	s = PLAY({know_connection, &pair}, {start_anew, NULL});
	check_placed(&s, &pair);
	pair_close(&pair);
}

static void an_orphan_is_local(void **state)
{
	struct session s;

	s = PLAY({be_shell, NULL});
	if (s.remote)
		skip_because(first_is_remote);
	assert_int_equal(s.peer.family, 0);
	assert_int_equal(s.guess.family, 0);
}

static size_t count_loopback_peers(void)
{
	CLEANUP_FREE struct session *logins = NULL;
	size_t n = 0, found = 0;
	struct err err = {0};
	int code = session_logins(&logins, &n, &err);

	assert_true(!code || geteuid()); // a real login cannot be examined without privilege
	for (size_t a = 0; a < n; a++)
		found += is_loopback_v4(&logins[a].peer) && is_loopback_v4(&logins[a].local) &&
			 logins[a].peer_port && logins[a].local_port;
	return found;
}

// An sshd with the connection, and a process below it, until the pipe is closed.
static pid_t start_sshd(struct tcp_pair *pair, char *below, uid_t uid, int until, int until_close)
{
	pid_t pid = fork();
	char end;

	if (pid)
		return pid;
	be_sshd(pair);
	close(until_close);
	if (!fork()) {
		bear_name(below);
		close(pair->server);
		if (uid && setuid(uid))
			_exit(1);
	}
	(void)!read(until, &end, 1);
	_exit(0);
}

static size_t count_with_sshd(char *below, uid_t uid)
{
	struct tcp_pair pair;
	size_t found, before;
	int pipes[2];
	pid_t pid;

	assert_true(pair_open(false, &pair));
	assert_int_equal(pipe(pipes), 0);
	before = count_loopback_peers();
	pid = start_sshd(&pair, below, uid, pipes[0], pipes[1]);
	for (int tries = 0; tries < 50; tries++) {
		found = count_loopback_peers() - before;
		if (found)
			break;
		usleep(10000);
	}
	kill(pid, SIGKILL); // the process below it ends with the pipe
	waitpid(pid, NULL, 0);
	close(pipes[1]);
	close(pipes[0]);
	pair_close(&pair);
	return found;
}

static void finds_the_peers_of_all_logins(void **state)
{
	assert_int_equal(count_with_sshd((char[]){"bash"}, 0), 1);
	assert_int_equal(count_with_sshd((char[]){"sshd"}, 0), 0); // not logged in yet
	if (geteuid() || !getpwnam("sshd"))
		return;
	assert_int_equal(count_with_sshd((char[]){"sshd"}, getpwnam("sshd")->pw_uid),
			 0);                                           // nor here
	assert_int_equal(count_with_sshd((char[]){"sshd"}, 65533), 1); // ssh -N
}

static void describes_for_people(void **state)
{
	struct session s = {.remote = true};
	char buf[128];

	session_describe(&s, buf, sizeof(buf));
	assert_non_null(strstr(buf, " (remote)"));
	addr_parse("198.51.100.9", 12, &s.peer, NULL);
	session_describe(&s, buf, sizeof(buf));
	assert_non_null(strstr(buf, " (ssh 198.51.100.9)"));
	s = (struct session){0};
	session_describe(&s, buf, sizeof(buf));
	assert_non_null(strstr(buf, " (local)"));
	session_describe(&s, buf, 4);
	assert_int_equal(strlen(buf), 3);
}

static int look_below(const char *text)
{
	uint32_t fd;

	if (num_parse_u32(text, strlen(text), 0, INT32_MAX, &fd))
		return 1;
	if (!fork()) {
		forget_environment();
		tell_session((int)fd);
	}
	wait(NULL);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_connection_of_sshd),
		cmocka_unit_test(walks_through_odd_names),
		cmocka_unit_test(undoes_mapped_addresses),
		cmocka_unit_test(prefers_the_connection_to_tunnels),
		cmocka_unit_test(does_not_place_an_sshd_without_connection),
		cmocka_unit_test(believes_a_living_connection),
		cmocka_unit_test(only_guesses_from_a_dead_one),
		cmocka_unit_test(takes_a_zone_off),
		cmocka_unit_test(an_unreadable_claim_is_remote),
		cmocka_unit_test(mosh_is_remote_without_place),
		cmocka_unit_test(reads_the_environment_of_ancestors),
		cmocka_unit_test(an_orphan_is_local),
		cmocka_unit_test(finds_the_peers_of_all_logins),
		cmocka_unit_test(describes_for_people),
	};

	if (argc == 2)
		return look_below(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
