// SPDX-License-Identifier: GPL-2.0-only
// Finds the operator's login from the process tree, the connections of sshd and the environment,
// and the interfaces where its packets arrive from its two ends.
#include "ctl/net/session.h"

#include <dirent.h>
#include <errno.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/vec.h"
#include "ctl/net/route.h"
#include "ctl/net/sockdiag.h"

enum {
	ANCESTORS_MAX = 128,
	PROC_BYTES_MAX = 16 * 1024 * 1024, // an environment has at most 6 MB (execve(2))
};

#define NO_ID UINT32_MAX

struct process {
	uint32_t pid, parent;
	char name[64];
};

// Reads SSH_CONNECTION, or SSH_CLIENT, which lacks the local address.
struct socket_owner {
	struct addr peer, local;
	uint16_t peer_port, local_port;
};

struct session_sockets {
	struct socket_info *at;
	size_t n;
	bool known; // sock_diag answered
};

// A connection that a process holds under descriptor fd.
struct held {
	const struct socket_info *socket;
	uint32_t fd;
};

struct held_list {
	VEC(struct held) of;
};

static void sockets_cleanup(struct session_sockets *s)
{
	mem_cleanup_free(&s->at);
}

static void held_cleanup(struct held_list *l)
{
	vec_free(&l->of);
}

// Keeps the first failed lookup (errno); a process that no longer exists is not a failure.
static void note_error(int *error, int code)
{
	if (code && code != ENOENT && code != ESRCH && !*error)
		*error = code;
}

// Content of /proc/PID/FILE, NUL-terminated after *ret_len bytes; NULL: it cannot be read.
static char *read_proc(uint32_t pid, const char *file, size_t *ret_len, int *error)
{
	CLEANUP_FREE char *path = mem_printf("/proc/%u/%s", pid, file);
	char *text = NULL;
	int code = file_read(path, PROC_BYTES_MAX, &text, ret_len, NULL);

	note_error(error, -code);
	return code ? NULL : text;
}

// "PID (NAME) STATE PPID …"; the name may hold blanks and parentheses, so it ends at the last ')'.
static bool parse_stat(const char *stat, struct process *ret)
{
	const char *open = strchr(stat, '('), *close = strrchr(stat, ')');
	struct process p = {.pid = ret->pid};
	const char *parent;

	if (!open || !close || close < open || strlen(close) < 4)
		return false;
	snprintf(p.name, sizeof(p.name), "%.*s", (int)(close - open - 1), open + 1);
	parent = close + 4; // ") S "
	if (num_parse_u32(parent, strcspn(parent, " "), 0, UINT32_MAX, &p.parent))
		return false;
	*ret = p;
	return true;
}

static bool process_read(uint32_t pid, struct process *ret, int *error)
{
	struct process p = {.pid = pid};
	size_t len;
	CLEANUP_FREE char *stat = pid ? read_proc(pid, "stat", &len, error) : NULL;

	if (!stat || !parse_stat(stat, &p))
		return false;
	*ret = p;
	return true;
}

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

// Daemons that hold the operator's TCP connection themselves. sshd-session: OpenSSH since 9.8.
static bool is_sshd(const struct process *p)
{
	static const char *const names[] = {"sshd", "sshd-session", "dropbear"};

	return is_one_of(p->name, names, ARRAY_SIZE(names));
}

// Remote logins whose peer no connected socket shows.
static bool is_unplaceable(const struct process *p)
{
	static const char *const names[] = {"mosh-server", "in.telnetd", "telnetd"};

	return is_one_of(p->name, names, ARRAY_SIZE(names));
}

static bool take_word(const char **at, const char **ret, size_t *ret_len)
{
	*at += strspn(*at, " ");
	*ret = *at;
	*ret_len = strcspn(*at, " ");
	*at += *ret_len;
	return *ret_len > 0;
}

// sshd writes link-local addresses with their zone, which no packet carries.
static bool take_addr(const char **at, struct addr *ret)
{
	const char *word;
	size_t len, zone;

	if (!take_word(at, &word, &len))
		return false;
	zone = strcspn(word, "%");
	return !addr_parse(word, zone < len ? zone : len, ret, NULL);
}

static bool take_port(const char **at, uint16_t *ret)
{
	const char *word;
	size_t len;

	return take_word(at, &word, &len) && !num_parse_u16(word, len, 0, UINT16_MAX, ret);
}

