// SPDX-License-Identifier: GPL-2.0-only
// Collects a text, with zlib where it is packed (RFC 1952).
#include "ctl/net/fetch_body.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "ctl/base/mem.h"
#include "ctl/base/text.h"

enum {
	CHUNK = 65536,
	RATIO_MAX = 100, // of a list it is five or ten, of a bomb a thousand
	RATIO_FROM = 1 << 20,
	GZIP_ONLY = 16, // added to the window bits: a gzip header must come first
};

struct fetch_body {
	size_t max;
	struct text text;
	bool gzip, ended; // ended: the packed text is whole
	z_stream z;
	char problem[96];
};

struct fetch_body *fetch_body_new(size_t bytes_max)
{
	struct fetch_body *b = mem_new(struct fetch_body);

	b->max = bytes_max;
	return b;
}

static void end_zlib(struct fetch_body *b)
{
	if (b->gzip)
		inflateEnd(&b->z);
	b->gzip = b->ended = false;
}

void fetch_body_free(struct fetch_body *b)
{
	if (!b)
		return;
	end_zlib(b);
	text_free(&b->text);
	free(b);
}

void fetch_body_begin(struct fetch_body *b, bool gzip)
{
	end_zlib(b);
	text_free(&b->text);
	b->text = (struct text){0};
	b->problem[0] = '\0';
	if (!gzip)
		return;
	b->z = (z_stream){0};
	if (inflateInit2(&b->z, MAX_WBITS + GZIP_ONLY) != Z_OK)
		mem_exhausted();
	b->gzip = true;
}

static int refuse(struct fetch_body *b, const char *why)
{
	snprintf(b->problem, sizeof(b->problem), "%s", why);
	return -EBADMSG;
}

static int add_plain(struct fetch_body *b, const char *data, size_t len)
{
	if (len > b->max - b->text.len) {
		snprintf(b->problem, sizeof(b->problem), "the text is larger than %zu bytes",
			 b->max);
		return -EFBIG;
	}
	text_addn(&b->text, data, len);
	return 0;
}

static bool is_bomb(const z_stream *z)
{
	return z->total_out > RATIO_FROM && z->total_out / RATIO_MAX > z->total_in;
}

static int add_packed(struct fetch_body *b, const char *data, size_t len)
{
	char chunk[CHUNK];

	b->z.next_in = (Bytef *)data;
	b->z.avail_in = (uInt)len;
	do {
		int status, code;

		if (b->ended)
			return refuse(b, "bytes follow the end of the gzip body");
		b->z.next_out = (Bytef *)chunk;
		b->z.avail_out = sizeof(chunk);
		status = inflate(&b->z, Z_NO_FLUSH);
		if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
			return refuse(b, "the gzip body is damaged");
		if ((code = add_plain(b, chunk, sizeof(chunk) - b->z.avail_out)))
			return code;
		if (is_bomb(&b->z))
			return refuse(b, "the gzip body unpacks to more than 100 times its size");
		b->ended = status == Z_STREAM_END;
	} while (b->z.avail_in || (!b->z.avail_out && !b->ended));
	return 0;
}

int fetch_body_add(struct fetch_body *b, const char *data, size_t len)
{
	return b->gzip ? add_packed(b, data, len) : add_plain(b, data, len);
}

int fetch_body_end(struct fetch_body *b, char **ret_text, size_t *ret_len)
{
	if (b->gzip && !b->ended)
		return refuse(b, "the gzip body is cut off");
	*ret_len = b->text.len;
	*ret_text = text_take(&b->text);
	return 0;
}

const char *fetch_body_problem(const struct fetch_body *b)
{
	return b->problem[0] ? b->problem : NULL;
}
