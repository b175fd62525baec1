// SPDX-License-Identifier: GPL-2.0-only
// Names of countries by their codes, and the codes that misspelt ones may mean.
#pragma once

// "Germany" for DE; NULL: no such code.
const char *geo_country_name(const char *code);
// The code that may have been meant, by code or English name; NULL: none is near.
const char *geo_country_nearest(const char *word);