// "PEER PEER_PORT LOCAL LOCAL_PORT"
static bool parse_connection(const char *text, struct socket_owner *ret)
{
	struct socket_owner c = {0};

	if (!text || !take_addr(&text, &c.peer) || !take_port(&text, &c.peer_port) ||
	    !take_addr(&text, &c.local) || !take_port(&text, &c.local_port))
		return false;
	*ret = c;
	return true;
}

// "PEER PEER_PORT LOCAL_PORT"
static bool parse_client(const char *text, struct socket_owner *ret)
{
	struct socket_owner c = {0};

	if (!text || !take_addr(&text, &c.peer) || !take_port(&text, &c.peer_port) ||
	    !take_port(&text, &c.local_port))
		return false;
	*ret = c;
	return true;
}

// Returns whether there is a claim at all: "UNKNOWN 65535 UNKNOWN 65535" (an sshd on a pipe) is
// a claim without addresses.
static bool claim_from(const char *connection, const char *client, struct socket_owner *ret)
{
	return parse_connection(connection, ret) || parse_client(client, ret) || connection ||
	       client;
}

// The value of NAME in a block of NUL-terminated NAME=VALUE.
static const char *block_get(const char *block, size_t len, const char *name)
{
	size_t name_len = strlen(name);

	for (const char *at = block; at < block + len; at += strlen(at) + 1)
		if (!strncmp(at, name, name_len) && at[name_len] == '=')
			return at + name_len + 1;
	return NULL;
}

static bool claim_of_process(uint32_t pid, struct socket_owner *ret, int *error)
{
	size_t len = 0;
	CLEANUP_FREE char *block = read_proc(pid, "environ", &len, error);

	return block && claim_from(block_get(block, len, "SSH_CONNECTION"),
				   block_get(block, len, "SSH_CLIENT"), ret);
}

static bool claim_matches(const struct socket_owner *c, const struct socket_info *s)
{
	return s->proto == IPPROTO_TCP && c->peer_port == s->remote_port &&
	       c->local_port == s->local_port && !addr_compare(&c->peer, &s->remote) &&
	       (!c->local.family || !addr_compare(&c->local, &s->local));
}

static const struct socket_info *sockets_find_inode(const struct session_sockets *s, uint32_t inode)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->at[i].proto == IPPROTO_TCP && s->at[i].inode == inode)
			return &s->at[i];
	return NULL;
}

// The inode of /proc/PID/fd/NAME when it is a socket, else 0.
static uint32_t socket_inode(int dir, const char *name, int *error)
{
	static const char prefix[] = "socket:[";
	uint32_t inode = 0;
	char target[64];
	ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);

	if (n < 0 && name[0] != '.')
		note_error(error, errno);
	if (n < (ssize_t)sizeof(prefix) || strncmp(target, prefix, sizeof(prefix) - 1) != 0)
		return 0;
	num_parse_u32(target + sizeof(prefix) - 1, (size_t)n - sizeof(prefix), 1, UINT32_MAX,
		      &inode);
	return inode;
}

static void read_held(uint32_t pid, const struct session_sockets *sockets, struct held_list *ret,
		      int *error)
{
	CLEANUP_FREE char *path = mem_printf("/proc/%u/fd", pid);
	DIR *dir = opendir(path);
	struct dirent *file;

	if (!dir)
		note_error(error, errno);
	while (dir && (file = readdir(dir))) {
		uint32_t fd, inode = socket_inode(dirfd(dir), file->d_name, error);
		const struct socket_info *s = inode ? sockets_find_inode(sockets, inode) : NULL;

		if (s && !num_parse_u32(file->d_name, strlen(file->d_name), 0, INT32_MAX, &fd))
			vec_push(&ret->of, ((struct held){.socket = s, .fd = fd}));
	}
	if (dir)
		closedir(dir);
}

static bool holds(const struct held_list *l, const struct socket_info *s)
{
	for (size_t i = 0; i < l->of.n; i++)
		if (l->of.at[i].socket == s)
			return true;
	return false;
}

