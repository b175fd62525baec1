// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/base/file.c, in a folder of their own under $TMPDIR or /tmp.
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/file_tree.h"
#include "ctl/base/mem.h"

#define MAX (1 << 28)

static void write_file(const char *path, const char *text, size_t len)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static void assert_content(const char *path, const char *want)
{
	CLEANUP_FREE char *text = NULL;
	size_t len;

	assert_int_equal(file_read(path, MAX, &text, &len, NULL), 0);
	assert_string_equal(text, want);
	assert_int_equal(len, strlen(want));
}

// Reading fails with this errno and sentence; the outputs are untouched.
static void assert_unreadable(const char *path, size_t max, int code, enum err_kind kind,
			      const char *sentence)
{
	char *text = (char *)1;
	size_t len = 4711;
	struct err err = {0};

	assert_int_equal(file_read(path, max, &text, &len, &err), -code);
	assert_ptr_equal(text, (char *)1);
	assert_int_equal(len, 4711);
	assert_int_equal(err.kind, kind);
	assert_string_equal(err.text, sentence);
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode & 07777;
}

static void test_read(void **state)
{
	CLEANUP_FREE char *text = NULL;
	size_t len;

	write_file("empty", "", 0);
	assert_content("empty", "");
	write_file("zeros", "a\0b\n", 4);
	assert_int_equal(file_read("zeros", MAX, &text, &len, NULL), 0);
	assert_int_equal(len, 4);
	assert_memory_equal(text, "a\0b\n\0", 5);
	assert_int_equal(symlink("zeros", "link"), 0);
	mem_cleanup_free(&text);
	assert_int_equal(file_read("link", MAX, &text, &len, NULL), 0);
	assert_int_equal(len, 4);
}

static void test_read_bound(void **state)
{
	CLEANUP_FREE char *text = NULL;
	size_t len;

	write_file("ten", "0123456789", 10);
	assert_int_equal(file_read("ten", 10, &text, &len, NULL), 0);
	assert_int_equal(len, 10);
	assert_unreadable("ten", 9, EINVAL, ERR_INPUT, "'ten' is larger than 9 bytes");
	assert_unreadable("ten", 0, EINVAL, ERR_INPUT, "'ten' is larger than 0 bytes");
	assert_int_equal(truncate("ten", 3000001), 0);
	assert_unreadable("ten", 3000000, EINVAL, ERR_INPUT, "'ten' is larger than 3 MB");
	write_file("empty", "", 0);
	mem_cleanup_free(&text);
	assert_int_equal(file_read("empty", 0, &text, &len, NULL), 0);
}

static void test_read_refuses_without_waiting(void **state)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "socket"};
	CLEANUP_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(mkdir("folder", 0700), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	alarm(10); // a test that waits for a writer would never end
	assert_unreadable("fifo", MAX, EINVAL, ERR_INPUT,
			  "cannot read 'fifo': it is not a regular file");
	assert_unreadable("folder", MAX, EINVAL, ERR_INPUT, "cannot read 'folder': it is a folder");
	assert_unreadable("folder/", MAX, EINVAL, ERR_INPUT,
			  "cannot read 'folder/': it is a folder");
	assert_unreadable("socket", MAX, EINVAL, ERR_INPUT,
			  "cannot read 'socket': it is not a regular file");
	assert_unreadable("/dev/zero", MAX, EINVAL, ERR_INPUT,
			  "cannot read '/dev/zero': it is not a regular file");
	assert_unreadable("/dev/null", MAX, EINVAL, ERR_INPUT,
			  "cannot read '/dev/null': it is not a regular file");
	alarm(0);
}

// A writer that opens late and pauses, in a process of its own.
static void write_slowly(const char *fifo)
{
	int fd;

	usleep(20000);
	fd = open(fifo, O_WRONLY);
	_exit(fd < 0 || write(fd, "a\n", 2) != 2 || usleep(20000) || write(fd, "b\n", 2) != 2);
}

