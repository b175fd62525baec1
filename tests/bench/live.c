// SPDX-License-Identifier: GPL-2.0-only
// Rows "drop-live": frames over a veth pair, dropped on arrival. Sender and receiver share one CPU.
#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "tests/bench/measure.h"
#include "tests/bench/policy.h"
#include "tests/bench/tools.h"

#define SENDER   "wbsend"
#define RECEIVER "wbrecv"
#define PACKETS  400000u
#define TRIES    10 // attempts of a round that loses packets
#define PROGRAMS 7

struct live_case {
	struct row_goal goal;
	size_t n;
};

static const struct live_case cases[] = {
	{{.id = "drop-live",
	  .what = "live frames over veth, 1,000 addresses, random present: rate relative to an empty program",
	  .share = true,
	  .reach = {{0.95, {"floor-filter"}}}},
	 1000},
	{{.id = "drop-live-1m",
	  .what = "live frames over veth, 1,000,000 addresses, random present: rate relative to an "
		  "empty program",
	  .share = true,
	  .reach = {{1.6, {"kernel-hash"}}, {0.7, {"empty"}}}},
	 1000000},
};

#define ONE_IN_1024 (1u << 22) // of 2^32

static const struct row_goal sampled = {
	.id = "drop-live-sampled",
	.what = "the frames of drop-live, one in 1,024 of them sampled: rate relative to an empty program",
	.share = true,
	.reach = {{0.99, {"unsampled"}}},
};

// Device

// Frames of the kernel itself would wake the receiver on another CPU, where it loses packets if its
// program is slow.
static void leave_out_ipv6(const char *device)
{
	CLEANUP_FREE char *path = mem_printf("/proc/sys/net/ipv6/conf/%s/disable_ipv6", device);
	FILE *f = fopen(path, "we");

	if (!f && errno == ENOENT)
		return; // a kernel without IPv6
	if (!f || fputs("1", f) == EOF || fclose(f))
		bench_fail(errno, "cannot write '%s'", path);
}

// Removes what a failed case may have left.
static void clean_up(void)
{
	tool_run((const char *const[]){"nft", "flush", "ruleset", NULL}, NULL);
	if (if_nametoindex(SENDER))
		tool_need((const char *const[]){"ip", "link", "del", SENDER, NULL}, NULL);
}

static void make_pair(void)
{
	static const char *const commands[][12] = {
		{"ip", "link", "set", SENDER, "up"},
		{"ip", "link", "set", RECEIVER, "up"},
		// Without a program, a receiver accepts XDP frames only with GRO.
		{"ethtool", "-K", RECEIVER, "gro", "on"},
	};

	tool_need((const char *const[]){"ip", "link", "add", SENDER, "type", "veth", "peer", "name",
					RECEIVER, NULL},
		  NULL);
	leave_out_ipv6(SENDER);
	leave_out_ipv6(RECEIVER);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		tool_need(commands[i], NULL);
}

static void attach(int program)
{
	int code = bpf_xdp_attach((int)if_nametoindex(RECEIVER), program, XDP_FLAGS_DRV_MODE, NULL);

	if (code)
		bench_fail(-code, "cannot attach a program to %s", RECEIVER);
}

// Packets that the queues of the receiver have accepted: the sum of "rx_queue_N_xdp_packets: M".
static uint64_t received(void)
{
	FILE *f = popen("ethtool -S " RECEIVER, "re");
	char line[128];
	uint64_t sum = 0, n;

	while (f && fgets(line, sizeof(line), f)) {
		const char *value = strstr(line, "_xdp_packets: ");

		if (!strstr(line, " rx_queue_") || !value)
			continue;
		value += strlen("_xdp_packets: ");
		if (!num_parse_u64(value, strcspn(value, "\n"), 0, UINT64_MAX, &n))
			sum += n;
	}
	if (!f || pclose(f))
		bench_fail(EIO, "cannot run ethtool -S");
	return sum;
}

// nftables

