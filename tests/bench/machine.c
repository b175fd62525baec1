// SPDX-License-Identifier: GPL-2.0-only
// Describes the machine for bench.json.
#include "tests/bench/machine.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "ctl/base/json.h"
#include "ctl/base/mem.h"
#include "tests/bench/subject.h"

// The value of "model name" in /proc/cpuinfo.
static char *cpu_model(void)
{
	CLEANUP_FILE FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256];

	while (f && fgets(line, sizeof(line), f)) {
		const char *colon = strchr(line, ':');

		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "model name", 10) && colon)
			return mem_strdup(colon + 2);
	}
	return mem_strdup("unknown");
}

static char *load(void)
{
	double at[3] = {0};

	return getloadavg(at, 3) == 3 ? mem_printf("%.2f %.2f %.2f", at[0], at[1], at[2])
				      : mem_strdup("unknown");
}

static void set_text(struct json *j, const char *key, char *text)
{
	json_set(j, key, json_string(text));
	free(text);
}

static void set_cache(struct json *j, const char *key, int name)
{
	long bytes = sysconf(name);

	if (bytes > 0)
		json_set(j, key, json_u64((uint64_t)bytes / 1024));
}

#define VULNERABILITIES "/sys/devices/system/cpu/vulnerabilities"

static char *first_line(const char *folder, const char *name)
{
	CLEANUP_FREE char *path = mem_printf("%s/%s", folder, name);
	CLEANUP_FILE FILE *f = fopen(path, "re");
	char line[256];

	if (!f || !fgets(line, sizeof(line), f))
		return mem_strdup("unknown");
	line[strcspn(line, "\n")] = '\0';
	return mem_strdup(line);
}

// The kernel's mitigation for each weakness of the CPU: {"spec_rstack_overflow": "Mitigation: Safe
// RET", …}
static struct json *describe_mitigations(void)
{
	struct json *j = json_object();
	struct dirent **names;
	int n = scandir(VULNERABILITIES, &names, NULL, alphasort);

	for (int i = 0; i < n; i++) {
		CLEANUP_FREE struct dirent *name = names[i];
		CLEANUP_FREE char *state = NULL;

		if (name->d_name[0] == '.')
			continue;
		state = first_line(VULNERABILITIES, name->d_name);
		if (strcmp(state, "Not affected") != 0)
			json_set(j, name->d_name, json_string(state));
	}
	if (n >= 0)
		free(names);
	return j;
}

static void print_mitigation(void *ctx, const char *name, const struct json *state)
{
	bool *first = ctx;

	printf("%s%s: %s", *first ? "" : "; ", name, json_text(state));
	*first = false;
}

void machine_print(const struct json *machine)
{
	bool first = true;

	printf("%s, %llu rounds of each load on CPU %llu, load average %s; net ns per packet\n",
	       json_get_string(machine, "cpu"), (unsigned long long)json_get_u64(machine, "rounds"),
	       (unsigned long long)json_get_u64(machine, "pinned_cpu"),
	       json_get_string(machine, "load_before"));
	printf("mitigations of the CPU: ");
	json_each(json_get(machine, "mitigations"), print_mitigation, &first);
	printf("%s\n\n", first ? "none" : "");
}

struct json *machine_describe(int cpu, size_t rounds)
{
	struct json *j = json_object();
	time_t now = time(NULL);
	struct utsname u;
	struct tm tm;
	char date[32] = "";

	set_text(j, "cpu", cpu_model());
	json_set(j, "cores", json_i64(sysconf(_SC_NPROCESSORS_ONLN)));
	set_cache(j, "l1d_kb", _SC_LEVEL1_DCACHE_SIZE);
	set_cache(j, "l2_kb", _SC_LEVEL2_CACHE_SIZE);
	set_cache(j, "l3_kb", _SC_LEVEL3_CACHE_SIZE);
	if (!uname(&u)) {
		json_set(j, "kernel", json_string(u.release));
		json_set(j, "architecture", json_string(u.machine));
	}
	if (gmtime_r(&now, &tm) && strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &tm))
		json_set(j, "date", json_string(date));
	json_set(j, "pinned_cpu", json_i64(cpu));
	json_set(j, "rounds", json_u64(rounds));
	json_set(j, "loads", json_u64(SUBJECT_LOADS));
	set_text(j, "load_before", load());
	json_set(j, "mitigations", describe_mitigations());
	return j;
}

void machine_finish(struct json *machine)
{
	json_remove(machine, "load_after");
	set_text(machine, "load_after", load());
}