static void test_read_stream(void **state)
{
	CLEANUP_FREE char *text = NULL;
	char path[32];
	size_t len;
	pid_t writer;
	int ends[2], status;

	alarm(10);
	assert_int_equal(mkfifo("fifo", 0600), 0);
	if (!(writer = fork()))
		write_slowly("fifo");
	assert_int_equal(file_read_stream("fifo", MAX, &text, &len, NULL), 0);
	assert_string_equal(text, "a\nb\n");
	assert_int_equal(waitpid(writer, &status, 0), writer);
	assert_int_equal(status, 0);
	mem_cleanup_free(&text);

	assert_int_equal(pipe(ends), 0); // as a shell's <(COMMAND)
	snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
	assert_int_equal(write(ends[1], "0123456789", 10), 10);
	close(ends[1]);
	assert_int_equal(file_read_stream(path, MAX, &text, &len, NULL), 0);
	assert_int_equal(len, 10);
	mem_cleanup_free(&text);
	assert_int_equal(file_read_stream(path, MAX, &text, &len, NULL), 0); // its end, at once
	assert_int_equal(len, 0);
	close(ends[0]);
	assert_int_equal(file_read_stream("/dev/null", MAX, &text, &len, NULL), -EINVAL);
	alarm(0);
}

static void test_read_absent(void **state)
{
	char long_name[300];

	memset(long_name, 'x', sizeof(long_name));
	long_name[sizeof(long_name) - 1] = '\0';
	write_file("plain", "x", 1);
	assert_int_equal(symlink("loop", "loop"), 0);
	assert_unreadable("absent", MAX, ENOENT, ERR_INPUT,
			  "cannot open 'absent': it does not exist");
	assert_unreadable("", MAX, ENOENT, ERR_INPUT, "cannot open '': it does not exist");
	assert_unreadable("plain/x", MAX, ENOTDIR, ERR_INPUT,
			  "cannot open 'plain/x': not a folder");
	assert_unreadable("loop", MAX, ELOOP, ERR_INPUT,
			  "cannot open 'loop': too many symbolic links");
	assert_int_equal(file_read(long_name, MAX, NULL, NULL, NULL), -ENAMETOOLONG);
	assert_int_equal(file_read("absent", MAX, NULL, NULL, NULL), -ENOENT);
}

// For these the kernel reports 0 bytes and delivers more than the first buffer can hold.
static void test_read_without_a_size(void **state)
{
	CLEANUP_FREE char *text = NULL;
	size_t len = 0;

	assert_int_equal(file_read("/proc/self/status", MAX, &text, &len, NULL), 0);
	assert_true(len > 100);
	assert_int_equal(strlen(text), len);
	assert_unreadable("/proc/self/status", 50, EINVAL, ERR_INPUT,
			  "'/proc/self/status' is larger than 50 bytes");
}

static void append_for_ever(const char *path)
{
	int fd = open(path, O_WRONLY | O_APPEND);
	char block[4096];

	memset(block, 'g', sizeof(block));
	while (write(fd, block, sizeof(block)) > 0)
		;
	_exit(0);
}

static void test_read_while_it_grows(void **state)
{
	pid_t writer;

	write_file("growing", "", 0);
	writer = fork();
	assert_true(writer >= 0);
	if (!writer) {
		struct rlimit limit = {64 << 20, 64 << 20};

		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &limit);
		append_for_ever("growing");
	}
	for (int i = 0; i < 20; i++) {
		CLEANUP_FREE char *text = NULL;
		size_t len;

		assert_int_equal(file_read("growing", MAX, &text, &len, NULL), 0);
		assert_int_equal(strspn(text, "g"), len);
		usleep(500);
	}
	kill(writer, SIGKILL);
	waitpid(writer, NULL, 0);
	unlink("growing");
}

static void feed(int fd, size_t len, size_t piece, useconds_t pause)
{
	char block[65536];

	memset(block, 'p', sizeof(block));
	while (len) {
		size_t n = len < piece ? len : piece;
		ssize_t written = write(fd, block, n);

		if (written < 0)
			_exit(1);
		len -= (size_t)written;
		if (pause)
			usleep(pause);
	}
	_exit(0);
}

