// SPDX-License-Identifier: GPL-2.0-only
// The page: one HTML file, and the rates and the state that it reads.
//
// The agent serves it on a unix socket, for a proxy that knows its users; `weir page` serves it on
// a port of 127.0.0.1 that each user of the machine, and each page in a browser there, can reach:
// all but the file requires a token, and Host must name this machine. Nothing can be changed here.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE_TOKEN 32 // hexadecimal digits, of 128 bits
#define PAGE_WRONG 10 // tokens, until `weir page` ends

enum page_end { PAGE_ASKED, PAGE_TIME, PAGE_GUESSED };

// The page of `weir page`, and how the command has ended.
struct page_command {
	int fd; // listens; taken over
	char token[PAGE_TOKEN + 1];
	uint64_t for_ms;
	char *agent; // the socket of the agent, which is asked; NULL: this process measures
	enum page_end end;
};

struct agent;

// The path of the agent's socket for the page; the caller frees it.
char *page_path(const char *instance);
