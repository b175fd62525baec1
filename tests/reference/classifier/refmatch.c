// SPDX-License-Identifier: GPL-2.0-only
// Answers packets given as hex lines with the verdict the reference classifier reaches.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ref.h"

static const char usage[] =
	"usage: refmatch [--trace] [--entry SET=ADDRESS]... POLICY < PACKETS\n"
	"  one packet a line: IFACE FLAGS HEX (IFACE - = the first; FLAGS - or over,established,unroutable;\n"
	"  HEX - = no bytes); lines with # are skipped; at an empty one all answers so far are written\n";

/* A line of input and the bytes of its packet. */
struct input {
	char *line;
	size_t line_size;
	uint8_t *bytes;
	size_t bytes_size;
	unsigned long number;
};

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static bool read_hex(struct input *input, const char *hex, size_t *ret_len)
{
	size_t len = strlen(hex);

	*ret_len = 0;
	if (!strcmp(hex, "-"))
		return true;
	if (len % 2 != 0)
		return false;
	if (len / 2 > input->bytes_size) {
		uint8_t *larger = realloc(input->bytes, len);

		if (!larger)
			return false;
		input->bytes = larger;
		input->bytes_size = len;
	}
	for (size_t i = 0; i < len; i += 2) {
		int high = hex_value(hex[i]), low = hex_value(hex[i + 1]);

		if (high < 0 || low < 0)
			return false;
		input->bytes[i / 2] = (uint8_t)(high * 16 + low);
	}
	*ret_len = len / 2;
	return true;
}

static bool read_flags(char *flags, struct ref_packet *packet)
{
	char *save = NULL;

	if (!strcmp(flags, "-"))
		return true;
	for (char *word = strtok_r(flags, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		if (!strcmp(word, "over"))
			packet->over = true;
		else if (!strcmp(word, "established"))
			packet->established = true;
		else if (!strcmp(word, "unroutable"))
			packet->unroutable = true;
		else
			return false;
	}
	return true;
}

/* Splits IFACE FLAGS HEX. */
static bool read_packet(struct input *input, struct ref_packet *ret_packet)
{
	char *save = NULL;
	char *iface = strtok_r(input->line, " \t\r\n", &save);
	char *flags = strtok_r(NULL, " \t\r\n", &save);
	char *hex = strtok_r(NULL, " \t\r\n", &save);

	memset(ret_packet, 0, sizeof(*ret_packet));
	if (!hex || strtok_r(NULL, " \t\r\n", &save))
		return false;
	if (!read_flags(flags, ret_packet) || !read_hex(input, hex, &ret_packet->len))
		return false;
	ret_packet->bytes = input->bytes;
	ret_packet->iface = strcmp(iface, "-") ? iface : NULL;
	return true;
}

/* A caller that waits for answers sends an empty line. */
static bool is_blank(const char *line)
{
	while (isspace((unsigned char)*line))
		line++;
	if (*line == '\0')
		fflush(stdout);
	return *line == '\0' || *line == '#';
}

static int answer_all(struct ref_policy *policy, bool trace)
{
	static char answer[1 << 20]; /* a trace may name every rule */
	struct input input = {0};
	int status = 0;

	while (getline(&input.line, &input.line_size, stdin) >= 0) {
		struct ref_packet packet;
		struct ref_result result;

		input.number++;
		if (is_blank(input.line))
			continue;
		if (!read_packet(&input, &packet)) {
			fprintf(stderr, "refmatch: line %lu is no packet\n", input.number);
			status = 1;
			break;
		}
		ref_match(policy, &packet, &result);
		ref_format(&result, trace, answer, sizeof(answer));
		puts(answer);
	}
	free(input.line);
	free(input.bytes);
	if (fflush(stdout) != 0 || ferror(stdin)) {
		fprintf(stderr, "refmatch: cannot read or write\n");
		status = 1;
	}
	return status;
}

static bool add_entry(struct ref_policy *policy, char *entry)
{
	char *equal = strchr(entry, '=');

	if (!equal)
		return false;
	*equal = '\0';
	return ref_dynamic_add(policy, entry, equal + 1) == 0;
}

static int add_entries(struct ref_policy *policy, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--entry") != 0)
			continue;
		if (!add_entry(policy, argv[++i])) {
			fprintf(stderr, "refmatch: --entry '%s'\n", argv[i]);
			return 1;
		}
	}
	return 0;
}

static const char *policy_path(int argc, char **argv, bool *ret_trace)
{
	const char *path = NULL;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--trace"))
			*ret_trace = true;
		else if (!strcmp(argv[i], "--entry") && i + 1 < argc)
			i++;
		else if (path || argv[i][0] == '-')
			return NULL;
		else
			path = argv[i];
	}
	return path;
}

int main(int argc, char **argv)
{
	bool trace = false;
	const char *path = policy_path(argc, argv, &trace);
	struct ref_policy *policy;
	char msg[1024];
	int status;

	if (!path) {
		fputs(usage, stderr);
		return 2;
	}
	if (ref_policy_read(path, &policy, msg, sizeof(msg)) < 0) {
		fprintf(stderr, "%s\n", msg);
		return 1;
	}
	status = add_entries(policy, argc, argv);
	if (status == 0)
		status = answer_all(policy, trace);
	ref_policy_free(policy);
	return status;
}