// Reads "-" while a child writes `len` bytes into it.
static int read_fed(size_t len, size_t piece, useconds_t pause, size_t max, char **ret_text,
		    size_t *ret_len, struct err *err)
{
	CLEANUP_FD int saved = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
	int ends[2], r;
	pid_t writer;

	assert_int_equal(pipe(ends), 0);
	writer = fork();
	assert_true(writer >= 0);
	if (!writer) {
		close(ends[0]);
		signal(SIGPIPE, SIG_DFL);
		feed(ends[1], len, piece, pause);
	}
	close(ends[1]);
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	r = file_read("-", max, ret_text, ret_len, err);
	dup2(saved, STDIN_FILENO);
	waitpid(writer, NULL, 0);
	return r;
}

static void test_read_standard_input(void **state)
{
	static const size_t sizes[] = {0, 1, 65534, 65535, 65536, 65537, 131071, 131072, 1000000};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		CLEANUP_FREE char *text = NULL;
		size_t len = 0;

		assert_int_equal(read_fed(sizes[i], 65536, 0, sizes[i], &text, &len, NULL), 0);
		assert_int_equal(len, sizes[i]);
		assert_int_equal(strspn(text, "p"), len);
		assert_int_equal(text[len], '\0');
	}
}

static void test_read_standard_input_bound(void **state)
{
	struct err err = {0};
	char *text = NULL;
	size_t len;

	assert_int_equal(read_fed(200000, 65536, 0, 150000, &text, &len, &err), -EINVAL);
	assert_null(text);
	assert_int_equal(err.kind, ERR_INPUT);
	assert_string_equal(err.text, "'standard input' is larger than 150000 bytes");
}

static void do_nothing(int signal_number)
{
}

static void test_read_is_interrupted(void **state)
{
	struct sigaction quiet = {.sa_handler = do_nothing}, old; // no SA_RESTART
	struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
	CLEANUP_FREE char *text = NULL;
	size_t len = 0;
	int r;

	assert_int_equal(sigaction(SIGALRM, &quiet, &old), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	r = read_fed(100, 10, 5000, MAX, &text, &len, NULL);
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &old, NULL);
	assert_int_equal(r, 0);
	assert_int_equal(len, 100);
}

static void test_replace(void **state)
{
	mode_t mask = umask(077);

	assert_int_equal(file_replace("fresh", "one", 3, 0644, NULL), 0);
	assert_content("fresh", "one");
	assert_int_equal(mode_of("fresh"), 0644);
	assert_int_equal(file_replace("fresh", "second", 6, 0600, NULL), 0);
	assert_content("fresh", "second");
	assert_int_equal(mode_of("fresh"), 0600);
	assert_int_equal(file_replace("fresh", "", 0, 0600, NULL), 0);
	assert_content("fresh", "");
	assert_false(file_exists("fresh.new"));
	umask(mask);
}

static void test_stage_then_commit(void **state)
{
	write_file("staged", "old", 3);
	write_file("staged.new", "left behind by a killed process, and longer", 43);
	assert_int_equal(chmod("staged.new", 0644), 0);
	assert_int_equal(file_stage("staged", "new", 3, 0600, NULL), 0);
	assert_content("staged", "old");
	assert_content("staged.new", "new");
	assert_int_equal(mode_of("staged.new"), 0600);
	assert_int_equal(file_commit("staged", NULL), 0);
	assert_content("staged", "new");
	assert_false(file_exists("staged.new"));
}

static void test_commit_follows_the_folder(void **state)
{
	CLEANUP_FREE char *here = getcwd(NULL, 0), *absolute = mem_printf("%s/absolute", here);

	assert_int_equal(mkdir("sub", 0700), 0);
	assert_int_equal(file_replace("sub/file", "x", 1, 0600, NULL), 0);
	assert_content("sub/file", "x");
	assert_int_equal(file_replace(absolute, "y", 1, 0600, NULL), 0);
	assert_content("absolute", "y");
	assert_int_equal(file_replace("./sub/../dotted", "z", 1, 0600, NULL), 0);
	assert_content("dotted", "z");
}

