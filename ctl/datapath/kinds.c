// SPDX-License-Identifier: GPL-2.0-only
// The words of the kinds of entries, by number.
#include "ctl/datapath/kinds.h"

#include "common/overlay.h"

static const struct {
	const char *text, *key, *verb, *side;
} kinds[OVERLAY_KINDS] = {
	[OVERLAY_BLOCK_FROM] = {"block from", "block-from", "block", "from"},
	[OVERLAY_ALLOW_FROM] = {"allow from", "allow-from", "allow", "from"},
	[OVERLAY_BLOCK_TO] = {"block to", "block-to", "block", "to"},
	[OVERLAY_ALLOW_TO] = {"allow to", "allow-to", "allow", "to"},
	[OVERLAY_ALLOW_OUT] = {"allow out", "allow-out", "allow", "out"},
	[OVERLAY_BLOCK_OUT] = {"block out", "block-out", "block", "out"},
	[OVERLAY_BLOCK_OUT_REFUSED] = {"block out", "block-out-refused", "block", "out"},
	[OVERLAY_BLOCK_OUT_UNREACHABLE] = {"block out", "block-out-unreachable", "block", "out"},
	[OVERLAY_BLOCK_OUT_ALL] = {"block out", "block-out-all", "block", "out"},
	[OVERLAY_BLOCK_OUT_ALL_REFUSED] = {"block out", "block-out-all-refused", "block", "out"},
	[OVERLAY_BLOCK_OUT_ALL_UNREACHABLE] = {"block out", "block-out-all-unreachable", "block",
					       "out"},
};

const char *kind_text(uint8_t kind)
{
	return kinds[kind].text;
}

const char *kind_key(uint8_t kind)
{
	return kinds[kind].key;
}

const char *kind_verb(uint8_t kind)
{
	return kinds[kind].verb;
}

const char *kind_side(uint8_t kind)
{
	return kinds[kind].side;
}