// A forwarding sshd also holds connections of tunnels, in both directions. The login's own is the
// one that our environment names; else one that the privileged parent holds as well, for only the
// child opens tunnels; among several the lowest descriptor: it was there before any tunnel.
static const struct socket_info *choose(const struct held_list *own, const struct held_list *parent,
					const struct socket_owner *claim)
{
	const struct held *best = NULL;
	int best_rank = 0;

	for (size_t i = 0; i < own->of.n; i++) {
		const struct held *h = &own->of.at[i];
		int rank = 1;

		if (claim->peer.family && claim_matches(claim, h->socket))
			rank = 3;
		else if (holds(parent, h->socket))
			rank = 2;
		if (rank > best_rank || (rank == best_rank && h->fd < best->fd)) {
			best = h;
			best_rank = rank;
		}
	}
	return best ? best->socket : NULL;
}

static const struct socket_info *connection_of(const struct process *sshd,
					       const struct session_sockets *sockets,
					       const struct socket_owner *claim, int *error)
{
	CLEANUP(held_cleanup) struct held_list own = {0};
	CLEANUP(held_cleanup) struct held_list parents = {0};
	struct process parent;

	read_held(sshd->pid, sockets, &own, error);
	if (process_read(sshd->parent, &parent, error) && is_sshd(&parent))
		read_held(parent.pid, sockets, &parents, error);
	return choose(&own, &parents, claim);
}

static const struct socket_info *sockets_find_claim(const struct session_sockets *s,
						    const struct socket_owner *claim)
{
	for (size_t i = 0; i < s->n; i++)
		if (claim_matches(claim, &s->at[i]))
			return &s->at[i];
	return NULL;
}

static void place_by_socket(const struct socket_info *s, struct session *ret)
{
	ret->peer = s->remote;
	ret->local = s->local;
	ret->peer_port = s->remote_port;
	ret->local_port = s->local_port;
}

static void place_by_claim(const struct socket_owner *c, struct session *ret)
{
	ret->peer = c->peer;
	ret->local = c->local;
	ret->peer_port = c->peer_port;
	ret->local_port = c->local_port;
}

// Walks up to the daemon of the remote login. Returns whether there is one; *ret_sshd has a pid
// only if it may hold the connection. The claim of the nearest process wins.
static bool walk(struct process *ret_sshd, struct socket_owner *ret_claim, int *error)
{
	bool claimed = claim_from(getenv("SSH_CONNECTION"), getenv("SSH_CLIENT"), ret_claim);
	struct process p = {.parent = (uint32_t)getppid()};
	int of_init = 0; // a service in a sandbox cannot read the environment of init

	for (int i = 0; i < ANCESTORS_MAX && process_read(p.parent, &p, error); i++) {
		if (is_sshd(&p)) {
			*ret_sshd = p;
			return true;
		}
		if (!claimed)
			claimed = claim_of_process(p.pid, ret_claim, p.pid == 1 ? &of_init : error);
		if (is_unplaceable(&p))
			return true;
	}
	return claimed;
}

// A kernel without sock_diag cannot be asked; then the claim stands for itself.
static void ask_sockets(struct session_sockets *ret, int *error)
{
	int code = sockdiag_connected(&ret->at, &ret->n, NULL);

	ret->known = !code;
	if (!sockdiag_missing(code))
		note_error(error, -code);
}

void session_find(struct session *ret)
{
	CLEANUP(sockets_cleanup) struct session_sockets sockets = {0};
	const struct socket_info *connection = NULL;
	struct session s = {0};
	struct process sshd = {0};
	struct socket_owner claim = {0};
	int error = 0;

	s.remote = walk(&sshd, &claim, &error);
	if (s.remote)
		ask_sockets(&sockets, &error);
	if (sshd.pid)
		connection = connection_of(&sshd, &sockets, &claim, &error);
	if (!connection && claim.peer.family)
		connection = sockets_find_claim(&sockets, &claim);
	if (connection)
		place_by_socket(connection, &s);
	else if (claim.peer.family && !sockets.known)
		place_by_claim(&claim, &s);
	else
		s.guess = claim.peer;
	s.error = s.peer.family ? 0 : error;
	*ret = s;
}

struct process_list {
	struct process *at;
	size_t n, cap;
};

