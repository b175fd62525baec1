// SPDX-License-Identifier: GPL-2.0-only
// Draws by functions of ncursesw that are found at run time.
#include "ctl/cmd/screen.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define NCURSES_NOMACROS
#define NCURSES_WIDECHAR 1
#include <ncurses.h>

#include "ctl/base/library.h"
#include "ctl/base/mem.h"

#define ESCAPE_MS 25 // after which a byte ESC is a key

// Each function of ncursesw that is called here. initscr() ends the process of an unknown terminal,
// so it is newterm(); a window of our own replaces the variable stdscr.
#define NCURSES_CALLS(X)      \
	X(cbreak)             \
	X(clearok)            \
	X(curs_set)           \
	X(delscreen)          \
	X(delwin)             \
	X(doupdate)           \
	X(endwin)             \
	X(getmaxx)            \
	X(getmaxy)            \
	X(has_colors)         \
	X(init_pair)          \
	X(isendwin)           \
	X(keypad)             \
	X(newterm)            \
	X(newwin)             \
	X(nodelay)            \
	X(noecho)             \
	X(resizeterm)         \
	X(set_escdelay)       \
	X(start_color)        \
	X(tigetstr)           \
	X(typeahead)          \
	X(use_default_colors) \
	X(waddnstr)           \
	X(wattr_set)          \
	X(werase)             \
	X(wgetch)             \
	X(wmove)              \
	X(wnoutrefresh)       \
	X(wresize)

struct ncurses_calls {
#define X(name) __typeof__(name) *name;
	NCURSES_CALLS(X)
#undef X
};

static const struct library_call calls[] = {
#define X(call) {#call, offsetof(struct ncurses_calls, call)},
	NCURSES_CALLS(X)
#undef X
};

static struct ncurses_calls nc;

enum pair { PAIR_GREEN = 1, PAIR_RED };

struct screen {
	SCREEN *terminal;
	WINDOW *window;
	struct termios before;
	bool color, utf8;
};

static int load(struct err *err)
{
	if (nc.newterm)
		return 0;
	return library_load("libncursesw.so.6", calls, ARRAY_SIZE(calls), &nc, sizeof(nc), err);
}

// ---- open, close --------------------------------------------------------------------------------

static bool takes_output(void)
{
	struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

	return poll(&out, 1, 0) > 0 && out.revents & POLLOUT;
}

// ncurses waits without end for a terminal that takes no output, as when a connection hangs: while
// it writes, these signals end the process.
static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static volatile sig_atomic_t asked; // a signal that arrived while the terminal took output
static struct termios at_start;

static void on_end(int number)
{
	const struct sigaction usual = {.sa_handler = SIG_DFL};

	if (takes_output()) {
		asked = number;
		return;
	}
	tcsetattr(STDIN_FILENO, TCSANOW, &at_start);
	sigaction(number, &usual, NULL);
	raise(number); // ends here, when this function returns
}

static void catch_ends(void)
{
	const struct sigaction action = {.sa_handler = on_end};

	for (size_t n = 0; n < ARRAY_SIZE(ends); n++)
		sigaction(ends[n], &action, NULL);
}

static sigset_t begin_writing(void)
{
	sigset_t set, before;

	sigemptyset(&set);
	for (size_t n = 0; n < ARRAY_SIZE(ends); n++)
		sigaddset(&set, ends[n]);
	sigprocmask(SIG_UNBLOCK, &set, &before);
	return before;
}

// The caller reads a signal that arrived, as if it had been blocked.
static void end_writing(const sigset_t *before)
{
	sigprocmask(SIG_SETMASK, before, NULL);
	if (asked)
		raise(asked);
	asked = 0;
}

static bool can(const char *capability)
{
	const intptr_t text = (intptr_t)nc.tigetstr(capability);

	return text && text != -1; // -1: not the name of a text
}

static void prepare(struct screen *s, bool color)
{
	s->color = color && nc.has_colors() && nc.start_color() == OK;
	if (s->color) {
		nc.use_default_colors();
		nc.init_pair(PAIR_GREEN, COLOR_GREEN, -1);
		nc.init_pair(PAIR_RED, COLOR_RED, -1);
	}
	nc.cbreak();
	nc.noecho();
	nc.curs_set(0);
	nc.typeahead(-1); // a key does not cut a screen short
	nc.set_escdelay(ESCAPE_MS);
	s->window = nc.newwin(0, 0, 0, 0);
	if (!s->window)
		mem_exhausted();
	nc.keypad(s->window, true);
	nc.nodelay(s->window, true);
}