static void write_table(const struct set *s, const char *path)
{
	FILE *f = fopen(path, "we");
	addr_text text;

	if (!f)
		bench_fail(errno, "cannot write '%s'", path);
	fputs("table netdev wb {\n\tset s {\n\t\ttype ipv4_addr\n\t\telements = {\n", f);
	for (size_t i = 0; i < s->n; i++)
		fprintf(f, "%s,\n", addr_format(&s->at[i].addr, text));
	fputs("}\n\t}\n\tchain c {\n\t\ttype filter hook ingress device " RECEIVER
	      " priority 0; policy accept;\n\t\tip saddr @s drop\n\t}\n}\n",
	      f);
	if (fclose(f))
		bench_fail(errno, "cannot write '%s'", path);
}

static void subject_nft(const struct bench *b, const struct set *s, struct subject *ret)
{
	CLEANUP_FREE char *path = mem_printf("%s/table.nft", b->folder);
	int status;

	*ret = (struct subject){.name = "nft-ingress", .loads = 1, .programs = {-1}};
	write_table(s, path);
	status = tool_run((const char *const[]){"nft", "-f", path, NULL}, NULL);
	if (status)
		ret->skipped = mem_printf(status == 127 ? "nft not found (package nftables)"
							: "nft exited with status %d",
					  status);
}

// Measurement

struct programs {
	struct subject *at[PROGRAMS];
	double *ns[PROGRAMS]; // per packet, by round; each round has another load
	size_t n, repeated[PROGRAMS];
};

// Sends the packets of a round. nft has no program: its hook gets the packets while no program is
// attached. Returns how many were received, and *ret_ns for all packets.
static uint64_t send_round(const struct draw *d, int program, double *ret_ns)
{
	uint64_t before, taken;

	attach(program);
	draw_send(d, PACKETS / 8);
	before = received();
	*ret_ns = (double)draw_send(d, PACKETS);
	taken = received() - before;
	if (program >= 0)
		attach(-1);
	return taken;
}

// Nanoseconds of a packet. A receiver that loses its CPU loses packets: the round is repeated.
static double run_once(const struct row_goal *goal, const struct draw *d, const struct subject *s,
		       size_t load, size_t *repeated)
{
	int program = subject_load(s, load);
	uint64_t taken = 0;
	double ns;

	for (int tries = 0; tries < TRIES; tries++) {
		taken = send_round(d, program, &ns);
		// Some packets may still be in flight.
		if (taken >= PACKETS - PACKETS / 100 && taken <= PACKETS + PACKETS / 100)
			return ns / (double)taken;
		++*repeated;
	}
	bench_fail(EIO, "%s: '%s' received %llu of %u packets in the last of %d rounds", goal->id,
		   s->name, (unsigned long long)taken, PACKETS, TRIES);
}

static struct result result_of(const struct programs *p, size_t i, size_t rounds)
{
	CLEANUP_FREE double *net = mem_zalloc(rounds, sizeof(*net));
	CLEANUP_FREE double *share = mem_zalloc(rounds, sizeof(*share));
	double base = measure_min(p->ns[0], rounds), own = measure_min(p->ns[i], rounds);

	for (size_t r = 0; r < rounds; r++) {
		net[r] = p->ns[i][r] - p->ns[0][r];
		share[r] = p->ns[0][r] / p->ns[i][r];
	}
	return (struct result){
		.subject = p->at[i]->name,
		.net = {own - base, measure_median(net, rounds)},
		.baseline = "empty",
		.base_ns = base,
		.share = {base / own, measure_median(share, rounds)},
		.pps = 1e9 / own,
		.repeated = p->repeated[i],
	};
}

// Weir first, then its peers, those that are skipped, and the empty program itself.
static void report(const struct bench *b, const struct row_goal *goal, const struct programs *p,
		   struct subject *const *subjects, size_t n, size_t rounds)
{
	struct result results[PROGRAMS] = {0};
	size_t used = 0;

	for (size_t i = 1; i < n + 1; i++) {
		const struct subject *s = subjects[i % n];

		results[i - 1] = (struct result){.subject = s->name, .skipped = s->skipped};
	}
	for (size_t i = 1; i < n + 1; i++)
		if (!results[i - 1].skipped)
			results[i - 1] = result_of(p, ++used % p->n, rounds);
	report_row(b->report, goal, results, n);
}

