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
	  .reach = {{1.6, {"kernel-hash"}}}},
	 1000000},
};

// Device

static void make_pair(void)
{
	static const char *const commands[][12] = {
		{"ip", "link", "add", SENDER, "type", "veth", "peer", "name", RECEIVER},
		{"ip", "link", "set", SENDER, "up"},
		{"ip", "link", "set", RECEIVER, "up"},
		// Without a program, a receiver accepts XDP frames only with GRO.
		{"ethtool", "-K", RECEIVER, "gro", "on"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		tool_need(commands[i], NULL);
}

static void remove_pair(void)
{
	tool_need((const char *const[]){"ip", "link", "del", SENDER, NULL}, NULL);
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
	size_t n;
};

// nft has no program: its hook gets the packets while no program is attached.
static double run_once(const struct row_goal *goal, const struct draw *d, const struct subject *s,
		       size_t load)
{
	int program = subject_load(s, load);
	uint64_t before, taken;
	double ns;

	attach(program);
	draw_send(d, PACKETS / 8);
	before = received();
	ns = (double)draw_send(d, PACKETS);
	taken = received() - before;
	if (program >= 0)
		attach(-1);
	// Some packets may still be in flight.
	if (taken < PACKETS - PACKETS / 100 || taken > PACKETS + PACKETS / 100)
		bench_fail(EIO, "%s: '%s' received %llu of %u packets", goal->id, s->name,
			   (unsigned long long)taken, PACKETS);
	return ns / (double)taken;
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

			p.ns[next][round] = run_once(goal, d, p.at[next], round);
		}
	report(b, goal, &p, subjects, n, rounds);
	for (size_t i = 0; i < p.n; i++)
		free(p.ns[i]);
}

static void make_weir(const struct bench *b, const struct set *s, struct subject *ret)
{
	CLEANUP_FREE char *list = mem_printf("%s/live.txt", b->folder);
	CLEANUP_FREE char *path = mem_printf("%s/live.weir", b->folder);

	set_write(s, list);
	policy_text("interface " RECEIVER "\nset s { file \"live.txt\" }\ndrop from @s\n", path);
	subject_weir(&(struct weir_options){.policy = path}, ret);
	if (!ret->skipped)
		subject_weir_iface(ret, if_nametoindex(RECEIVER));
}

static void run_case(const struct bench *b, const struct live_case *c)
{
	CLEANUP_FREE struct addr *sources = mem_zalloc(BENCH_SOURCES, sizeof(*sources));
	CLEANUP_SUBJECT struct subject empty, weir, floor, hash, all, ip, nft;
	struct subject *subjects[PROGRAMS] = {&empty, &weir, &floor, &hash, &all, &ip, &nft};
	CLEANUP_SET struct set s = {0};
	const struct set *sets[] = {&s};
	struct draw *d;

	make_pair();
	set_hosts(4, c->n, c->n + 4, &s);
	set_draw(sets, 1, KIND_PRESENT, BENCH_SOURCES, 59, sources);
	d = draw_new(&(struct draw_options){
		.family = 4, .sources = sources, .ifindex = if_nametoindex(SENDER)});
	subject_empty(&empty);
	make_weir(b, &s, &weir);
	subject_floor_filter(&s, &floor);
	subject_hash(&s, &hash);
	subject_xdp_filter("all", sets, 1, &all);
	subject_xdp_filter("ip", sets, 1, &ip);
	subject_nft(b, &s, &nft);
	measure_live(b, &c->goal, d, subjects, PROGRAMS);
	draw_free(d);
	remove_pair();
	if (!nft.skipped)
		tool_run((const char *const[]){"nft", "flush", "ruleset", NULL}, NULL);
}

static void run(struct bench *b)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (bench_wants(b, cases[i].goal.id))
			run_case(b, &cases[i]);
}

const struct family live_family = {"drop-live", run};
