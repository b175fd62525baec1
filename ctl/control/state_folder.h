// SPDX-License-Identifier: GPL-2.0-only
// Whether what an instance has to remember can be written.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// False: nothing could be saved now. text: a sentence with the cause.
bool state_folder_works(const char *instance, char *text, size_t size);
