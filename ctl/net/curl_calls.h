// SPDX-License-Identifier: GPL-2.0-only
// libcurl, loaded by the first command that needs it: with the thirty libraries below it, it would
// take 5 ms of each start, five times what `weir block` takes. Include this instead of curl/curl.h;
// the calls look the same.
#pragma once

#define CURL_DISABLE_TYPECHECK // its macros do not allow what follows

#include <curl/curl.h>

#include "ctl/base/err.h"

// Each function of libcurl that is called anywhere.
#define CURL_CALLS(X)          \
	X(easy_cleanup)        \
	X(easy_getinfo)        \
	X(easy_init)           \
	X(easy_setopt)         \
	X(easy_strerror)       \
	X(free)                \
	X(global_cleanup)      \
	X(global_init)         \
	X(multi_add_handle)    \
	X(multi_assign)        \
	X(multi_cleanup)       \
	X(multi_info_read)     \
	X(multi_init)          \
	X(multi_remove_handle) \
	X(multi_setopt)        \
	X(multi_socket_action) \
	X(multi_strerror)      \
	X(slist_append)        \
	X(slist_free_all)      \
	X(url)                 \
	X(url_cleanup)         \
	X(url_get)             \
	X(url_set)

struct curl_calls {
#define X(name) __typeof__(curl_##name) *name;
	CURL_CALLS(X)
#undef X
};

// Must precede the first call of any other function. 0 or -errno with err set: libcurl is not
// installed.
int curl_calls_load(struct err *err);
const struct curl_calls *curl_calls(void);

#undef curl_easy_getinfo
#undef curl_easy_setopt
#undef curl_multi_setopt
#define curl_easy_cleanup        (*curl_calls()->easy_cleanup)
#define curl_easy_getinfo        (*curl_calls()->easy_getinfo)
#define curl_easy_init           (*curl_calls()->easy_init)
#define curl_easy_setopt         (*curl_calls()->easy_setopt)
#define curl_easy_strerror       (*curl_calls()->easy_strerror)
#define curl_free                (*curl_calls()->free)
#define curl_global_cleanup      (*curl_calls()->global_cleanup)
#define curl_global_init         (*curl_calls()->global_init)
#define curl_multi_add_handle    (*curl_calls()->multi_add_handle)
#define curl_multi_assign        (*curl_calls()->multi_assign)
#define curl_multi_cleanup       (*curl_calls()->multi_cleanup)
#define curl_multi_info_read     (*curl_calls()->multi_info_read)
#define curl_multi_init          (*curl_calls()->multi_init)
#define curl_multi_remove_handle (*curl_calls()->multi_remove_handle)
#define curl_multi_setopt        (*curl_calls()->multi_setopt)
#define curl_multi_socket_action (*curl_calls()->multi_socket_action)
#define curl_multi_strerror      (*curl_calls()->multi_strerror)
#define curl_slist_append        (*curl_calls()->slist_append)
#define curl_slist_free_all      (*curl_calls()->slist_free_all)
#define curl_url                 (*curl_calls()->url)
#define curl_url_cleanup         (*curl_calls()->url_cleanup)
#define curl_url_get             (*curl_calls()->url_get)
#define curl_url_set             (*curl_calls()->url_set)