static void measure_live(const struct bench *b, const struct row_goal *goal, const struct draw *d,
			 struct subject *const *subjects, size_t n)
{
	size_t rounds = b->rounds * SUBJECT_LOADS;
	struct programs p = {0};

	for (size_t i = 0; i < n; i++) {
		if (subjects[i]->skipped)
			continue;
		p.at[p.n] = subjects[i];
		p.ns[p.n++] = mem_zalloc(rounds, sizeof(double));
	}
	for (size_t round = 0; round < rounds; round++)
		for (size_t i = 0; i < p.n; i++) {
			size_t next = (i + round) % p.n;

			p.ns[next][round] = run_once(goal, d, p.at[next], round, &p.repeated[next]);
		}
	report(b, goal, &p, subjects, n, rounds);
	for (size_t i = 0; i < p.n; i++)
		free(p.ns[i]);
}

static void make_weir(const struct bench *b, const struct set *s, uint32_t sample,
		      struct subject *ret)
{
	CLEANUP_FREE char *list = mem_printf("%s/live.txt", b->folder);
	CLEANUP_FREE char *path = mem_printf("%s/live.weir", b->folder);

	set_write(s, list);
	policy_text("interface " RECEIVER "\nset s { file \"live.txt\" }\ndrop from @s\n", path);
	subject_weir(&(struct weir_options){.policy = path, .sample = sample}, ret);
	if (!ret->skipped)
		subject_weir_iface(ret, if_nametoindex(RECEIVER));
}

static void run_case(const struct bench *b, const void *of)
{
	const struct live_case *c = of;
	CLEANUP_FREE struct addr *sources = mem_zalloc(BENCH_SOURCES, sizeof(*sources));
	CLEANUP_SUBJECT struct subject empty, weir, floor, hash, all, ip, nft;
	struct subject *subjects[PROGRAMS] = {&empty, &weir, &floor, &hash, &all, &ip, &nft};
	CLEANUP_SET struct set s = {0};
	const struct set *sets[] = {&s};
	struct draw *d;

	clean_up();
	make_pair();
	set_hosts(4, c->n, c->n + 4, &s);
	set_draw(sets, 1, KIND_PRESENT, BENCH_SOURCES, 59, sources);
	d = draw_new(&(struct draw_options){
		.family = 4, .sources = sources, .ifindex = if_nametoindex(SENDER)});
	subject_empty(&empty);
	make_weir(b, &s, 0, &weir);
	subject_floor_filter(&s, &floor);
	subject_hash(&s, &hash);
	subject_xdp_filter("all", sets, 1, &all);
	subject_xdp_filter("ip", sets, 1, &ip);
	subject_nft(b, &s, &nft);
	measure_live(b, &c->goal, d, subjects, PROGRAMS);
	draw_free(d);
	clean_up();
}

// Weir with samples beside Weir without.
static void run_sampled(const struct bench *b, const void *of)
{
	CLEANUP_FREE struct addr *sources = mem_zalloc(BENCH_SOURCES, sizeof(*sources));
	CLEANUP_SUBJECT struct subject empty, on, off;
	struct subject *subjects[] = {&empty, &on, &off};
	CLEANUP_SET struct set s = {0};
	const struct set *sets[] = {&s};
	struct draw *d;

	clean_up();
	make_pair();
	set_hosts(4, 1000, 1004, &s);
	set_draw(sets, 1, KIND_PRESENT, BENCH_SOURCES, 59, sources);
	d = draw_new(&(struct draw_options){
		.family = 4, .sources = sources, .ifindex = if_nametoindex(SENDER)});
	subject_empty(&empty);
	make_weir(b, &s, ONE_IN_1024, &on);
	make_weir(b, &s, 0, &off);
	off.name = "unsampled";
	measure_live(b, of, d, subjects, ARRAY_SIZE(subjects));
	draw_free(d);
	clean_up();
}

static void run(const struct bench *b)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (bench_wants(b, cases[i].goal.id))
			bench_try(b, cases[i].goal.id, run_case, &cases[i]);
	if (bench_wants(b, sampled.id))
		bench_try(b, sampled.id, run_sampled, &sampled);
}

const struct family live_family = {"drop-live", run};
