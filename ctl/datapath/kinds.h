// SPDX-License-Identifier: GPL-2.0-only
// The words of the kinds of entries (enum overlay_kind).
#pragma once

#include <stdint.h>

const char *kind_text(uint8_t kind); // "block from", "allow to"
const char *kind_key(uint8_t kind);  // "block-from": for JSON
const char *kind_verb(uint8_t kind); // "block"
const char *kind_side(uint8_t kind); // "from"