// The disk is "full" after 4096 bytes.
static void test_stage_fails_half_way(void **state)
{
	struct rlimit old, small;
	struct err err = {0};
	char big[10000];
	int r;

	memset(big, 'b', sizeof(big));
	write_file("kept", "old", 3);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = old;
	small.rlim_cur = 4096;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	r = file_replace("kept", big, sizeof(big), 0600, &err);
	setrlimit(RLIMIT_FSIZE, &old);
	signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(r, -EFBIG);
	assert_int_equal(err.kind, ERR_SYSTEM);
	assert_string_equal(err.text, "cannot write 'kept.new': too large");
	assert_content("kept", "old");
	assert_false(file_exists("kept.new"));
}

static void test_stage_refuses(void **state)
{
	struct err err = {0};

	write_file("victim", "precious", 8);
	assert_int_equal(symlink("victim", "linked.new"), 0);
	assert_int_equal(file_stage("linked", "x", 1, 0600, &err), -ELOOP);
	assert_string_equal(err.text, "cannot create 'linked.new': too many symbolic links");
	assert_content("victim", "precious");
	assert_int_equal(mkdir("dir.new", 0700), 0);
	assert_int_equal(file_stage("dir", "x", 1, 0600, &err), -EISDIR);
	assert_true(file_exists("dir.new"));
	assert_int_equal(mkfifo("pipe.new", 0600), 0);
	alarm(10);
	assert_int_equal(file_stage("pipe", "x", 1, 0600, &err), -ENXIO);
	alarm(0);
	assert_int_equal(file_stage("no/such", "x", 1, 0600, &err), -ENOENT);
	assert_string_equal(err.text, "cannot create 'no/such.new': it does not exist");
}

static void test_commit_fails(void **state)
{
	struct err err = {0};

	assert_int_equal(file_commit("never-staged", &err), -ENOENT);
	assert_string_equal(err.text, "cannot replace 'never-staged': it does not exist");
	assert_int_equal(mkdir("is-folder", 0700), 0);
	assert_int_equal(file_replace("is-folder", "x", 1, 0600, &err), -EISDIR);
	assert_string_equal(err.text, "cannot replace 'is-folder': it is a folder");
	assert_false(file_exists("is-folder.new"));
	assert_true(file_exists("is-folder"));
}

static void replace_for_ever(const char *path, size_t len)
{
	char *text = mem_zalloc(len, 1);

	for (char c = 'a';; c = c == 'z' ? 'a' : (char)(c + 1)) {
		memset(text, c, len);
		file_replace(path, text, len, 0600, NULL);
	}
}

static void test_killed_writer_leaves_a_whole_file(void **state)
{
	enum { LEN = 300000 };
	uint64_t random = 29;

	assert_int_equal(file_replace("whole", "", 0, 0600, NULL), 0);
	for (int i = 0; i < 25; i++) {
		CLEANUP_FREE char *text = NULL;
		size_t len, same;
		pid_t writer = fork();

		assert_true(writer >= 0); // kill(-1) would be everybody's end
		if (!writer)
			replace_for_ever("whole", LEN);
		usleep(1000 + unit_below(&random, 20000));
		kill(writer, SIGKILL);
		waitpid(writer, NULL, 0);
		assert_int_equal(file_read("whole", MAX, &text, &len, NULL), 0);
		for (same = 0; same < len && text[same] == text[0]; same++)
			;
		assert_int_equal(same, len);
		assert_true(len == 0 || len == LEN);
	}
}

static void test_mkdirs(void **state)
{
	mode_t mask = umask(077);
	struct err err = {0};

	assert_int_equal(mkdir("there", 0711), 0);
	assert_int_equal(chmod("there", 0711), 0);
	assert_int_equal(file_mkdirs("there//a/b/", 0755, &err), 0);
	assert_int_equal(mode_of("there"), 0711);
	assert_int_equal(mode_of("there/a"), 0755);
	assert_int_equal(mode_of("there/a/b"), 0755);
	assert_int_equal(file_mkdirs("there/a/b", 0700, &err), 0);
	assert_int_equal(mode_of("there/a/b"), 0755);
	assert_int_equal(file_mkdirs("/", 0700, &err), 0);
	assert_int_equal(file_mkdirs("./there/../beside", 0700, &err), 0);
	assert_true(file_exists("beside"));
	write_file("there/file", "", 0);
	assert_int_equal(file_mkdirs("there/file", 0700, &err), -ENOTDIR);
	assert_int_equal(err.kind, ERR_SYSTEM);
	assert_string_equal(err.text, "cannot create the folder 'there/file': not a folder");
	assert_int_equal(file_mkdirs("there/file/x", 0700, &err), -ENOTDIR);
	assert_int_equal(symlink("a", "there/link"), 0);
	assert_int_equal(file_mkdirs("there/link/c", 0700, &err), 0);
	assert_true(file_exists("there/a/c"));
	umask(mask);
}