static int compare_pids(const void *a, const void *b)
{
	const struct process *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static int read_processes(struct process_list *ret, struct err *err)
{
	DIR *dir = opendir("/proc");
	struct dirent *file;
	int ended = 0;

	if (!dir)
		return err_system(err, errno, "cannot read '/proc'");
	while ((file = readdir(dir))) {
		struct process p;
		uint32_t pid;

		if (!num_parse_u32(file->d_name, strlen(file->d_name), 1, UINT32_MAX, &pid) &&
		    process_read(pid, &p, &ended))
			vec_push(ret, p);
	}
	closedir(dir);
	if (ret->n)
		qsort(ret->at, ret->n, sizeof(*ret->at), compare_pids);
	return 0;
}

static const struct process *find_process(const struct process_list *all, uint32_t pid)
{
	struct process key = {.pid = pid};

	return all->n ? bsearch(&key, all->at, all->n, sizeof(key), compare_pids) : NULL;
}

// The number after a word of a file of a process; NO_ID: none.
static uint32_t read_id(uint32_t pid, const char *file, const char *word)
{
	size_t len;
	int error = 0;
	CLEANUP_FREE char *text = read_proc(pid, file, &len, &error);
	const char *at = text ? strstr(text, word) : NULL;
	uint32_t id;

	at = at ? at + strlen(word) : "";
	return num_parse_u32(at, strcspn(at, "\t\n"), 0, NO_ID - 1, &id) ? NO_ID : id;
}

// Before a login sshd runs as root, and its child as the user `sshd`. A process below it that is
// somebody else's, or an id of a login that the daemon does not have (pam_loginuid(8)), shows a
// login without a command: ssh -N, ssh -W, sftp.
static bool is_login(const struct process *daemon, const struct process *child)
{
	const struct passwd *waiting = getpwnam("sshd");
	uint32_t uid = read_id(child->pid, "status", "\nUid:\t");
	uint32_t login = read_id(child->pid, "loginuid", "");

	return (uid != NO_ID && uid && (!waiting || uid != waiting->pw_uid)) ||
	       (login != NO_ID && login != read_id(daemon->pid, "loginuid", ""));
}

// Marks each sshd that somebody has logged in through.
static bool *find_used(const struct process_list *all)
{
	bool *used = mem_zalloc(all->n, sizeof(*used));

	vec_each (all, p) {
		const struct process *parent = find_process(all, p->parent);

		if (!parent || !is_sshd(parent))
			continue;
		if (!is_sshd(p))
			used[parent - all->at] = true;
		else if (is_login(parent, p)) // one of the two has the connection
			used[parent - all->at] = used[p - all->at] = true;
	}
	return used;
}

int session_logins(struct session **ret, size_t *ret_n, struct err *err)
{
	CLEANUP_VEC struct process_list all = {0};
	CLEANUP(sockets_cleanup) struct session_sockets sockets = {0};
	CLEANUP_FREE bool *used = NULL;
	const struct socket_owner none = {0};
	VEC(struct session) logins = {0};
	int error = 0, code = read_processes(&all, err);

	if (code)
		return code;
	used = find_used(&all);
	if (memchr(used, true, all.n))
		ask_sockets(&sockets, &error);
	for (size_t n = 0; n < all.n; n++) {
		int unread = 0;
		const struct socket_info *s =
			used[n] ? connection_of(&all.at[n], &sockets, &none, &unread) : NULL;

		if (s)
			vec_push(&logins, ((struct session){
						  .peer = s->remote,
						  .local = s->local,
						  .peer_port = s->remote_port,
						  .local_port = s->local_port,
						  .remote = true,
					  }));
		else
			note_error(&error, unread);
	}
	*ret = logins.at;
	*ret_n = logins.n;
	return error ? err_system(err, error, "cannot find the peers of the logins over ssh") : 0;
}

bool session_is_found(const struct session *s)
{
	CLEANUP_FREE struct session *logins = NULL;
	size_t n = 0;

	if (session_logins(&logins, &n, NULL))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!addr_compare(&logins[i].peer, &s->peer) &&
		    !addr_compare(&logins[i].local, &s->local) &&
		    logins[i].peer_port == s->peer_port && logins[i].local_port == s->local_port)
			return true;
	return false;
}

// The uid of the login, which survives sudo and su.
static uid_t login_uid(void)
{
	uint32_t uid = read_id((uint32_t)getpid(), "loginuid", "");

	return uid == NO_ID ? getuid() : uid;
}

void session_describe(const struct session *s, char *buf, size_t size)
{
	uid_t uid = login_uid();
	const struct passwd *user = getpwuid(uid);
	CLEANUP_FREE char *name = user ? mem_strdup(user->pw_name) : mem_printf("uid %u", uid);
	addr_text peer;

	if (s->peer.family)
		snprintf(buf, size, "%s (ssh %s)", name, addr_format(&s->peer, peer));
	else
		snprintf(buf, size, "%s (%s)", name, s->remote ? "remote" : "local");
}

