# postern: build, test, install. "make help" lists the targets.
#
# Variants are folders: plain goes to build/, SAN=asan|tsan|cov|fuzz to build/$(SAN)/; none pollutes another.
# CC, CFLAGS, CPPFLAGS, LDFLAGS, PREFIX, DESTDIR are yours and never appended to.

SAN ?= none
BUILD ?= $(if $(filter none,$(SAN)),build,build/$(SAN))
PREFIX ?= /usr/local
CC = gcc
CFLAGS ?= -O2 -g
WERROR ?= 1
PYTHON ?= /usr/bin/python3
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
Q := $(if $(V),,@)
VERSION := 0.1.0
REVISION := $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)

.DELETE_ON_ERROR:
.PHONY: all help deps deps-test run test test-unit test-cases test-box test-gateways test-fuzz test-install lint bench \
	install uninstall dist clean format

all: $(BUILD)/postern ## build build/postern

# ---------------------------------------------------------------------------------------------------- packages

DEPS = gcc libc6-dev make pkg-config libjansson-dev libsodium-dev libnghttp2-dev \
	libprotobuf-c-dev protobuf-c-compiler
DEPS_TEST = $(DEPS) libmicrohttpd-dev libcmocka-dev python3 python3-venv python3-pytest python3-grpcio python3-protobuf nghttp2-client curl git \
	binutils universal-ctags

deps: ## install the Debian packages that building needs: see DEPS above
	$(Q)$(SUDO) apt-get update -qq
	$(Q)$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(DEPS)

deps-test: ## ... and those that testing needs; gateways are unpacked into build/tools, never installed
	$(Q)$(SUDO) apt-get update -qq
	$(Q)$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(DEPS_TEST)
	$(Q)tests/tools.sh fetch

# ---------------------------------------------------------------------------------------------------- flags

PKGS = jansson libsodium libnghttp2 libprotobuf-c

# Not for goals that build nothing themselves: deps must be able to run before the libraries are there, and run and
# test call make again for the build, which then finds what deps has installed.
ifneq ($(or $(if $(MAKECMDGOALS),,all),$(filter-out help deps deps-test run test lint bench clean format dist,$(MAKECMDGOALS))),)
ifneq ($(shell pkg-config --exists $(PKGS) 2>/dev/null && echo yes),yes)
$(error missing libraries; "make deps" installs them: $(PKGS))
endif
LIBS := $(shell pkg-config --libs $(PKGS))
endif

STD = -std=c11 -D_GNU_SOURCE -Ilib -Iapi -I$(BUILD)/gen -DPOSTERN_VERSION='"$(VERSION)"' -pthread
WARN = -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef -Wformat=2 \
	$(if $(filter 1,$(WERROR)),-Werror)
HARDEN = -fstack-protector-strong -fPIE $(if $(findstring -O0,$(CFLAGS)),,-D_FORTIFY_SOURCE=2)
HARDEN_LD = -pie -Wl,-z,relro,-z,now
SAN_none = $(HARDEN)
SAN_LD_none = $(HARDEN_LD)
SAN_asan = -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
SAN_LD_asan = $(SAN_asan)
SAN_tsan = -fsanitize=thread
SAN_LD_tsan = $(SAN_tsan)
SAN_cov = --coverage -O0
SAN_LD_cov = --coverage
SAN_fuzz = -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
SAN_LD_fuzz = -fsanitize=address,undefined
ifeq ($(SAN),fuzz)
CC = clang
endif
ifeq ($(origin SAN_$(SAN)),undefined)
$(error SAN must be none, asan, tsan, cov or fuzz, not "$(SAN)")
endif

# Decisions cross many small files: inlining across them saves a fifth of one (make bench). Objects hold machine code too, for
# the tests, which link without it in a fraction of the time, and for lint.
LTO := $(if $(filter none,$(SAN)),$(if $(findstring clang,$(CC)),,-flto=auto -ffat-lto-objects))

COMPILE = $(CC) $(STD) $(WARN) $(SAN_$(SAN)) $(LTO) $(CPPFLAGS) $(CFLAGS) -MMD -MP
LINK = $(CC) -pthread $(SAN_LD_$(SAN)) $(CFLAGS) $(LDFLAGS)

# ---------------------------------------------------------------------------------------------------- objects

