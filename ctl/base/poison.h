// SPDX-License-Identifier: GPL-2.0-only
// Functions that Weir does not use, made unusable: included before everything by the build.
#pragma once

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// (linux/bpf.h itself names strtol and strtoul: scripts/check-functions looks for those.)
#pragma GCC poison strtoll strtoull strtod atoi atol atoll atof sscanf
#pragma GCC poison strcpy strcat sprintf vsprintf strtok inet_addr inet_aton gets