// ---- where its packets come in ------------------------------------------------------------------

enum session_place session_placed(const struct session *s)
{
	if (!s)
		return SESSION_NONE;
	if (s->peer.family)
		return s->remote ? SESSION_KNOWN : SESSION_NONE;
	return s->remote || s->error ? SESSION_UNKNOWN : SESSION_NONE;
}

void session_ways_free(struct session_ways *w)
{
	free(w->links);
	free(w->used);
	free(w->answered);
	*w = (struct session_ways){0};
}

// Packets come in on such a device as they are: they have not been in a tunnel.
static bool is_open(const struct link *link)
{
	static const char *const kinds[] = {"",     "veth",    "vlan",    "bridge", "bond",
					    "team", "macvlan", "macvtap", "ipvlan"};

	return link->type == ARPHRD_ETHER && is_one_of(link->kind, kinds, ARRAY_SIZE(kinds));
}

// An address there says nothing about the way of its packets.
static bool is_shelf(const struct link *link)
{
	return link->type == ARPHRD_LOOPBACK || !strcmp(link->kind, "dummy");
}

static struct link *find(const struct session_ways *w, uint32_t ifindex, size_t *ret)
{
	for (size_t n = 0; n < w->n; n++)
		if (w->links[n].index == ifindex) {
			*ret = n;
			return &w->links[n];
		}
	return NULL;
}

// The device and its lower devices.
static void use(struct session_ways *w, uint32_t ifindex)
{
	size_t at;
	const struct link *link = find(w, ifindex, &at);

	if (!link) {
		w->any = true;
		return;
	}
	if (w->used[at] || is_shelf(link))
		return;
	w->used[at] = true;
	w->any |= !is_open(link);
	if (link->lower_elsewhere && strcmp(link->kind, "veth") != 0)
		w->any = true;
	else if (link->lower && strcmp(link->kind, "veth") != 0)
		use(w, link->lower);
	for (size_t n = 0; n < w->n; n++)
		if (w->links[n].master == ifindex)
			use(w, w->links[n].index);
}

static int use_address(struct session_ways *w, const struct addr *local, struct err *err)
{
	CLEANUP_FREE struct own_addr *own = NULL;
	size_t n = 0;
	int code = route_own_addrs(&own, &n, err);

	if (code)
		return code;
	for (size_t a = 0; a < n; a++)
		if (!addr_compare(&own[a].addr, local))
			use(w, own[a].ifindex);
	return 0;
}

// The ways of the answers: rules of routing can depend on the address that the peer has reached.
static void find_answered(struct session_ways *w, const struct session *s)
{
	struct session_ways answers = {.links = w->links, .n = w->n, .used = w->answered};
	struct lookup route;
	int code = lookup_route_from(&s->peer, &s->local, &route);

	w->answered_any = code || route.kind == LOOKUP_ENCAP;
	if (w->answered_any || route.kind != LOOKUP_UNICAST)
		return;
	use(&answers, route.ifindex);
	w->answered_any = answers.any;
}

int session_ways(const struct session *s, struct session_ways *ret, struct err *err)
{
	CLEANUP_SESSION_WAYS struct session_ways w = {0};
	struct lookup route;
	bool some = false;
	int failed, code = link_list(&w.links, &w.n, err);

	if (code)
		return code;
	w.used = mem_zalloc(w.n, sizeof(*w.used));
	w.answered = mem_zalloc(w.n, sizeof(*w.answered));
	failed = lookup_route(&s->peer, &route);
	// A login from this host to itself crosses no interface.
	if (failed || route.kind != LOOKUP_LOCAL) {
		if (!failed && route.kind == LOOKUP_UNICAST)
			use(&w, route.ifindex);
		find_answered(&w, s);
		code = use_address(&w, &s->local, err);
		for (size_t n = 0; n < w.n; n++)
			some |= w.used[n];
		w.any |= !some;
	}
	if (code)
		return code;
	*ret = w;
	w = (struct session_ways){0};
	return 0;
}

bool session_uses(const struct session_ways *w, uint32_t ifindex)
{
	size_t at;

	return w->any || (find(w, ifindex, &at) && w->used[at]);
}

bool session_answers(const struct session_ways *w, uint32_t ifindex)
{
	size_t at;

	return w->answered_any || (find(w, ifindex, &at) && w->answered[at]);
}