int screen_open(bool color, struct screen **ret, struct err *err)
{
	CLEANUP_SCREEN struct screen *s = NULL;
	const char *type = getenv("TERM");
	int code = load(err);

	if (code)
		return code;
	s = mem_new(struct screen);
	if (tcgetattr(STDIN_FILENO, &s->before))
		return err_system(err, errno, "cannot read the settings of the terminal");
	setlocale(LC_CTYPE, "");
	s->utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	s->terminal = nc.newterm(NULL, stdout, stdin);
	if (!s->terminal)
		return err_stated(err, ENOTTY, "unknown terminal '%s'", type ? type : "");
	if (!can("cup") || !can("clear"))
		return err_stated(err, ENOTTY, "terminal '%s' cannot move its cursor", type);
	at_start = s->before;
	catch_ends();
	prepare(s, color);
	*ret = TAKE_PTR(s);
	return 0;
}

void screen_close(struct screen *s)
{
	if (!s)
		return;
	if (s->terminal && takes_output()) {
		const sigset_t before = begin_writing();

		nc.endwin();
		end_writing(&before);
	}
	if (s->window)
		nc.delwin(s->window);
	if (s->terminal) {
		nc.delscreen(s->terminal);
		tcsetattr(STDIN_FILENO, TCSANOW, &s->before);
	}
	setlocale(LC_CTYPE, "C");
	free(s);
}

void screen_cleanup(struct screen **s)
{
	screen_close(*s);
}

// The action of the kernel: without a shell that could continue it, the process does not stop.
void screen_stop(struct screen *s)
{
	const struct sigaction usual = {.sa_handler = SIG_DFL};
	sigset_t set, before;

	nc.endwin();
	sigaction(SIGTSTP, &usual, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &set, &before); // stops here
	sigprocmask(SIG_SETMASK, &before, NULL);
}

// After endwin() the next doupdate() sets the terminal up again.
void screen_renew(struct screen *s)
{
	if (!nc.isendwin())
		nc.endwin();
	nc.clearok(s->window, true);
}

// ---- draw ---------------------------------------------------------------------------------------

static void put(void *ctx, size_t row, size_t column, enum screen_style style, const char *text)
{
	static const attr_t attributes[] = {A_NORMAL, A_BOLD, A_REVERSE, A_NORMAL, A_NORMAL};
	static const short pairs[] = {0, 0, 0, PAIR_GREEN, PAIR_RED};
	struct screen *s = ctx;

	nc.wattr_set(s->window, attributes[style], (short)(s->color ? pairs[style] : 0), NULL);
	if (nc.wmove(s->window, (int)row, (int)column) == OK)
		nc.waddnstr(s->window, text, -1);
}

static void fit(struct screen *s)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_row || !size.ws_col)
		return;
	if (size.ws_row == nc.getmaxy(s->window) && size.ws_col == nc.getmaxx(s->window))
		return;
	nc.resizeterm(size.ws_row, size.ws_col);
	nc.wresize(s->window, size.ws_row, size.ws_col);
	nc.clearok(s->window, true);
}

struct screen_area screen_begin(struct screen *s)
{
	fit(s);
	nc.werase(s->window);
	return (struct screen_area){
		.rows = (size_t)nc.getmaxy(s->window),
		.columns = (size_t)nc.getmaxx(s->window),
		.utf8 = s->utf8,
		.put = put,
		.ctx = s,
	};
}

void screen_show(struct screen *s)
{
	sigset_t before;

	if (!takes_output())
		return;
	nc.wnoutrefresh(s->window);
	before = begin_writing();
	nc.doupdate();
	end_writing(&before);
}

// ---- keys ---------------------------------------------------------------------------------------

int screen_key(struct screen *s)
{
	static const struct {
		int curses, ours;
	} keys[] = {
		{KEY_UP, SCREEN_UP},         {KEY_DOWN, SCREEN_DOWN},
		{KEY_LEFT, SCREEN_LEFT},     {KEY_RIGHT, SCREEN_RIGHT},
		{KEY_PPAGE, SCREEN_PAGE_UP}, {KEY_NPAGE, SCREEN_PAGE_DOWN},
		{KEY_HOME, SCREEN_HOME},     {KEY_END, SCREEN_END},
		{KEY_BTAB, SCREEN_TAB_BACK}, {KEY_BACKSPACE, SCREEN_BACKSPACE},
		{KEY_ENTER, SCREEN_ENTER},   {'\r', SCREEN_ENTER},
		{'\b', SCREEN_BACKSPACE},    {0x7f, SCREEN_BACKSPACE},
	};
	int key = nc.wgetch(s->window);

	if (key == ERR)
		return SCREEN_NO_KEY;
	for (size_t n = 0; n < ARRAY_SIZE(keys); n++)
		if (keys[n].curses == key)
			return keys[n].ours;
	return key < SCREEN_UP ? key : SCREEN_OTHER;
}