static void test_remove_tree(void **state)
{
	assert_int_equal(file_mkdirs("tree/a/b/c", 0700, NULL), 0);
	assert_int_equal(file_mkdirs("outside/deep", 0700, NULL), 0);
	write_file("outside/file", "x", 1);
	for (int i = 0; i < 500; i++) {
		CLEANUP_FREE char *name = mem_printf("tree/a/b/%d", i);

		write_file(name, "x", 1);
	}
	assert_int_equal(symlink("../outside", "tree/link"), 0);
	assert_int_equal(symlink("nowhere", "tree/a/dangling"), 0);
	assert_int_equal(mkfifo("tree/a/fifo", 0600), 0);
	write_file("tree/.hidden", "x", 1);
	write_file("tree/..odd", "x", 1);
	assert_int_equal(file_remove_tree("tree/", NULL), 0);
	assert_false(file_exists("tree"));
	assert_true(file_exists("outside/file"));
	assert_true(file_exists("outside/deep"));
	assert_int_equal(file_remove_tree("tree", NULL), 0);
	assert_int_equal(file_remove_tree("no/such/tree", NULL), 0);
}

static void test_remove_tree_refuses(void **state)
{
	struct err err = {0};

	assert_int_equal(file_mkdirs("aim/inner", 0700, NULL), 0);
	assert_int_equal(symlink("aim", "way"), 0);
	write_file("single", "x", 1);
	assert_int_equal(file_remove_tree("way", &err), -ENOTDIR);
	assert_string_equal(err.text, "cannot remove 'way': not a folder");
	assert_int_equal(file_remove_tree("way//", &err), -ENOTDIR);
	assert_true(file_exists("aim/inner"));
	assert_int_equal(file_remove_tree("single", &err), -ENOTDIR);
	assert_true(file_exists("single"));
}

static void test_exists(void **state)
{
	write_file("real", "", 0);
	assert_int_equal(symlink("gone", "hanging"), 0);
	assert_true(file_exists("real"));
	assert_true(file_exists("."));
	assert_false(file_exists("absent"));
	assert_false(file_exists("hanging"));
	assert_false(file_exists("real/x"));
}

static int count_descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static char *folder;
static int descriptors;

static int enter_folder(void **state)
{
	const char *tmp = getenv("TMPDIR");

	folder = mem_printf("%s/weir-test-XXXXXX", tmp ? tmp : "/tmp");
	descriptors = count_descriptors();
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int leave_folder(void **state)
{
	int r;

	r = chdir("/") < 0 || file_remove_tree(folder, NULL) < 0;
	free(folder);
	return r || count_descriptors() != descriptors ? -1 : 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter_folder, leave_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_read),
		TEST(test_read_bound),
		TEST(test_read_refuses_without_waiting),
		TEST(test_read_stream),
		TEST(test_read_absent),
		TEST(test_read_without_a_size),
		TEST(test_read_while_it_grows),
		TEST(test_read_standard_input),
		TEST(test_read_standard_input_bound),
		TEST(test_read_is_interrupted),
		TEST(test_replace),
		TEST(test_stage_then_commit),
		TEST(test_commit_follows_the_folder),
		TEST(test_stage_fails_half_way),
		TEST(test_stage_refuses),
		TEST(test_commit_fails),
		TEST(test_killed_writer_leaves_a_whole_file),
		TEST(test_mkdirs),
		TEST(test_remove_tree),
		TEST(test_remove_tree_refuses),
		TEST(test_exists),
	};

	// The tests replace standard input by a pipe, so it must be open.
	if (fcntl(STDIN_FILENO, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != STDIN_FILENO)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
