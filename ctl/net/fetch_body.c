// SPDX-License-Identifier: GPL-2.0-only
// Collects a text, with zlib where it is packed (RFC 1952): the answer (Content-Encoding), the file
// itself (list.gz), or both.
#include "ctl/net/fetch_body.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "ctl/base/mem.h"
#include "ctl/base/text.h"

enum {
	CHUNK = 65536,
	RATIO_MAX = 100, // five or ten for a list, a thousand for a bomb
	RATIO_FROM = 1 << 20,
	GZIP_ONLY = 16,    // added to the window bits: a gzip header must come first
	GZIP_FIRST = 0x1f, // byte of a gzip file; no text begins with it
};

// Bytes that are unpacked on their way to the text.
struct unpacking {
	const char *what; // for messages
	bool on, ended;   // ended: the packed text is complete
	bool many;        // one packed text may follow another, as gzip(1) reads them
	z_stream z;
	uint64_t in, out; // bytes of all texts
};

enum layer { ANSWER, FILE_ITSELF, LAYERS };

struct fetch_body {
	size_t max;
	struct text text;
	bool begun; // the first byte has come
	struct unpacking layers[LAYERS];
	char problem[96];
};

struct fetch_body *fetch_body_new(size_t bytes_max)
{
	struct fetch_body *b = mem_new(struct fetch_body);

	b->max = bytes_max;
	b->layers[ANSWER] = (struct unpacking){.what = "gzip body"};
	b->layers[FILE_ITSELF] = (struct unpacking){.what = "gzip file", .many = true};
	return b;
}

static void begin_unpacking(struct unpacking *u)
{
	u->z = (z_stream){0};
	if (inflateInit2(&u->z, MAX_WBITS + GZIP_ONLY) != Z_OK)
		mem_exhausted();
	u->on = true;
}

static void end_unpacking(struct unpacking *u)
{
	if (u->on)
		inflateEnd(&u->z);
	u->on = u->ended = false;
	u->in = u->out = 0;
}

static void end_all(struct fetch_body *b)
{
	for (size_t l = 0; l < LAYERS; l++)
		end_unpacking(&b->layers[l]);
}

void fetch_body_free(struct fetch_body *b)
{
	if (!b)
		return;
	end_all(b);
	text_free(&b->text);
	free(b);
}

void fetch_body_begin(struct fetch_body *b, bool gzip)
{
	end_all(b);
	text_free(&b->text);
	b->text = (struct text){0};
	b->begun = false;
	b->problem[0] = '\0';
	if (gzip)
		begin_unpacking(&b->layers[ANSWER]);
}

__attribute__((format(printf, 2, 3))) static int refuse(struct fetch_body *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(b->problem, sizeof(b->problem), fmt, ap);
	va_end(ap);
	return -EBADMSG;
}

static int add_text(struct fetch_body *b, const char *data, size_t len)
{
	if (len > b->max - b->text.len) {
		refuse(b, "the text is larger than %zu bytes", b->max);
		return -EFBIG;
	}
	text_addn(&b->text, data, len);
	return 0;
}

static bool is_bomb(const struct unpacking *u)
{
	return u->out > RATIO_FROM && u->out / RATIO_MAX > u->in;
}

static int add_layer(struct fetch_body *b, size_t layer, const char *data, size_t len);

// One chunk of what the layer has at u->z.next_in.
static int unpack(struct fetch_body *b, size_t layer, char chunk[CHUNK])
{
	struct unpacking *u = &b->layers[layer];
	uInt in = u->z.avail_in, out;
	int status, code;

	if (u->ended && (!u->many || inflateReset(&u->z) != Z_OK))
		return refuse(b, "bytes follow the end of the %s", u->what);
	u->z.next_out = (Bytef *)chunk;
	u->z.avail_out = CHUNK;
	status = inflate(&u->z, Z_NO_FLUSH);
	if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
		return refuse(b, "the %s is damaged", u->what);
	out = CHUNK - u->z.avail_out;
	u->in += in - u->z.avail_in;
	u->out += out;
	u->ended = status == Z_STREAM_END;
	if ((code = add_layer(b, layer + 1, chunk, out)))
		return code;
	if (is_bomb(u))
		return refuse(b, "the %s unpacks to more than %d times its size", u->what,
			      RATIO_MAX);
	return 0;
}

static int add_layer(struct fetch_body *b, size_t layer, const char *data, size_t len)
{
	struct unpacking *u = layer < LAYERS ? &b->layers[layer] : NULL;
	char chunk[CHUNK];
	int code;

	if (!u)
		return add_text(b, data, len);
	if (layer == FILE_ITSELF && len && !b->begun) {
		b->begun = true;
		if ((uint8_t)data[0] == GZIP_FIRST)
			begin_unpacking(u);
	}
	if (!u->on)
		return add_layer(b, layer + 1, data, len);
	u->z.next_in = (Bytef *)data;
	u->z.avail_in = (uInt)len;
	do {
		if ((code = unpack(b, layer, chunk)))
			return code;
	} while (u->z.avail_in || (!u->z.avail_out && !u->ended));
	return 0;
}

void fetch_body_refuse(struct fetch_body *b, const char *why)
{
	refuse(b, "%s", why);
}

int fetch_body_add(struct fetch_body *b, const char *data, size_t len)
{
	return b->problem[0] ? -EBADMSG : add_layer(b, ANSWER, data, len);
}

int fetch_body_end(struct fetch_body *b, char **ret_text, size_t *ret_len)
{
	if (b->problem[0])
		return -EBADMSG;
	for (size_t l = 0; l < LAYERS; l++)
		if (b->layers[l].on && !b->layers[l].ended)
			return refuse(b, "the %s is cut off", b->layers[l].what);
	*ret_len = b->text.len;
	*ret_text = text_take(&b->text);
	return 0;
}

const char *fetch_body_problem(const struct fetch_body *b)
{
	return b->problem[0] ? b->problem : NULL;
}
