# SPDX-License-Identifier: GPL-2.0-or-later
#
# make             build/safescoped
# make unit        build and run the unit tests (UNIT=NAME: only test_NAME)
# make fuzz        build and run each fuzzer, for 20 or 50 s or FUZZ_SECONDS (FUZZ=NAME: only fuzz_NAME)
# make check       as root: what a change needs: unit tests, linters, the live tests' usual cases
# make check-all   as root: everything but other GHCs, other kernels and the packages
# make faults      as root: sessions, replays and logs in which allocations and system calls fail, one at a time
#                  (FAULTS_SECONDS for each kind of session; FAULTS=all: every single call)
# make check-hostile  as root: attacks by other users, in tests/hostile
# make check-ghc   as root: live tests against other GHCs, in roots that are made for them
#                  (GHC_SUITES: the Debian releases, trixie and sid)
# make check-vm    the live tests' core on other kernels, in virtual machines (VM_KERNELS: 6.1 6.12)
# make lint        format, tidy (both clang), cppcheck, shellcheck, pylint, mandoc, rooms (LINTERS="NAME…": only these)
# make install     PREFIX (/usr/local), SYSCONFDIR (/etc), DESTDIR: the program, its manual page, completions,
#                  unit for systemd, schema and example of a configuration
# make uninstall   the same, removed
# make check-packages  as root: the packages, built, checked, and used in clean roots (DEB_SUITES)
#
# SANITIZE=1 builds with address and undefined-behaviour sanitizers, in build/sanitize.
# V=1 shows the commands. CC chooses the compiler of the user side (gcc, clang).
# Nothing here needs the network; scripts/install-deps brings what is missing.

