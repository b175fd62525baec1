# SPDX-License-Identifier: GPL-2.0-only
# make all demo test lint bench vmtest containers pagetest faults connections soak sabotage fuzz compile_commands.json install deb clean help; O=build: where it lands, V=1: every command.

# ARCH=arm64: for another machine than this, by Debian's name. Its headers and libraries are in a folder that
# scripts/sysroot makes when the first file is compiled; or name one: SYSROOT=FOLDER.
HERE := $(patsubst aarch64,arm64,$(patsubst x86_64,amd64,$(shell uname -m)))
ARCH ?= $(HERE)
SYSROOT ?=
ifneq ($(ARCH),$(HERE))
$(if $(filter arm64,$(ARCH)),,$(error ARCH=$(ARCH): Weir is built for $(HERE) here, and for arm64))
O ?= build/$(ARCH)
CC = aarch64-linux-gnu-gcc
ifeq ($(SYSROOT),)
SYSROOT = $(eval SYSROOT := $(or $(shell scripts/sysroot $(ARCH)),$(error no headers and libraries for $(ARCH))))$(SYSROOT)
endif
endif

O ?= build
CC ?= gcc
# The machine that the program is for, as `uname -m` has it there.
TRIPLET := $(or $(shell $(CC) -dumpmachine 2>/dev/null),$(patsubst amd64,x86_64,$(patsubst arm64,aarch64,$(ARCH)))-linux-gnu)
MACHINE := $(firstword $(subst -, ,$(TRIPLET)))
CROSS := $(if $(filter $(MACHINE),$(shell uname -m)),,$(TRIPLET)-)
ifeq ($(origin AR),default)
AR = $(CROSS)ar
endif
STRIP ?= $(CROSS)strip
CLANG ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /usr/local/sbin/bpftool) bpftool)
PYTHON = /usr/bin/python3
PREFIX ?= /usr/local
DESTDIR ?=
UNIT_FOLDER ?= $(PREFIX)/lib/systemd/system
BASH_COMPLETIONS ?= $(PREFIX)/share/bash-completion/completions
ZSH_COMPLETIONS ?= $(PREFIX)/share/zsh/$(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)

Q = $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-8s %s\n' $(1) $(2);)

# What a later compiler warns of is no reason not to build: only WERROR=1, as in .ci/run, makes warnings errors.
WERROR_FLAG = $(if $(filter 1,$(WERROR)),-Werror)
WARNINGS = -Wall -Wextra -Wno-unused-parameter -Wconversion -Wmissing-prototypes -Wshadow $(WERROR_FLAG)
POISON = -include ctl/base/poison.h
CFLAGS ?= -O2 -g
# Said here, whatever the compiler's own defaults are; tests/lab/test_build.py looks for them in the program.
# FORTIFY wants -O and no sanitizer; -U first, for distributions that define it themselves.
FORTIFY = -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
HARDEN = -fPIE -fstack-protector-strong -fstack-clash-protection $(if $(filter x86_64,$(MACHINE)),-fcf-protection) $(if $(filter aarch64,$(MACHINE)),-mbranch-protection=standard)
ROOTED = $(if $(SYSROOT),--sysroot=$(SYSROOT))
HARDEN_LINK = $(ROOTED) -pie -Wl,-z,relro,-z,now
# Two folders make the same program: scripts/reproducible.
FOLDERS = -ffile-prefix-map=$(CURDIR)=. $(if $(filter build,$(O)),,-ffile-prefix-map=$(O)=build)
ALL_CFLAGS = $(ROOTED) -std=gnu11 -D_GNU_SOURCE $(WARNINGS) $(POISON) $(HARDEN) -I. -isystem $(O) $(CFLAGS) $(FOLDERS)
BPF_CFLAGS = -target bpf -mcpu=v3 -std=gnu11 -O2 -g -Wall -Wextra -Wno-unused-parameter \
	     -Werror=implicit-function-declaration $(WERROR_FLAG) -I. $(FOLDERS) \
	     -D__TARGET_ARCH_$(patsubst aarch64,arm64,$(patsubst x86_64,x86,$(MACHINE))) \
	     $(ROOTED) -idirafter $(SYSROOT)/usr/include/$(MACHINE)-linux-gnu
