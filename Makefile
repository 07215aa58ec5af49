# SPDX-License-Identifier: GPL-2.0
# Verbs only; what they do is in scripts/ and lab/. "make help" prints the lines
# that begin with "#!", "make help-all" those that begin with "#:".
#!   make run       what the series does, on one screen: counts, time, devices
#!   make deb       packages of kernel and tools, in build/deb/
#!   make stick     a USB stick that compares kernels and policies on any machine
#!   make series    mails for git am, in build/series-7.3/
#!   make quick     what your change most likely breaks, in two minutes
#!   make check     every test
#!   make help-all  all verbs, and the variables that each takes

KVER	?= 7.3
OUT	:= build$(if $(filter-out 7.3,$(KVER)),/$(KVER))
TREE	:= $(OUT)/linux-$(KVER)
# The processor of the guests
ARCH	?= x86_64
export KVER KSRC FROM ACCEL BLKTESTS SETUP

# What is refused is refused before anything is installed.
KVERS := $(patsubst patches/%/source,%,$(wildcard patches/*/source))
ifeq ($(filter $(KVER),$(KVERS)),)
$(error KVER=$(KVER): no series is for that; accepted: $(KVERS))
endif
ifeq ($(filter lean,$(or $(FLAVOUR),lean))$(wildcard $(FLAVOUR)),)
$(error FLAVOUR=$(FLAVOUR): accepted: lean, a configuration file)
endif

SUITE_DIR := tools/testing/selftests/block-plug
$(foreach test,$(filter-out help,$(TESTS)),$(if \
	$(wildcard $(SUITE_DIR)/$(test:.sh=).sh),,$(error TESTS=$(test): \
	no such kselftest; accepted: those of TESTS=help)))

# What runs with ARCH=arm64; the rest is for x86_64 alone, or for no processor
ARM64_VERBS := help help-all setup run kernel tree kunit selftest torture shell deb clean
ifeq ($(ARCH),arm64)
export ARCH
ifneq ($(filter-out $(ARM64_VERBS),$(MAKECMDGOALS)),)
$(error ARCH=arm64: not with '$(filter-out $(ARM64_VERBS),$(MAKECMDGOALS))'; \
	accepted: $(ARM64_VERBS))
endif
ifneq ($(UML),)
$(error ARCH=arm64: UML=1 is this machine's processor; leave one out)
endif
else ifneq ($(ARCH),x86_64)
$(error ARCH=$(ARCH): accepted: x86_64, arm64)
endif

.PHONY: help help-all setup run kernel shell bench nano sim audit tags figures quick \
	check kunit selftest torture roll-test lint each-commit tree refresh \
	series branch blktests deb rpm deb-test debian-patches stick \
	stick-test clean

# These refuse more than is refused above, and are asked before, too.
CMD_run = python3 -m lab.bench.run --modes '$(MODES)'
CMD_bench = python3 -m lab.bench.run_suites --suite '$(SUITE)' \
	$(if $(RUNS),--runs '$(RUNS)') --compare '$(COMPARE)'
CMD_torture = python3 -m lab.torture.torture $(if $(T),--time '$(T)') \
	--seed '$(SEED)' --kinds '$(KINDS)' --kernels '$(KERNELS)' \
	--round '$(ROUND)' --modes '$(MODES)'
refused-%:
	@$(CMD_$*) --refuse

help help-all:
	@sed -n 's/^#$(if $(filter help,$@),!,:) \{0,1\}//p' Makefile

# The groups of setup.sh that a verb needs, if not those of "make check"
NEEDS_deb := kernel deb
NEEDS_deb-test := all deb deb-test
NEEDS_rpm := kernel rpm
NEEDS_debian-patches := tree
NEEDS_stick := kernel stick
NEEDS_stick-test := all stick
NEEDS_each-commit := each-commit

#: ARCH=arm64: that processor, for run, kunit, selftest, torture, kernel, shell
#: and deb; what they leave is in build/arm64/ (default: x86_64)
#:
#: Use
#:   setup     install the Debian packages that are missing; the others do, too
#:               SETUP=no      install nothing; name what is missing and stop
setup:
	@sh scripts/setup.sh $(sort $(foreach goal,$(or $(MAKECMDGOALS),all),\
		$(or $(NEEDS_$(goal)),all)) $(filter arm64,$(ARCH)))

#:   run       what the series does, on one screen: counts on an emulated NVMe
#:             disk, time against the unpatched kernel, modes on modelled SSDs
#:               MODES="a b"   the modes whose counts it shows (default: all)
run: refused-run kernel
	@$(CMD_run)

#:   shell     boot the patched kernel to a prompt, disk attached
#:   kernel    build the patched kernel
#:               DEBUG=1       both: with KASAN and lockdep
kernel: setup tree
	@python3 -m scripts.kernel $(if $(DEBUG),debug,patched)

shell: kernel
	@python3 -m scripts.selftest $(if $(DEBUG),--debug) --shell

#:
#: Measure
#:   bench     policies and baselines on modelled SSDs
#:               SUITE="a b"   what of it (default: cpu rfc nvme), or all;
#:                             "native", "loads": nanoseconds, software that
#:                             others wrote
#:               RUNS=n        of each cell, each with its own seed
#:               COMPARE=json  records of an earlier run to compare with
# User Mode Linux, which native measures, is built as it is needed.
bench: refused-bench $(if $(filter-out native,$(or $(SUITE),cpu)),kernel,setup tree)
	@$(CMD_bench)

#:   nano      nanoseconds that a change costs or gains
#:               BEFORE=commit, AFTER=commit  of build/linux-7.3, or: worktree
#:                             (default: HEAD and what is not committed, or
#:                             HEAD~1 and HEAD)
#:               ARGS="a b"    see ARGS=--help
# "tree" refuses one with commits of your own, which are what this measures.
nano: setup
	@$(if $(wildcard $(TREE)/.git),,$(MAKE) --no-print-directory tree)
	@python3 -m lab.native.nano $(if $(BEFORE),--before '$(BEFORE)') \
		$(if $(AFTER),--after '$(AFTER)') $(ARGS)

#:   sim       what adaptive loses to the best fixed group
#:               SEED=n        of the configurations that it draws (default: 1)
#:               CONFIGS=n     how many (default: 5000; with ABLATE 1200)
#:               ABLATE=1      what each rule of the controller is worth
sim: setup tree
	@python3 -m lab.sim.sim $(if $(SEED),--seed '$(SEED)') \
		$(if $(CONFIGS),--configs '$(CONFIGS)') \
		$(if $(filter-out 0,$(ABLATE)),--ablate)

#:   audit     what plugs batch, unpatched and patched, case by case; 15 minutes
audit: kernel
	@python3 -m scripts.audit

#:   tags      who waits for tags, unpatched and patched
tags: kernel
	@python3 -m scripts.audit --waits

#:   figures   what each section buys, for covers and documents
#:               SECTIONS="a b"  of the series (default: all)
#:               FILL=1          measure nothing, fill documents from records
figures: setup tree
	@python3 -m lab.native.section_figures $(if $(FILL),--fill) $(SECTIONS)

#:
#: Test
#:   quick     what a change most likely breaks, in two minutes
#:               SINCE=commit  the change (default: what main does not have)
#:   check     every test; ends with "N passed, N failed, N skipped"
#:               GROUPS="a b"  only these, see GROUPS=help (default: all); the
#:                             results of each are in build/check/<group>.tap
#:               SINCE=commit  only what can break by what changed since
#:               CACHE=no      run also what passed and has not changed since
quick check:
	@python3 -m scripts.check $(if $(filter quick,$@),--quick) \
		--groups '$(GROUPS)' --since '$(SINCE)' --cache '$(or $(CACHE),yes)'

#:   kunit     unit tests, under User Mode Linux
kunit: setup tree
	@python3 -m scripts.kunit

#:   selftest  kselftests, in a guest
#:               TESTS="a b"   only these, see TESTS=help (default: all)
#:               SECTION=name  the kernel and the tests of this section, with no
#:                             more of the series than its cover names
#:               UML=1         as a process of this machine, without NVMe
#:               DEBUG=1       with KASAN and lockdep
selftest: $(if $(filter-out help,$(or $(TESTS),all)),\
		$(if $(SECTION),setup series,$(if $(UML),setup tree,kernel)))
	@python3 -m scripts.selftest $(if $(DEBUG),--debug) $(if $(UML),--uml) \
		$(if $(SECTION),--section '$(SECTION)') $(TESTS)

#:   torture   faults and floods on two debug kernels
#:               T=time        after the builds: 90s, 30m (default: 10m)
#:               KINDS="a b"   what it tries, see KINDS=help (default: all)
#:               KERNELS="a b" debug, kcsan (the default), patched, base;
#:                             torture, base-torture: these with all that it
#:                             stacks
#:               MODES="a b"   the policies that mixed and neighbours set (all)
#:               SEED=n        of all that it does by chance (default: the clock)
#:               ROUND=n       the round that it repeats, as its message says
torture: $(if $(filter help,$(KINDS)),,refused-torture setup tree)
	@$(CMD_torture)

#:   roll-test  plugroll in a guest: its guard trips under a live load
roll-test: setup tree
	@python3 -m lab.tests.laboratory --only=plugroll

#:   lint      checkpatch, shellcheck, sparse, W=1
lint: setup series
	@python3 -m scripts.lint

#:   each-commit  each compiles, on and off, gcc and clang, and the last one in
#:             other configurations
#:               ARGS="a b"    see ARGS=--help
each-commit: setup tree
	@python3 -m scripts.each_commit $(ARGS)

#:
#: The series
#:   tree      build/linux-7.3: base commit and the series, as git commits
tree:
	@sh scripts/setup.sh tree
	@sh scripts/source.sh
	@python3 -m scripts.series tree

#:   refresh   bring commits made in build/linux-7.3 back here
refresh:
	@sh scripts/setup.sh tree
	@python3 -m scripts.series refresh

#:   series    mails for git am, in build/series-7.3/
#:               FROM="N <m>"  their author
series: tree
	@python3 -m scripts.series export
	@python3 -m scripts.series verify

#:   branch    "tree", and the tags that it has, one per section
branch: tree
	@git -C $(TREE) for-each-ref --format='%(refname:short)	%(subject)' \
		refs/tags/base refs/tags/section/ refs/heads/series

#:   blktests  tests for blktests as mails, in build/series-blktests/
#:               BLKTESTS=dir  a checkout of it: its "check" tries them in
#:                             guests; on the unpatched kernel, those of fixes
#:                             must fail
blktests: $(if $(BLKTESTS),kernel)
	@sh scripts/setup.sh tree
	@python3 -m scripts.blktests

#:
#: Packages
#:   deb       of kernel and tools, in build/deb/
#:   rpm       the same for RPM, in build/rpm/; not tried on such a system
#:               FLAVOUR=file  these, and deb-test: of another configuration
#:                             than "lean", the default
deb rpm: setup tree
	@python3 -m scripts.packages $@ --flavour '$(or $(FLAVOUR),lean)'

#:   deb-test  installs, boots and removes them in a Debian 13 guest
deb-test: setup deb
	@python3 -m scripts.deb_test --flavour '$(or $(FLAVOUR),lean)'

#:   debian-patches  the series for src:linux, in build/debian-patches/
debian-patches: setup tree
	@sh scripts/debian_patches.sh $(TREE) $(OUT)/debian-patches

#:   stick     build/stick/plug-policy.img, a USB stick that compares
#:   stick-test  boots it beside two NVMe disks, which must stay as they are
stick stick-test: setup tree
	@python3 -m scripts.stick.$(if $(filter stick,$@),image,boot)

#:
#: Clean
#:   clean     remove build/, except for the downloads in build/cache
# Downloads cost minutes; "rm -rf build" removes them, too.
clean:
	@[ ! -d build ] || \
		find build -mindepth 1 -maxdepth 1 ! -name cache -exec rm -rf {} +

#:
#: All of them
#:               KVER=6.12     the series for that kernel, in build/6.12/
#:                             (default: 7.3)
#:               KSRC=dir      use this Linux source, which is only read
#:               ACCEL=name    auto (default), tcg or kvm, for boots not timed
