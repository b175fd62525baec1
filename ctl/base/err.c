// SPDX-License-Identifier: GPL-2.0-only
// Fills struct err: long messages are cut, but never lose the cause.
#include "ctl/base/err.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CAUSE_ROOM           48  // ": " and the longest cause
#define ERRNO_KERNEL_NOTSUPP 524 // ENOTSUPP: bpf() returns it, the C library has no name for it

__attribute__((format(printf, 3, 0))) static void vput(char *dst, size_t size, const char *fmt,
						       va_list ap)
{
	int n = vsnprintf(dst, size, fmt, ap);

	if (n < 0)
		dst[0] = '\0';
	else if ((size_t)n >= size)
		memcpy(dst + size - 4, "...", 4);
}

__attribute__((format(printf, 3, 4))) static void put(char *dst, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vput(dst, size, fmt, ap);
	va_end(ap);
}

static void cut(char *text, size_t size)
{
	if (strlen(text) >= size)
		memcpy(text + size - 4, "...", 4);
}

static int returned(const struct err *err)
{
	if (err && err->code)
		return -err->code;
	return err && err->kind == ERR_REFUSED ? -EPERM : -EINVAL;
}

// The arguments may point into err itself, so the sentence is complete before err is touched.
__attribute__((format(printf, 3, 0))) static int fill(struct err *err, enum err_kind kind,
						      const char *fmt, va_list ap)
{
	char text[sizeof(err->text)];

	if (!err)
		return kind == ERR_REFUSED ? -EPERM : -EINVAL;
	vput(text, sizeof(text), fmt, ap);
	err_clear(err);
	err->kind = kind;
	memcpy(err->text, text, sizeof(text));
	return returned(err);
}

int err_input(struct err *err, const char *fmt, ...)
{
	va_list ap;
	int code;

	va_start(ap, fmt);
	code = fill(err, ERR_INPUT, fmt, ap);
	va_end(ap);
	return code;
}

int err_refused(struct err *err, const char *fmt, ...)
{
	va_list ap;
	int code;

	va_start(ap, fmt);
	code = fill(err, ERR_REFUSED, fmt, ap);
	va_end(ap);
	return code;
}

// Errnos that have one cause for every call.
static const char *const causes[] = {
	[EPERM] = "operation not permitted",
	[ENOENT] = "it does not exist",
	[EIO] = "input or output error",
	[ENXIO] = "no such device or address",
	[ENOMEM] = "out of memory",
	[EACCES] = "permission denied",
	[EBUSY] = "in use",
	[EEXIST] = "it exists already",
	[EXDEV] = "it is on another file system",
	[ENODEV] = "no such device",
	[ENOTDIR] = "not a folder",
	[EISDIR] = "it is a folder",
	[ENFILE] = "too many open files on this host",
	[EMFILE] = "too many open files",
	[EFBIG] = "too large",
	[ENOSPC] = "no space left",
	[EROFS] = "the file system is read-only",
	[EPIPE] = "the reader has ended",
	[ENAMETOOLONG] = "the name is too long",
	[ENOTEMPTY] = "the folder is not empty",
	[ELOOP] = "too many symbolic links",
	[EBADMSG] = "damaged",
	[EOPNOTSUPP] = "not supported",
	[EADDRINUSE] = "the address is in use",
	[EADDRNOTAVAIL] = "not an address of this host",
	[ENETDOWN] = "the network is down",
	[ENETUNREACH] = "the network is unreachable",
	[ECONNRESET] = "the connection was reset",
	[ETIMEDOUT] = "timed out",
	[ECONNREFUSED] = "the connection was refused",
	[EHOSTUNREACH] = "the host is unreachable",
	[EDQUOT] = "the disk quota is used up",
};

static const char *cause_of(int code)
{
	return (size_t)code < sizeof(causes) / sizeof(*causes) ? causes[code] : NULL;
}

// A caller that lost its errno must still fail.
static int positive(int code)
{
	return code < 0 ? -code : code ? code : EIO;
}

__attribute__((format(printf, 3, 0))) static int fill_system(struct err *err, int code,
							     const char *fmt, va_list ap)
{
	fill(err, ERR_SYSTEM, fmt, ap);
	if (err)
		err->code = positive(code);
	return -positive(code);
}

int err_stated(struct err *err, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	code = fill_system(err, code, fmt, ap);
	va_end(ap);
	return code;
}

int err_system(struct err *err, int code, const char *fmt, ...)
{
	const char *cause;
	va_list ap;

	va_start(ap, fmt);
	code = fill_system(err, code, fmt, ap);
	va_end(ap);
	if (!err)
		return code;
	cause = cause_of(-code);
	cut(err->text, sizeof(err->text) - CAUSE_ROOM);
	put(err->text + strlen(err->text), CAUSE_ROOM, cause ? ": %s" : " (%s)",
	    cause ? cause : err_name(code));
	return code;
}