# No map without its checks.
XDP_CFLAGS = $(BPF_CFLAGS) -include xdp/lpm.bpf.h
LIBS = -lxdp -lbpf -lelf -lmnl -lcares -ljansson -lz -levent_extra -levent_core -lmaxminddb -lm

BPF_OBJECTS = $(patsubst xdp/%.bpf.c,$(O)/xdp/%.bpf.o,$(wildcard xdp/*.bpf.c))
SKELETONS = $(BPF_OBJECTS:.bpf.o=.skel.h)
ROOM_SOURCES = $(wildcard ctl/*/*.c ctl/control/entries/*.c)
SOURCES = $(ROOM_SOURCES) ctl/main.c
ROOMS = $(ROOM_SOURCES:%.c=$(O)/%.o)
# -Og and lines without variables: half of the time of the compiler, and reports name the same lines.
SANITIZE = -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -Og -g1

UNIT_SOURCES = $(wildcard tests/unit/*/test_*.c)
UNIT = $(UNIT_SOURCES:%.c=$(O)/%)
UNIT_ASAN = $(UNIT_SOURCES:%.c=$(O)/asan/%)
# What only prints results is compiled once: of ctl/cmd only the modules with unit tests are sanitized.
PLAIN_COMMANDS = $(filter-out $(patsubst tests/unit/%.c,ctl/%.c,$(subst /test_,/,$(UNIT_SOURCES))),$(filter ctl/cmd/%,$(ROOM_SOURCES)))
ASAN_ROOMS = $(patsubst %.c,$(O)/asan/%.o,$(filter-out $(PLAIN_COMMANDS),$(ROOM_SOURCES)))
DATAPATH_TESTS = $(wildcard tests/datapath/*.c)
RUNNERS = $(O)/tests/datapath/run $(O)/tests/datapath/cases.txt
UNITS = weir@.service weir-restore@.service
COMPLETIONS = $(O)/completion/bash $(O)/completion/zsh
MAN = $(patsubst docs/%.scd,$(O)/docs/%,$(wildcard docs/*.scd))

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all demo test check tests vm-programs lint bench vmtest containers pagetest faults connections soak sabotage fuzz fuzz-targets install uninstall deb clean help setup compile_commands.json

# The skeletons first: compiling the largest program takes longest.
all: $(SKELETONS) $(O)/weir $(MAN)

help:
	@echo 'make            build $(O)/weir and the man pages'
	@echo 'make demo       install what is missing, build, and block a host on a lab network (root)'
	@echo 'make test       install what is missing, build, run every test (root)'
	@echo 'make lint       layers, names, words, sizes, format, static analysis'
	@echo 'make bench      Weir and its peers, nanoseconds a packet, a few minutes (root); ROWS= ROUNDS= KATRAN='
	@echo 'make vmtest     the datapath and attach on other kernels, under qemu (root for kernel packages)'
	@echo 'make containers  the package in containers, and beside Docker (root)'
	@echo 'make pagetest   the page of weir page in a browser; PICTURES=FOLDER keeps what it looks like (root)'
	@echo 'make faults     every fault in every call of the changing commands (root, an hour)'
	@echo 'make connections  500 downloads through every change of a pool, floods, large transfers (root, ten minutes)'
	@echo 'make soak T=60  the agent under load and hostile clients, for T seconds or ten minutes (root)'
	@echo 'make sabotage   defects in the datapath and its tables, each of which a test must find (root, minutes)'
	@echo 'make fuzz T=60  fuzz each parser, and packets (root), for T seconds each'
	@echo 'make compile_commands.json  how each C file is compiled, for editors and clangd'
	@echo 'make install    PREFIX=$(PREFIX) DESTDIR='
	@echo 'make deb        the Debian package, its programs tested (root), checked by lintian, in $(O)/deb'
	@echo 'make ARCH=arm64  for another machine, in build/arm64; also make deb'
	@echo 'make clean      remove $(O)'

# The datapath

# bpf FLAGS. The linker leaves out what debuggers want, half of the object, and keeps types and lines (BTF).
define bpf
	@mkdir -p $(@D)
	$(call say,BPF,$@)$(CLANG) $(1) -MMD -MP -MF $(@:.o=.d) -MT $@ -c -o $@.debug $<
	$(Q)$(BPFTOOL) gen object $@ $@.debug && rm $@.debug
endef

$(O)/xdp/%.bpf.o: xdp/%.bpf.c
	$(call bpf,$(XDP_CFLAGS))

$(O)/xdp/%.skel.h: $(O)/xdp/%.bpf.o
	$(call say,SKEL,$@)$(BPFTOOL) gen skeleton $< name $*_bpf > $@

# The control utility

$(O)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(ALL_CFLAGS) $(FORTIFY) -MMD -MP -c -o $@ $<

$(O)/asan/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(ALL_CFLAGS) $(SANITIZE) -MMD -MP -c -o $@ $<

# Skeletons count as system headers, which -MMD leaves out: name who includes them. Nothing else waits for them.
WITH_SKELETONS = $(filter ctl/datapath/%,$(ROOM_SOURCES)) $(filter tests/unit/datapath/%,$(UNIT_SOURCES)) $(DATAPATH_TESTS)
$(foreach d,$(O) $(O)/asan $(O)/fuzz,$(WITH_SKELETONS:%.c=$(d)/%.o)): $(SKELETONS)

# The page as bytes.
$(O)/page_text.h: ctl/agent/page.html scripts/page
	@mkdir -p $(@D)
	$(call say,PAGE,$@)scripts/page $< > $@

$(O)/ctl/agent/page.o $(O)/asan/ctl/agent/page.o: $(O)/page_text.h

$(O)/libweir.a: $(ROOMS)
	$(call say,AR,$@)rm -f $@ && $(AR) rcsD $@ $^

$(O)/asan/libweir.a: $(ASAN_ROOMS)
	$(call say,AR,$@)rm -f $@ && $(AR) rcsD $@ $^

$(O)/weir: $(O)/ctl/main.o $(O)/libweir.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(HARDEN_LINK) $(LDFLAGS) -o $@ $^ $(LIBS)

$(O)/asan/weir: $(O)/asan/ctl/main.o $(PLAIN_COMMANDS:%.c=$(O)/%.o) $(O)/asan/libweir.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(SANITIZE) $(HARDEN_LINK) $(LDFLAGS) -o $@ $^ $(LIBS)

$(O)/docs/%: docs/%.scd
	@mkdir -p $(@D)
	$(call say,MAN,$@)scdoc < $< > $@

# A program that runs on this machine prints the table of commands.
RUNS_HERE = $(O)/$(if $(CROSS),here/)weir

$(O)/completion/%: scripts/completion $(RUNS_HERE)
	@mkdir -p $(@D)
	$(call say,SHELL,$@)$(PYTHON) -B $< $* $(RUNS_HERE) > $@

ifneq ($(CROSS),)
$(RUNS_HERE): $(O)/weir
	$(Q)$(MAKE) --no-print-directory ARCH=$(HERE) SYSROOT= CC=gcc AR=ar CFLAGS=-O1 LDFLAGS= O=$(O)/here $@
endif

# Tests

# cmocka 2 warns of names for which cmocka 1 has no other.
$(O)/tests/unit/%.o $(O)/asan/tests/unit/%.o: ALL_CFLAGS += -DCMOCKA_DISABLE_DEPRECATION_WARNINGS

$(O)/tests/unit/policy/test_rule_text: $(O)/tests/golden/rule-print.o
$(O)/asan/tests/unit/policy/test_rule_text: $(O)/asan/tests/golden/rule-print.o

$(O)/tests/unit/%: $(O)/tests/unit/%.o $(O)/libweir.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(HARDEN_LINK) -o $@ $(filter %.o,$^) $(O)/libweir.a -lcmocka $(LIBS)

$(O)/asan/tests/unit/%: $(O)/asan/tests/unit/%.o $(O)/asan/libweir.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(SANITIZE) $(HARDEN_LINK) -o $@ $(filter %.o,$^) $(O)/asan/libweir.a -lcmocka $(LIBS)

$(O)/tests/datapath/run: $(DATAPATH_TESTS:%.c=$(O)/%.o) $(O)/libweir.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(HARDEN_LINK) -o $@ $^ $(LIBS)

$(O)/tests/datapath/cases.txt: tests/datapath/cases.py $(wildcard tests/datapath/*.py tests/reference/layout.*)
	@mkdir -p $(@D)
	$(call say,CASES,$@)$(PYTHON) -B $< > $@

# The second implementations share no code with the rest, its flags included: without -I. they cannot.
CLASSIFIER = tests/reference/classifier
BALANCER = tests/reference/balancer
REF_CFLAGS = -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Wconversion -Wmissing-prototypes -Wshadow $(WERROR_FLAG)
REF_LIB = format match parse parse_rule parse_set parse_list values lists frame names addr lex file mem
REF_refmatch = refmatch $(REF_LIB)
REF_selftest = selftest $(REF_LIB)
CLASSIFIER_REF = $(addprefix $(O)/$(CLASSIFIER)/,refmatch selftest)

$(CLASSIFIER_REF): $(wildcard $(CLASSIFIER)/*.c $(CLASSIFIER)/*.h) tests/reference/layout.h
	@mkdir -p $(@D)
	$(call say,REF,$@)$(CC) $(REF_CFLAGS) -o $@ $(REF_$(@F):%=$(CLASSIFIER)/%.c)

REF_RING = ring_text ring flow siphash words
REF_refring = refring ring_selftest $(REF_RING)
REF_refslots = refslots slots_selftest check model pins slots $(REF_RING)
REF_refnat = refnat nat_model nat_table nat_packet flow siphash
BALANCER_REF = $(addprefix $(O)/$(BALANCER)/,refring refslots refnat)

$(BALANCER_REF): $(wildcard $(BALANCER)/*.c $(BALANCER)/*.h)
	@mkdir -p $(@D)
	$(call say,REF,$@)$(CC) $(REF_CFLAGS) -o $@ $(REF_$(@F):%=$(BALANCER)/%.c)

# What they are compared with. These do include ctl/.
COMPARE = $(O)/$(CLASSIFIER)/compare $(O)/$(BALANCER)/rings $(O)/$(BALANCER)/histories

$(O)/$(CLASSIFIER)/compare: $(patsubst %,$(O)/$(CLASSIFIER)/%.o,compare answer counted describe output) $(O)/$(BALANCER)/clock.o $(O)/libweir.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(HARDEN_LINK) -o $@ $^ $(LIBS)

$(O)/$(BALANCER)/rings: $(O)/$(BALANCER)/rings.o $(O)/libweir.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(HARDEN_LINK) -o $@ $^ $(LIBS)

# The datapath once more with a clock that histories set; only what loads the policy differs.
CLOCKED_ROOM = $(patsubst %.c,$(O)/clocked/%.o,$(filter ctl/datapath/%,$(ROOM_SOURCES)) $(BALANCER)/clock.c)
HISTORIES = $(CLOCKED_ROOM) $(patsubst %,$(O)/clocked/$(BALANCER)/%.o,histories kernel packet history_words)
LIMITS = $(CLOCKED_ROOM) $(O)/clocked/tests/limits/limits.o $(O)/clocked/tests/datapath/frame.o

# A policy with services in nat and fullnat, and its packets.
NAT_RIG = balance_rig frame nat_packet nat_rig nat_world rig suite
NATREF = $(patsubst %,$(O)/$(BALANCER)/reference/%.o,nat_model nat_table nat_packet flow siphash)
NATS = $(CLOCKED_ROOM) $(patsubst %,$(O)/$(BALANCER)/%.o,nats nats_world) $(patsubst %,$(O)/tests/datapath/%.o,$(NAT_RIG))

$(O)/clocked/xdp/%.bpf.o: xdp/%.bpf.c
	$(call bpf,$(XDP_CFLAGS) -DTEST_CLOCK)

$(O)/clocked/xdp/%.skel.h: $(O)/clocked/xdp/%.bpf.o
	$(call say,SKEL,$@)$(BPFTOOL) gen skeleton $< name $*_bpf > $@

$(NATREF): $(O)/$(BALANCER)/reference/%.o: $(BALANCER)/%.c $(wildcard $(BALANCER)/*.h)
	@mkdir -p $(@D)
	$(call say,REF,$@)$(CC) $(REF_CFLAGS) -c -o $@ $<

$(O)/clocked/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) -isystem $(O)/clocked $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(HISTORIES) $(LIMITS) $(NATS): $(O)/clocked/xdp/policy.skel.h $(SKELETONS)

$(O)/$(BALANCER)/nats: $(NATS) $(NATREF) $(O)/libweir.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(HARDEN_LINK) -o $@ $^ $(LIBS)

$(O)/$(BALANCER)/histories: $(HISTORIES) $(O)/libweir.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) -o $@ $^ $(LIBS)

$(O)/tests/limits/limits: $(LIMITS) $(O)/libweir.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(HARDEN_LINK) -o $@ $^ $(LIBS)

$(O)/tests/golden/policy-run: $(O)/tests/golden/policy-run.o $(O)/tests/golden/policy-print.o $(O)/tests/golden/rule-print.o $(O)/libweir.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(HARDEN_LINK) -o $@ $^ $(LIBS)

$(O)/tests/fuzz/frames: $(O)/tests/fuzz/frames.o $(O)/libweir.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(HARDEN_LINK) -o $@ $^ $(LIBS)

# The parsers under libFuzzer, once more with clang: three rooms, and what the targets need of others. An undefined
# reference names what is missing here.
FUZZ = $(patsubst tests/%.c,$(O)/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_SANITIZE = -fsanitize=address,undefined -fno-sanitize-recover=undefined
FUZZ_CFLAGS = -std=gnu11 -D_GNU_SOURCE -g -O1 -I. -isystem $(O) -fsanitize=fuzzer-no-link $(FUZZ_SANITIZE)
FUZZ_OTHERS = control/changelog_line control/frame control/packet control/sampled_packet control/entries/items control/entries/journal control/entries/journal_index control/quick_list datapath/clock net/capture_file net/dns_hosts net/dns_message net/dns_name net/pcap_calls net/pcapng net/pcapng_notes
FUZZ_ROOMS = $(patsubst %.c,$(O)/fuzz/%.o,$(wildcard ctl/base/*.c ctl/policy/*.c ctl/import/*.c $(FUZZ_OTHERS:%=ctl/%.c)))

$(O)/fuzz/%.o: %.c
	@mkdir -p $(@D)
	$(call say,FUZZ,$@)$(CLANG) $(FUZZ_CFLAGS) -MMD -MP -c -o $@ $<

$(O)/fuzz/libweir.a: $(FUZZ_ROOMS)
	$(call say,AR,$@)rm -f $@ && $(AR) rcsD $@ $^

$(FUZZ): $(O)/fuzz/%: $(O)/fuzz/tests/fuzz/%.o $(O)/fuzz/tests/fuzz/environment.o $(O)/fuzz/libweir.a
	$(call say,LINK,$@)$(CLANG) -fsanitize=fuzzer $(FUZZ_SANITIZE) -o $@ $^ $(LIBS)

fuzz-targets: $(FUZZ) $(O)/tests/fuzz/frames $(O)/$(CLASSIFIER)/compare $(O)/$(CLASSIFIER)/refmatch $(O)/tests/datapath/cases.txt

BENCH_SKELETONS = $(patsubst tests/bench/%.bpf.c,$(O)/tests/bench/%.skel.h,$(wildcard tests/bench/*.bpf.c))
BENCH_OBJECTS = $(patsubst %.c,$(O)/%.o,$(filter-out %.bpf.c,$(wildcard tests/bench/*.c)))

$(O)/tests/bench/%.bpf.o: tests/bench/%.bpf.c
	$(call bpf,$(BPF_CFLAGS))

$(O)/tests/bench/%.skel.h: $(O)/tests/bench/%.bpf.o
	$(call say,SKEL,$@)$(BPFTOOL) gen skeleton $< name $*_bpf > $@

$(BENCH_OBJECTS): $(BENCH_SKELETONS)

$(O)/tests/bench/bench: $(BENCH_OBJECTS) $(O)/libweir.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(HARDEN_LINK) -o $@ $^ $(LIBS)

# KATRAN=FOLDER: its source, of which nothing is kept here. Compiled each time: another folder may be given.
KATRAN_OBJECTS = $(if $(KATRAN),$(O)/tests/bench/katran/ipip.o $(O)/tests/bench/katran/gue.o)
KATRAN_SOURCE = $(KATRAN)/katran/lib/bpf/balancer.bpf.c

$(KATRAN_OBJECTS): $(O)/tests/bench/katran/%.o:
	@mkdir -p $(@D)
	@test -f "$(KATRAN_SOURCE)" || { echo "KATRAN=$(KATRAN) has no katran/lib/bpf/balancer.bpf.c" >&2; exit 1; }
	$(call say,KATRAN,$@)$(CLANG) -target bpf -O2 -g -w -D__KERNEL__ -D__$(shell uname -m)__ $(if $(filter gue,$*),-DGUE_ENCAP) -I"$(KATRAN)" -idirafter /usr/include/$(shell $(CC) -print-multiarch) -c -o $@ "$(KATRAN_SOURCE)"

.PHONY: $(KATRAN_OBJECTS)

# The rows of the bench once more, with an emulator in place of the clock.
EXECUTED_ROWS = $(patsubst %,$(O)/tests/bench/%.o,balance bench draw filter hosts limit overlay policy sets subject subject_floor subject_floor_sets subject_weir tools)
EXECUTED = $(patsubst %.c,$(O)/%.o,$(wildcard tests/executed/*.c))

$(EXECUTED): $(BENCH_SKELETONS)

$(O)/tests/executed/run: $(EXECUTED) $(EXECUTED_ROWS) $(patsubst %,$(O)/tests/datapath/%.o,$(NAT_RIG)) $(O)/libweir.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(HARDEN_LINK) -o $@ $^ $(LIBS)

$(O)/lab/pass.bpf.o: scripts/lab.d/pass.bpf.c
	@mkdir -p $(@D)
	$(call say,BPF,$@)$(CLANG) -O2 -g -Wall -Wextra -target bpf -c -o $@ $<

setup:
	$(Q)scripts/setup build test

# As many compilers as processors, unless the caller has said how many.
side_by_side = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

# What `test` runs, built; the installation may only just have brought the compiler.
check: $(SKELETONS) $(O)/clocked/xdp/policy.skel.h all $(UNIT) $(CLASSIFIER_REF) $(BALANCER_REF) $(COMPARE) $(O)/$(BALANCER)/nats $(O)/tests/limits/limits $(O)/tests/executed/run $(O)/tests/bench/bench $(O)/tests/fuzz/frames $(O)/tests/golden/policy-run $(UNIT_ASAN) $(O)/asan/weir $(RUNNERS) $(O)/lab/pass.bpf.o

# What tests/vm/run takes into machines.
vm-programs: $(O)/weir $(RUNNERS) $(O)/$(CLASSIFIER)/compare $(O)/lab/pass.bpf.o $(patsubst %,$(O)/tests/unit/net/test_%,link lookup neigh nexthop)

# What sudo has built belongs to whoever called it.
give_back = $(if $(SUDO_UID),$(Q)chown -R $(SUDO_UID):$(SUDO_GID) $(O))

test: setup
	$(Q)$(MAKE) --no-print-directory $(side_by_side) O=$(O) check
	$(give_back)
	$(Q)O=$(O) $(PYTHON) tests/run

demo: setup
	$(Q)$(MAKE) --no-print-directory $(side_by_side) O=$(O) all $(O)/lab/pass.bpf.o
	$(give_back)
	$(Q)O=$(O) WEIR=$(O)/weir scripts/demo

vmtest: setup
	$(Q)scripts/setup vm
	$(Q)$(MAKE) --no-print-directory $(side_by_side) O=$(O) check
	$(Q)O=$(O) tests/vm/run

# The package in an image, in containers of podman, and beside Docker.
containers: deb
	$(Q)scripts/setup container
	$(Q)O=$(O) scripts/image
	$(Q)O=$(O) $(PYTHON) -m pytest -q -p no:cacheprovider $(if $(K),-k '$(K)') tests/containers

pagetest: setup
	$(Q)scripts/setup page
	$(Q)$(MAKE) --no-print-directory $(side_by_side) O=$(O) all
	$(give_back)
	$(Q)O=$(O) PICTURES=$(PICTURES) $(PYTHON) -m pytest -q -p no:cacheprovider $(if $(K),-k '$(K)') tests/page

# KINDS='KILL ENOMEM' injects those alone; K=detach runs the tests of that name.
faults: setup
	$(Q)$(MAKE) --no-print-directory $(side_by_side) O=$(O) all
	$(give_back)
	$(Q)O=$(O) FAULTS=all KINDS='$(KINDS)' $(PYTHON) -m pytest -q -p no:cacheprovider $(if $(K),-k '$(K)') tests/faults

# The full form of two parts of make test: connections while a pool changes, with figures, and a million packets of
# random histories against the model. K= selects tests of the first, as above; MODE=nat or fullnat those of this mode.
connections: setup
	$(Q)$(MAKE) --no-print-directory $(side_by_side) O=$(O) check
	$(give_back)
	$(Q)O=$(O) BALANCE=full MODE=$(MODE) $(PYTHON) -m pytest -q -s -p no:cacheprovider $(if $(K),-k '$(K)') $(wildcard tests/lab/test_balance_$(if $(MODE),nat,*).py)
	$(if $(K)$(MODE),,$(Q)O=$(O) $(BALANCER)/histories-run --full)

# The agent under load and hostile clients while Prometheus scrapes it, for T seconds, with figures.
soak: setup
	$(Q)$(MAKE) --no-print-directory $(side_by_side) O=$(O) check
	$(give_back)
	$(Q)O=$(O) SOAK_S=$(or $(T),600) $(PYTHON) -m pytest -q -s -p no:cacheprovider tests/lab/test_soak.py

# K=WORD: those with WORD in their name or file.
sabotage: setup
	$(Q)$(MAKE) --no-print-directory $(side_by_side) O=$(O) check
	$(Q)O=$(O) tests/sabotage/run $(K)

bench:
	$(Q)scripts/setup build bench
	$(Q)$(MAKE) --no-print-directory $(side_by_side) O=$(O) all $(O)/tests/bench/bench $(KATRAN_OBJECTS)
	$(give_back)
	$(Q)$(O)/tests/bench/bench -o $(O)/bench.json -w $(O)/weir $(if $(ROUNDS),-r $(ROUNDS)) $(if $(KATRAN),-k $(O)/tests/bench/katran) $(ROWS)
	$(give_back)

lint: setup
	$(Q)$(MAKE) --no-print-directory $(side_by_side) O=$(O) $(SKELETONS) $(O)/page_text.h
	$(Q)O=$(O) scripts/lint

compile_commands.json:
	$(Q)$(MAKE) --no-print-directory -nB V=1 O=$(O) check fuzz-targets $(O)/tests/bench/bench | scripts/compile-commands > $@

fuzz: setup
	$(Q)$(MAKE) --no-print-directory $(side_by_side) O=$(O) fuzz-targets
	$(Q)O=$(O) scripts/fuzz $(T)

install: all $(COMPLETIONS)
	install -s $(if $(CROSS),--strip-program=$(STRIP)) -D -m 755 $(O)/weir $(DESTDIR)$(PREFIX)/sbin/weir
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/weir/fail2ban contrib/fail2ban/weir.conf contrib/fail2ban/weir-port.conf
	install -D -m 755 contrib/crowdsec/weir-crowdsec $(DESTDIR)$(PREFIX)/share/weir/crowdsec/weir-crowdsec
	for page in $(MAN); do install -D -m 644 $$page $(DESTDIR)$(PREFIX)/share/man/man$${page##*.}/$${page##*/} || exit 1; done
	install -D -m 644 $(O)/completion/bash $(DESTDIR)$(BASH_COMPLETIONS)/weir
	install -D -m 644 $(O)/completion/zsh $(DESTDIR)$(ZSH_COMPLETIONS)/_weir
	install -d $(DESTDIR)$(UNIT_FOLDER)
	for unit in $(UNITS); do scripts/unit $(PREFIX)/sbin $$unit > $(DESTDIR)$(UNIT_FOLDER)/$$unit || exit 1; done

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/sbin/weir $(DESTDIR)$(PREFIX)/share/weir/fail2ban/weir.conf $(DESTDIR)$(PREFIX)/share/weir/fail2ban/weir-port.conf
	rm -f $(DESTDIR)$(PREFIX)/share/weir/crowdsec/weir-crowdsec
	rm -f $(DESTDIR)$(BASH_COMPLETIONS)/weir $(DESTDIR)$(ZSH_COMPLETIONS)/_weir
	for page in $(MAN); do rm -f $(DESTDIR)$(PREFIX)/share/man/man$${page##*.}/$${page##*/}; done
	for unit in $(UNITS); do rm -f $(DESTDIR)$(UNIT_FOLDER)/$$unit; done

deb:
	$(Q)scripts/setup build deb $(if $(CROSS),cross)
	$(Q)O=$(O) $(if $(CROSS),ARCH=$(ARCH)) scripts/deb
	$(give_back)

clean:
	rm -rf $(O)

-include $(shell find $(O) -path $(O)/image -prune -o -type f -name '*.d' -print 2>/dev/null)