LIB_C := $(wildcard lib/*/*.c)
CMD_C := $(wildcard cmd/postern/*.c)
UNIT_C := $(wildcard tests/unit/test_*.c)
BENCH_C := $(wildcard tests/bench/bench_*.c)
FUZZ_C := $(wildcard tests/fuzz/fuzz_*.c)
TEST_LIB_C := $(wildcard tests/support/*.c)
obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
UNIT := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(UNIT_C))
BENCH := $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(BENCH_C))
FUZZ := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(FUZZ_C))
PROTO := $(shell cd api/proto && find . -name '*.proto' | sed 's,^\./,,' | sort)
# v1alpha is read with the types of v1.
PROTO_C := $(filter-out grpc/reflection/v1alpha/%,$(PROTO))
PROTO_O := $(PROTO_C:%.proto=$(BUILD)/obj/gen/%.pb-c.o)
OBJS := $(call obj,$(LIB_C) $(CMD_C) $(UNIT_C) $(BENCH_C) $(FUZZ_C) $(TEST_LIB_C))

.SECONDARY: $(OBJS) $(PROTO_O) $(PROTO_C:%.proto=$(BUILD)/gen/%.pb-c.c)

# Rewritten only when the command line changes, so a change of flags rebuilds everything and a repeat nothing.
FLAGS_TEXT = $(COMPILE) | $(LINK)
$(BUILD)/flags: FORCE
	$(Q)mkdir -p $(@D)
	$(Q)echo '$(subst ','"'"',$(FLAGS_TEXT))' | cmp -s - $@ || echo '$(subst ','"'"',$(FLAGS_TEXT))' > $@
.PHONY: FORCE
FORCE:

# The revision is known to one file only, so that a commit does not rebuild the rest.
$(BUILD)/gen/revision.h: FORCE
	$(Q)mkdir -p $(@D)
	$(Q)echo '#define POSTERN_REVISION "$(REVISION)"' | cmp -s - $@ || echo '#define POSTERN_REVISION "$(REVISION)"' > $@

# Messages and their descriptors, never in the tree. The compiler writes many files at once, hence the one that stands for all.
$(BUILD)/gen/proto: $(PROTO:%=api/proto/%)
	@echo "  PROTO   api/proto"
	$(Q)mkdir -p $(@D)
	$(Q)protoc-c -Iapi/proto --c_out=$(BUILD)/gen $(PROTO_C)
	$(Q)protoc-c -Iapi/proto --descriptor_set_out=$(BUILD)/gen/descriptors $(PROTO)
	$(Q){ echo 'static const unsigned char descriptors[] = {'; \
		od -An -v -tx1 $(BUILD)/gen/descriptors | sed 's/ *\([0-9a-f][0-9a-f]\)/0x\1,/g'; echo '};'; } > $(BUILD)/gen/descriptors.h
	$(Q)touch $@
$(BUILD)/gen/%.pb-c.c $(BUILD)/gen/%.pb-c.h: $(BUILD)/gen/proto ;
$(BUILD)/gen/descriptors.h: $(BUILD)/gen/proto ;

# What others generate is compiled as they wrote it.
$(BUILD)/obj/gen/%.o: $(BUILD)/gen/%.c $(BUILD)/flags
	$(Q)mkdir -p $(@D)
	$(Q)$(COMPILE) -w -c -o $@ $<

$(BUILD)/obj/%.o: %.c $(BUILD)/flags | $(BUILD)/gen/revision.h $(BUILD)/gen/proto
	@echo "  CC      $<"
	$(Q)mkdir -p $(@D)
	$(Q)$(COMPILE) -c -o $@ $<

$(BUILD)/libpostern.a: $(call obj,$(LIB_C)) $(PROTO_O)
	@echo "  AR      $@"
	$(Q)rm -f $@ && ar rcs $@ $^

$(BUILD)/postern: $(call obj,$(CMD_C)) $(BUILD)/libpostern.a
	@echo "  LINK    $@"
	$(Q)$(LINK) $(LTO) -o $@ $^ $(LIBS)

$(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.o $(call obj,$(TEST_LIB_C)) $(BUILD)/libpostern.a
	@echo "  LINK    $@"
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK) -fno-lto $(LINK_$*) -o $@ $^ -lcmocka $(LIBS)

$(BUILD)/bench/%: $(BUILD)/obj/tests/bench/%.o $(BUILD)/libpostern.a
	@echo "  LINK    $@"
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK) $(LTO) -o $@ $^ $(LIBS) $(LIBS_$*)

# With SAN=fuzz libFuzzer brings main; in every other variant a small driver replays the corpus files it is given.
$(BUILD)/fuzz/%: $(BUILD)/obj/tests/fuzz/%.o $(if $(filter fuzz,$(SAN)),,$(BUILD)/obj/tests/fuzz/replay.o) $(BUILD)/libpostern.a
	@echo "  LINK    $@"
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK) -fno-lto $(if $(filter fuzz,$(SAN)),-fsanitize=fuzzer) -o $@ $^ $(LIBS)

# The allocation counter replaces malloc and friends at link time.
# Tables of random traffic must give the same answer in every run, so the keys that a start draws are drawn from a seed.
LINK_test_topology = -Wl,--wrap=digest_random
LINK_test_alloc = -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free

# A yardstick of the benchmark; postern itself does not use it.
LIBS_bench_bare_http = -lmicrohttpd

-include $(OBJS:.o=.d) $(PROTO_O:.o=.d) $(BUILD)/obj/tests/fuzz/replay.d

# ---------------------------------------------------------------------------------------------------- targets

run: $(if $(filter deps deps-test,$(MAKECMDGOALS)),| $(filter deps deps-test,$(MAKECMDGOALS))) ## build, then start postern with no configuration
	$(Q)$(MAKE) --no-print-directory all
	$(Q)exec $(BUILD)/postern serve

test: $(if $(filter deps deps-test,$(MAKECMDGOALS)),| $(filter deps deps-test,$(MAKECMDGOALS))) ## everything below, in this order
	$(Q)$(MAKE) --no-print-directory all
	$(Q)$(MAKE) --no-print-directory $(if $(filter none,$(SAN)),lint)
	$(Q)$(MAKE) --no-print-directory test-unit
	$(Q)$(MAKE) --no-print-directory test-fuzz
	$(Q)$(MAKE) --no-print-directory test-box
	$(Q)$(MAKE) --no-print-directory test-gateways
	$(Q)$(if $(filter none,$(SAN)),$(MAKE) --no-print-directory test-install)
	@echo "all tests passed ($(SAN))"

test-unit: $(UNIT) ## unit tests and tables of cases (cmocka)
	$(Q)set -e; for t in $(UNIT); do echo "  TEST    $$t"; $$t > $$t.log 2>&1 || { cat $$t.log; exit 1; }; \
		grep -E '^(\[  (PASSED|SKIPPED)|TABLE )' $$t.log | sed "s,^,          ,"; done

test-fuzz: $(FUZZ) ## replay of the fuzz corpora
	$(Q)set -e; for f in $(notdir $(FUZZ)); do echo "  REPLAY  $$f"; \
		$(BUILD)/fuzz/$$f $$(ls tests/fuzz/corpus/$$f/* 2>/dev/null) > $(BUILD)/fuzz/$$f.log 2>&1 || \
		{ cat $(BUILD)/fuzz/$$f.log; exit 1; }; done

PYTEST = POSTERN=$(abspath $(BUILD))/postern SAN=$(SAN) PYTHONDONTWRITEBYTECODE=1 $(PYTHON) -m pytest -q -p no:cacheprovider

test-box: $(BUILD)/postern ## the real program on free ports
	$(Q)$(PYTEST) tests/box

test-gateways: $(BUILD)/postern ## real gateways in front; those not present are skipped and said (CI=true: they fail)
	$(Q)$(PYTEST) -rs tests/gateways

test-install: $(BUILD)/postern ## install into a staging folder and run from there
	$(Q)tests/install.sh $(abspath $(BUILD))

lint: ## layers, purity, owners of libraries, limits, tables
	$(Q)$(MAKE) --no-print-directory SAN=none $(if $(filter none,$(SAN)),BUILD=$(BUILD)) all
	$(Q)tests/lint/lint.sh $(if $(filter none,$(SAN)),$(BUILD),build)

bench: ## the rows of the speed table, as ratios in one run
	$(Q)tests/tools.sh fetch bench
	$(Q)$(MAKE) --no-print-directory all bench-programs
	$(Q)tests/bench/grpcpp.sh $(BUILD)
	$(Q)POSTERN=$(abspath $(BUILD))/postern PYTHONDONTWRITEBYTECODE=1 $(PYTHON) tests/bench/bench.py $(BUILD)

.PHONY: bench-programs
bench-programs: $(BENCH)

install: $(BUILD)/postern ## into $(DESTDIR)$(PREFIX)
	install -D -m 755 $(BUILD)/postern $(DESTDIR)$(PREFIX)/bin/postern
	install -D -m 644 deploy/postern.json $(DESTDIR)$(PREFIX)/share/postern/postern.json
	install -D -m 644 api/config.schema.json $(DESTDIR)$(PREFIX)/share/postern/config.schema.json
	install -D -m 644 api/openapi.yaml $(DESTDIR)$(PREFIX)/share/postern/openapi.yaml

uninstall: ## what install has put there
	rm -f $(DESTDIR)$(PREFIX)/bin/postern
	rm -rf $(DESTDIR)$(PREFIX)/share/postern

dist: ## a source archive of the committed tree
	$(Q)mkdir -p build
	git archive --prefix=postern-$(VERSION)/ -o build/postern-$(VERSION).tar.gz HEAD

format: ## clang-format the tree in place
	clang-format -i $(LIB_C) $(CMD_C) $(wildcard lib/*/*.h cmd/postern/*.h tests/*/*.c tests/*/*.h)

clean: ## remove build/
	rm -rf build

help: ## this text
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18
	@echo; echo "  variables: SAN=none|asan|tsan|cov|fuzz  V=1  WERROR=0  CC CFLAGS LDFLAGS PREFIX DESTDIR"