int err_hint(struct err *err, const char *fmt, ...)
{
	char hint[sizeof(err->hint)];
	va_list ap;

	if (!err)
		return -EINVAL;
	va_start(ap, fmt);
	vput(hint, sizeof(hint), fmt, ap);
	va_end(ap);
	memcpy(err->hint, hint, sizeof(hint));
	return returned(err);
}

int err_hint_root(struct err *err)
{
	return err_hint(err, "run it as root: sudo weir …");
}

void err_prefix(struct err *err, const char *fmt, ...)
{
	char what[sizeof(err->text)], text[sizeof(err->text)];
	va_list ap;

	if (!err || err->kind == ERR_NONE)
		return;
	va_start(ap, fmt);
	vput(what, sizeof(what), fmt, ap);
	va_end(ap);
	memcpy(text, err->text, sizeof(text));
	put(err->text, sizeof(err->text), "%s: %s", what, text);
}

// Does not clear 1.5 kB of text: in a loop over a million lines that would be most of the work.
const char *err_full(const struct err *err, err_full_text buf)
{
	bool hint = err->hint[0];

	snprintf(buf, sizeof(err_full_text), "%s%s%s%s", err->text, hint ? " (" : "", err->hint,
		 hint ? ")" : "");
	return buf;
}

void err_clear(struct err *err)
{
	if (!err)
		return;
	err->kind = ERR_NONE;
	err->code = 0;
	err->text[0] = '\0';
	err->hint[0] = '\0';
}

#define NAME(code) [code] = #code

// For C libraries without strerrorname_np(): what the system calls of Weir return.
static const char *const names[] = {
	NAME(EPERM),       NAME(ENOENT),          NAME(ESRCH),        NAME(EINTR),
	NAME(EIO),         NAME(ENXIO),           NAME(E2BIG),        NAME(ENOEXEC),
	NAME(EBADF),       NAME(ECHILD),          NAME(EAGAIN),       NAME(ENOMEM),
	NAME(EACCES),      NAME(EFAULT),          NAME(EBUSY),        NAME(EEXIST),
	NAME(EXDEV),       NAME(ENODEV),          NAME(ENOTDIR),      NAME(EISDIR),
	NAME(EINVAL),      NAME(ENFILE),          NAME(EMFILE),       NAME(ENOTTY),
	NAME(ETXTBSY),     NAME(EFBIG),           NAME(ENOSPC),       NAME(ESPIPE),
	NAME(EROFS),       NAME(EMLINK),          NAME(EPIPE),        NAME(EDOM),
	NAME(ERANGE),      NAME(EDEADLK),         NAME(ENAMETOOLONG), NAME(ENOLCK),
	NAME(ENOSYS),      NAME(ENOTEMPTY),       NAME(ELOOP),        NAME(ENOMSG),
	NAME(ENODATA),     NAME(ETIME),           NAME(ENOLINK),      NAME(EPROTO),
	NAME(EBADMSG),     NAME(EOVERFLOW),       NAME(EILSEQ),       NAME(EUSERS),
	NAME(ENOTSOCK),    NAME(EDESTADDRREQ),    NAME(EMSGSIZE),     NAME(EPROTOTYPE),
	NAME(ENOPROTOOPT), NAME(EPROTONOSUPPORT), NAME(EOPNOTSUPP),   NAME(EAFNOSUPPORT),
	NAME(EADDRINUSE),  NAME(EADDRNOTAVAIL),   NAME(ENETDOWN),     NAME(ENETUNREACH),
	NAME(ENETRESET),   NAME(ECONNABORTED),    NAME(ECONNRESET),   NAME(ENOBUFS),
	NAME(EISCONN),     NAME(ENOTCONN),        NAME(ETIMEDOUT),    NAME(ECONNREFUSED),
	NAME(EHOSTDOWN),   NAME(EHOSTUNREACH),    NAME(EALREADY),     NAME(EINPROGRESS),
	NAME(ESTALE),      NAME(EDQUOT),          NAME(ECANCELED),    NAME(EKEYREJECTED),
};

// Only glibc has it. Without it, it is NULL.
const char *strerrorname_np(int code) __attribute__((weak));

const char *err_name_of(int code)
{
	return (size_t)code < sizeof(names) / sizeof(*names) ? names[code] : NULL;
}

const char *err_name(int code)
{
	static _Thread_local char unknown[24];
	const char *name = NULL;

	if (code < 0 && code > INT_MIN)
		code = -code;
	if (code == ERRNO_KERNEL_NOTSUPP)
		return "ENOTSUPP";
	if (code > 0)
		name = strerrorname_np ? strerrorname_np(code) : err_name_of(code);
	if (name)
		return name;
	put(unknown, sizeof(unknown), "errno %d", code);
	return unknown;
}

const char *err_why(int code)
{
	const char *cause = cause_of(positive(code));

	return cause ? cause : err_name(code);
}