ifeq ($(origin CC),default)
CC := gcc
endif
AR ?= ar
CAPSTONE ?= -lcapstone
BPF_CLANG ?= clang
# Debian keeps bpftool in sbin, which is not on every user's path; Ubuntu's is a wrapper that
# fails where the running kernel's own package is missing. (The exit status of 0 keeps make from stopping
# at the first one that is not found.)
BPFTOOL ?= $(firstword $(shell for t in bpftool /usr/sbin/bpftool /usr/lib/linux-tools*/*/bpftool; \
	do $$t version >/dev/null 2>&1 && echo $$t; done; exit 0) bpftool)
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
UNITDIR ?= $(PREFIX)/lib/systemd/system
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
DEB_SUITES ?= bookworm trixie
GHC_SUITES ?= trixie sid
VM_KERNELS ?= 6.1 6.12
UNIT ?= *
FUZZ ?= *

ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-8s %s\n'
endif

BUILD := build
ifeq ($(FUZZING),1)
OUT := $(BUILD)/fuzz
SANITIZERS := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
else ifeq ($(SANITIZE),1)
OUT := $(BUILD)/sanitize
SANITIZERS := -fsanitize=address,undefined -fno-sanitize-recover=undefined
else
OUT := $(BUILD)
SANITIZERS :=
endif

CFLAGS ?= -O2 -g
WARNINGS := -Wall -Wextra -Wshadow -Wvla -Wundef -Werror
INCLUDES := -Ibpf -Iuser -I$(BUILD)/bpf -I$(BUILD)/gen
HARDENING := -fstack-protector-strong -fPIE
ifeq ($(SANITIZERS),)
# Fortified libc calls would bypass the checks of the address sanitizer.
HARDENING += -D_FORTIFY_SOURCE=2
else
# Sanitizers need system calls, memory and ptrace() (for leaks), all of which the daemon gives up.
SANITIZERS += -fno-omit-frame-pointer -DSANITIZED
endif
ALL_CFLAGS := -std=gnu11 -D_GNU_SOURCE $(CFLAGS) $(WARNINGS) $(HARDENING) $(SANITIZERS) $(INCLUDES)
ALL_LDFLAGS := -pie -Wl,-z,relro,-z,now -Wl,--as-needed $(SANITIZERS) $(LDFLAGS)
LIBS := -lbpf -ldw -lelf -lz -lzstd -lcjson $(CAPSTONE) -lprotobuf-c -liberty -lseccomp -lcurl -lsystemd -lmicrohttpd -lm $(LDLIBS)

# Debian keeps <asm/types.h> in the multiarch folder, which clang does not look into for bpf.
BPF_CFLAGS := -target bpf -mcpu=v3 -g -O2 -Wall -Werror -D__TARGET_ARCH_x86 -Ibpf \
	-idirafter /usr/include/x86_64-linux-gnu

MAIN := user/cli/main.c
# A room may have folders (user/export has one for each large format).
LIB_SRCS := $(filter-out $(MAIN),$(wildcard user/*/*.c user/*/*/*.c))
PROTOS := $(wildcard user/*/*.proto user/*/*/*.proto)
PROTO_NAMES := $(basename $(notdir $(PROTOS)))
LIB_OBJS := $(LIB_SRCS:%.c=$(OUT)/obj/%.o) $(PROTO_NAMES:%=$(OUT)/obj/gen/%.pb-c.o)
MAIN_OBJ := $(MAIN:%.c=$(OUT)/obj/%.o)
LIB := $(OUT)/libsafescoped.a
PROGRAM := $(OUT)/safescoped
BPF_SRC := bpf/safescope.bpf.c
BPF_OBJ := $(BUILD)/bpf/safescope.bpf.o
BPF_LINKED := $(BUILD)/bpf/safescope.linked.o
SKEL := $(BUILD)/bpf/safescope.skel.h
UNIT_BINS := $(patsubst tests/unit/%.c,$(OUT)/unit/%,$(wildcard tests/unit/test_$(UNIT).c))
FUZZ_BINS := $(patsubst tests/fuzz/%.c,$(OUT)/bin/%,$(wildcard tests/fuzz/fuzz_$(FUZZ).c))

.PHONY: all archive bpf unit unit-bins fuzz fuzz-bins faults faults-bins check check-all check-hostile check-ghc check-vm check-packages lint install uninstall clean FORCE
.DELETE_ON_ERROR:
.SUFFIXES:

all: $(PROGRAM)
archive: $(LIB)
bpf: $(SKEL)

# Rewritten only when the flags change, so that a change of CC or CFLAGS rebuilds.
$(OUT)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(subst ','\'',$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(LIBS))' | cmp -s - $@ || \
		echo '$(subst ','\'',$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(LIBS))' > $@

# ── the kernel side ──

$(BPF_OBJ): $(BPF_SRC) Makefile
	@mkdir -p $(@D)
	$(say) BPF $@
	$(Q)$(BPF_CLANG) $(BPF_CFLAGS) -MMD -MP -MF $@.d -c $< -o $@

$(BPF_LINKED): $(BPF_OBJ)
	$(say) BPFLINK $@
	$(Q)$(BPFTOOL) gen object $@ $<

$(SKEL): $(BPF_LINKED)
	$(say) SKEL $@
	$(Q){ echo '/* NOLINTBEGIN */' && $(BPFTOOL) gen skeleton $< name safescope_bpf && \
		echo '/* NOLINTEND */'; } > $@

# ── the user side ──

# The names of system calls, from the kernel's own header.
SYSCALLS := $(BUILD)/gen/syscall_names.h
$(SYSCALLS): Makefile
	@mkdir -p $(@D)
	$(say) GEN $@
	$(Q)echo '#include <asm/unistd_64.h>' | $(CC) -E -dM - | \
		sed -n 's/^#define __NR_\([a-z0-9_]*\) \([0-9][0-9]*\)$$/[\2] = "\1",/p' | LC_ALL=C sort > $@
	$(Q)test -s $@

$(OUT)/obj/user/lanes/off.o: | $(SYSCALLS)

# The skeleton is generated: the files that may include it wait for it.
$(filter $(OUT)/obj/user/kernel/%,$(LIB_OBJS)): $(if $(wildcard $(BPF_SRC)),| $(SKEL))

# The messages of formats and protocols, by protobuf-c's compiler.
vpath %.proto $(sort $(dir $(PROTOS)))
$(BUILD)/gen/%.pb-c.c $(BUILD)/gen/%.pb-c.h: %.proto
	@mkdir -p $(@D)
	$(say) PROTOC $@
	$(Q)protoc-c --proto_path=$(<D) --c_out=$(BUILD)/gen $<

$(OUT)/obj/gen/%.pb-c.o: $(BUILD)/gen/%.pb-c.c $(OUT)/flags
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

$(filter $(OUT)/obj/user/export/% $(OUT)/obj/user/push/%,$(LIB_OBJS)): | $(PROTO_NAMES:%=$(BUILD)/gen/%.pb-c.h)

$(OUT)/obj/user/export/html/source.o: $(wildcard user/export/html/page/*)

$(OUT)/obj/user/diff/page.o: user/diff/page.css user/diff/page.js

$(OUT)/obj/%.o: %.c $(OUT)/flags
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

# Removed first: ar would keep members whose source is gone.
$(LIB): $(LIB_OBJS) $(OUT)/flags
	@mkdir -p $(@D)
	$(say) AR $@
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $(LIB_OBJS)

$(PROGRAM): $(MAIN_OBJ) $(LIB)
	$(say) LINK $@
	$(Q)$(CC) $(ALL_LDFLAGS) $(MAIN_OBJ) $(LIB) $(LIBS) -o $@

# ── tests ──

$(OUT)/unit/%: tests/unit/%.c $(LIB)
	@mkdir -p $(@D)
	$(say) UNIT $@
	$(Q)$(CC) $(ALL_CFLAGS) -Itests/unit -MMD -MP -MF $@.d $< $(ALL_LDFLAGS) $(LIB) -lcmocka -ldw $(LIBS) -o $@

unit-bins: $(UNIT_BINS)

unit: unit-bins
	$(Q)tests/run unit $(UNIT_BINS)

# The fuzzers and what they drive are built by clang, whatever CC is; with them the program itself,
# for the live tests under sanitizers.
ifeq ($(FUZZING),1)
$(OUT)/bin/%: tests/fuzz/%.c $(LIB)
	@mkdir -p $(@D)
	$(say) FUZZER $@
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -MF $@.d $< $(ALL_LDFLAGS) -fsanitize=fuzzer $(LIB) $(LIBS) -o $@

fuzz-bins: $(FUZZ_BINS) $(PROGRAM)

# The program with its own allocations redirected to tests/faults/alloc.c; the sanitizer keeps the others.
WRAPPED := malloc calloc realloc strdup strndup asprintf vasprintf open_memstream
$(PROGRAM)-faults: tests/faults/alloc.c $(MAIN_OBJ) $(LIB)
	$(say) LINK $@
	$(Q)$(CC) $(ALL_CFLAGS) -DWRAPPED $(ALL_LDFLAGS) $(WRAPPED:%=-Wl,--wrap=%) $^ $(LIBS) -o $@
else
fuzz-bins:
	$(Q)$(MAKE) --no-print-directory FUZZING=1 CC=clang fuzz-bins
endif

# Makes allocations and system calls of a session fail.
FAULTS_BINS := $(BUILD)/faults/alloc.so $(BUILD)/faults/syscalls
$(BUILD)/faults/alloc.so: tests/faults/alloc.c
	@mkdir -p $(@D)
	$(say) LINK $@
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE $(CFLAGS) $(WARNINGS) -fPIC -shared $< -o $@

$(BUILD)/faults/syscalls: tests/faults/syscalls.c
	@mkdir -p $(@D)
	$(say) LINK $@
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE $(CFLAGS) $(WARNINGS) $< -lseccomp -o $@

faults-bins: $(PROGRAM) $(FAULTS_BINS)
	$(Q)$(MAKE) --no-print-directory FUZZING=1 CC=clang $(BUILD)/fuzz/safescoped-faults

faults: faults-bins
	@if [ "$$(id -u)" != 0 ]; then \
		echo 'make faults: needs root (BPF programs); run: sudo make faults' >&2; exit 1; fi
	$(Q)tests/run faults

fuzz: fuzz-bins
	$(Q)tests/run fuzz \
		$(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/bin/%,$(wildcard tests/fuzz/fuzz_$(FUZZ).c))

# As many jobs as there are processors, unless make was given a number.
PARALLEL = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

check check-all:
	@if [ "$$(id -u)" != 0 ]; then \
		echo 'make $@: needs root (it loads BPF programs and profiles live processes);' \
			'run: sudo make $@' >&2; exit 1; fi
	$(Q)scripts/install-deps --test
	$(Q)$(MAKE) --no-print-directory $(PARALLEL) all
	$(Q)tests/run $(if $(filter check,$@),quick)

check-hostile:
	@if [ "$$(id -u)" != 0 ]; then \
		echo 'make check-hostile: needs root (BPF programs, mounts); run: sudo make check-hostile' >&2; exit 1; fi
	$(Q)scripts/install-deps --test
	$(Q)$(MAKE) --no-print-directory $(PARALLEL) all
	$(Q)tests/run hostile

check-ghc:
	@if [ "$$(id -u)" != 0 ]; then \
		echo 'make check-ghc: needs root (chroot, BPF programs); run: sudo make check-ghc' >&2; exit 1; fi
	$(Q)scripts/install-deps --test
	$(Q)scripts/install-deps --roots || echo 'make check-ghc: WARNING: going on without debootstrap' >&2
	$(Q)$(MAKE) --no-print-directory $(PARALLEL) all
	$(Q)tests/run ghc $(GHC_SUITES)

check-packages:
	@if [ "$$(id -u)" != 0 ]; then \
		echo 'make check-packages: needs root (chroot, BPF programs); run: sudo make check-packages' >&2; exit 1; fi
	$(Q)scripts/install-deps --test --packages
	$(Q)$(MAKE) --no-print-directory $(PARALLEL) all
	$(Q)DEB_SUITES='$(DEB_SUITES)' tests/run packages

# Needs no privileges, except to install what is missing.
check-vm:
	$(Q)scripts/install-deps --test --vm
	$(Q)$(MAKE) --no-print-directory $(PARALLEL) all
	$(Q)tests/run vm $(VM_KERNELS)

# ── the rest ──

# For tests/live/test_archives.py.
$(BUILD)/tools/by_archive: tests/live/by_archive.c $(LIB)
	@mkdir -p $(@D)
	$(say) LINK $@
	$(Q)$(CC) $(ALL_CFLAGS) $< $(ALL_LDFLAGS) $(LIB) $(LIBS) -o $@

# For scripts/bench page and names.
$(BUILD)/bench/page $(BUILD)/bench/names: $(BUILD)/bench/%: scripts/benchmarks/%.c $(LIB)
	@mkdir -p $(@D)
	$(say) LINK $@
	$(Q)$(CC) $(ALL_CFLAGS) $< $(ALL_LDFLAGS) $(LIB) $(LIBS) -o $@

# Generated files count as system headers, so that the checkers do not report them.
lint: $(if $(wildcard $(BPF_SRC)),$(SKEL)) $(PROTO_NAMES:%=$(BUILD)/gen/%.pb-c.h) $(SYSCALLS)
	$(Q)BPF_FLAGS='$(BPF_CFLAGS)' \
		USER_FLAGS='-std=gnu11 -D_GNU_SOURCE $(subst -I$(BUILD)/,-isystem $(BUILD)/,$(INCLUDES)) -Itests/unit' \
		tests/lint/run $(LINTERS)

# Generated by the program itself, from its table of options.
COMPLETIONS := $(OUT)/gen/completion.bash $(OUT)/gen/completion.zsh
$(OUT)/gen/completion.%: $(PROGRAM)
	@mkdir -p $(@D)
	$(say) GEN $@
	$(Q)$(PROGRAM) --completion $* > $@

# The unit has Debian's paths, which are replaced by those of this installation.
$(OUT)/gen/safescoped.service: scripts/safescoped.service FORCE
	@mkdir -p $(@D)
	$(Q)sed 's|/usr/bin/|$(PREFIX)/bin/|; s|/etc/safescoped|$(SYSCONFDIR)/safescoped|' $< > $@

# FROM:MODE:TO
INSTALLED := \
	$(PROGRAM):0755:$(PREFIX)/bin/safescoped \
	scripts/safescoped.8:0644:$(PREFIX)/share/man/man8/safescoped.8 \
	scripts/safescoped.schema.json:0644:$(PREFIX)/share/safescoped/safescoped.schema.json \
	scripts/safescoped.conf:0644:$(PREFIX)/share/doc/safescoped/examples/safescoped.conf \
	$(OUT)/gen/safescoped.service:0644:$(UNITDIR)/safescoped.service \
	$(OUT)/gen/completion.bash:0644:$(BASHDIR)/safescoped \
	$(OUT)/gen/completion.zsh:0644:$(ZSHDIR)/_safescoped

CONFIG := $(DESTDIR)$(SYSCONFDIR)/safescoped.conf

# An existing configuration belongs to its owner and is kept.
install: $(PROGRAM) $(COMPLETIONS) $(OUT)/gen/safescoped.service
	$(Q)for f in $(INSTALLED); do \
		to="$(DESTDIR)$${f##*:}" from="$${f%%:*}" mode="$${f#*:}"; \
		echo "  INSTALL  $$to"; \
		install -D -m "$${mode%%:*}" "$$from" "$$to" || exit 1; \
	done
	$(Q)[ -e "$(CONFIG)" ] || install -D -m 0644 scripts/safescoped.conf "$(CONFIG)"

# A changed configuration is kept.
uninstall:
	$(Q)for f in $(INSTALLED); do rm -f "$(DESTDIR)$${f##*:}"; done
	$(Q)rmdir "$(DESTDIR)$(PREFIX)/share/safescoped" "$(DESTDIR)$(PREFIX)/share/doc/safescoped/examples" \
		"$(DESTDIR)$(PREFIX)/share/doc/safescoped" 2>/dev/null || :
	$(Q)if cmp -s scripts/safescoped.conf "$(CONFIG)"; then rm "$(CONFIG)"; fi

# build/npm stays: it came over the network.
clean:
	$(Q)! [ -d $(BUILD) ] || find $(BUILD) -mindepth 1 -maxdepth 1 ! -name npm -exec rm -rf {} +

FORCE:

# Kept: they are made by pattern rules.
.SECONDARY: $(PROTO_NAMES:%=$(BUILD)/gen/%.pb-c.c)

-include $(LIB_OBJS:.o=.d) $(MAIN_OBJ:.o=.d) $(BPF_OBJ).d $(UNIT_BINS:=.d) $(FUZZ_BINS:=.d)
