// SPDX-License-Identifier: GPL-2.0-only
// Makes functions of the C library unusable that Weir replaces; the build includes it before every
// file.
#pragma once

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// scripts/check-layers looks for strtol, strtoul and inet_pton: headers of the kernel name the
// first two.
#pragma GCC poison strtoll strtoull strtod atoi atol atoll atof sscanf
#pragma GCC poison strcpy strcat sprintf vsprintf strtok inet_addr inet_aton gets
