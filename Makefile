# SPDX-License-Identifier: GPL-2.0
# Verbs only; what they do is in scripts/ and in the rooms named by README.md.

KVER	?= 7.3
OUT	:= build$(if $(filter-out 7.3,$(KVER)),/$(KVER))
TREE	:= $(OUT)/linux-$(KVER)
QEMU	:= tools/testing/selftests/block-plug/qemu
BENCH	:= tools/testing/selftests/block-plug/bench
TORTURE	:= tools/testing/selftests/block-plug/torture
export KVER KSRC FROM ACCEL BLKTESTS SETUP

# What is refused is refused before anything is installed.
KVERS := $(patsubst patches/%/source,%,$(wildcard patches/*/source))
ifeq ($(filter $(KVER),$(KVERS)),)
$(error KVER=$(KVER): no series is for that; accepted: $(KVERS))
endif
ifeq ($(filter lean cloud,$(or $(FLAVOUR),lean))$(wildcard $(FLAVOUR)),)
$(error FLAVOUR=$(FLAVOUR): accepted: lean, cloud, a configuration file)
endif

.PHONY: help setup run bench sim audit check kernel tree refresh kunit \
	selftest series branch bisect each-commit figures matrix torture lint \
	shell blktests tags deb deb-test rpm debian-patches roll-test stick \
	stick-test clean

help:
	@echo 'Verbs:'
	@echo '  setup     install the Debian packages that are missing'
	@echo '  run       boot the patched kernel, compare the policies on NVMe'
	@echo '  bench     policies and baselines on modelled SSDs; see SUITE'
	@echo '  sim       what adaptive loses to the best fixed group; see SEED, ABLATE'
	@echo '  figures   what each section buys, for its cover letter; see SECTIONS'
	@echo '  audit     what plugs batch, unpatched and patched, case by case'
	@echo '  tags      who waits for tags, unpatched and patched; half an hour'
	@echo '  check     every test; ends with "N passed, N failed, N skipped"'
	@echo '  kernel    build the patched kernel'
	@echo '  tree      $(TREE): base commit and the series, as git commits'
	@echo '  refresh   bring commits made in $(TREE) back here'
	@echo '  kunit     unit tests, under User Mode Linux'
	@echo '  selftest  kselftests, in a guest'
	@echo '  series    mails for git am, in $(OUT)/series-$(KVER)/; see ONTO'
	@echo '  blktests  tests for blktests as mails, in build/series-blktests/'
	@echo '  branch    "tree", and the tags that it has, one per section'
	@echo '  each-commit  compiles, on and off, gcc and clang; see ARGS (or: bisect)'
	@echo '  matrix    the last commit compiles in other configurations'
	@echo '  torture   faults and floods on two debug kernels; see T and KINDS'
	@echo '  deb       packages of kernel and tools, in $(OUT)/deb/; see FLAVOUR'
	@echo '  deb-test  installs, boots and removes them in a Debian 13 guest'
	@echo '  rpm       the same for RPM, in $(OUT)/rpm/; not tried on such a system'
	@echo '  debian-patches  the series for src:linux, in $(OUT)/debian-patches/'
	@echo '  roll-test  plugroll in guests: its guard trips, and paths that come later'
	@echo '  stick     $(OUT)/stick/plug-policy.img, a USB stick that compares'
	@echo '  stick-test  boots it beside two NVMe disks, which must stay as they are'
	@echo '  lint      checkpatch, shellcheck, sparse, W=1'
	@echo '  shell     boot the patched kernel to a prompt, disk attached'
	@echo '  clean     remove build/, except for the downloads in build/cache'
	@echo 'Variables:'
	@echo '  KVER=6.12     the series for that kernel, in build/6.12/ (default: 7.3)'
	@echo '  FLAVOUR=name  of "deb" and "rpm": lean (default), cloud, or a file'
	@echo '  SETUP=no      install nothing; name what is missing and stop'
	@echo '  KSRC=dir      use this Linux $(KVER) source, which is only read'
	@echo '  ONTO=dir      another kernel tree on which "series" tries the mails'
	@echo '  BLKTESTS=dir  a checkout of blktests: its "check" tries these tests in'
	@echo '                guests; on Linux $(KVER) as it is, those of fixes must fail'
	@echo '  MODES="a b"   policies that "run" compares (default: all)'
	@echo '  SUITE="a b"   what "bench" measures (default: cpu rfc nvme), or all;'
	@echo '                "regret": what adaptive loses to the best fixed choice;'
	@echo '                "lines", "native", "loads": accesses to memory, time,'
	@echo '                software that others wrote'
	@echo '  RUNS=n        runs of each cell of "bench", each with its own seed'
	@echo '  COMPARE=json  records of an earlier "bench" to compare with'
	@echo '  SEED=n        of the configurations that "sim" draws (default: 1), and'
	@echo '                of all that "torture" does by chance (default: the clock)'
	@echo '  CONFIGS=n     how many (default: 5000; with ABLATE 1200)'
	@echo '  ABLATE=1      "sim": what each rule of the controller is worth'
	@echo '  SECTIONS="a b"  of the series, that "figures" measures (default: all)'
	@echo '  GROUPS="a b"  groups that "check" runs, see GROUPS=help (default: all);'
	@echo '                the results of each are in build/check/<group>.tap'
	@echo '  TESTS="a b"   kselftests that "selftest" runs (default: all)'
	@echo '  SECTION=name  "selftest": the kernel and the tests of this section, with'
	@echo '                no more of the series than its cover names'
	@echo '  T=time        of "torture" after the builds: 90s, 30m (default: 10m)'
	@echo '  KINDS="a b"   what "torture" tries, see KINDS=help (default: all)'
	@echo '  KERNELS="a b" of "torture": debug, kcsan (the default), patched, base'
	@echo '  ROUND=n       the round that "torture" repeats, as its message says'
	@echo '  UML=1         "selftest": as a process of this machine, without NVMe'
	@echo '  DEBUG=1       "kernel", "selftest", "shell": KASAN and lockdep'
	@echo '  ACCEL=name    auto (default), tcg or kvm, for boots not timed'
	@echo '  ARGS="a b"    arguments of "bisect" and "matrix"; see ARGS=--help'
	@echo '  FROM="N <m>"  author of the mails that "series" writes'

# The groups of setup.sh that a verb needs, if not those of "make check"
NEEDS_deb := kernel deb
NEEDS_deb-test := all deb deb-test
NEEDS_rpm := kernel rpm
NEEDS_debian-patches := tree debian-patches
NEEDS_stick := kernel stick
NEEDS_stick-test := all stick
NEEDS_each-commit := each-commit
NEEDS_bisect := each-commit

setup:
	@sh scripts/setup.sh $(sort $(foreach goal,$(or $(MAKECMDGOALS),all),\
		$(or $(NEEDS_$(goal)),all)))

tree:
	@sh scripts/setup.sh tree
	@sh scripts/source.sh
	@python3 scripts/series.py tree

kernel: setup tree
	@python3 scripts/kernel.py $(if $(DEBUG),debug,patched)

refresh:
	@sh scripts/setup.sh tree
	@python3 scripts/series.py refresh

series: tree
	@python3 scripts/series.py export
	@python3 scripts/series.py verify
	@$(if $(ONTO),python3 scripts/series.py onto '$(ONTO)')

blktests: $(if $(BLKTESTS),kernel)
	@sh scripts/setup.sh tree
	@python3 scripts/blktests.py $(if $(BLKTESTS),try)

branch: tree
	@git -C $(TREE) for-each-ref --format='%(refname:short)	%(subject)' \
		refs/tags/base refs/tags/section/ refs/heads/series

run: kernel
	@python3 $(BENCH)/run.py --modes '$(MODES)'

bench: kernel
	@python3 $(BENCH)/bench.py --suite '$(SUITE)' \
		$(if $(RUNS),--runs '$(RUNS)') --compare '$(COMPARE)'

sim: setup tree
	@python3 $(BENCH)/sim.py $(if $(SEED),--seed '$(SEED)') \
		$(if $(CONFIGS),--configs '$(CONFIGS)') \
		$(if $(filter-out 0,$(ABLATE)),--ablate)

audit: kernel
	@python3 scripts/audit.py

tags: kernel
	@python3 $(BENCH)/tags.py

figures: kernel
	@python3 $(BENCH)/figures.py $(SECTIONS)

kunit: setup tree
	@python3 scripts/kunit.py

selftest: $(if $(SECTION),setup series,$(if $(UML),setup tree,kernel))
	@python3 scripts/selftest.py $(if $(DEBUG),--debug) $(if $(UML),--uml) \
		$(if $(SECTION),--section '$(SECTION)') $(TESTS)

each-commit bisect: setup tree
	@python3 scripts/bisect_series.py $(ARGS)

matrix: setup tree
	@python3 scripts/matrix.py $(ARGS)

torture: setup tree
	@python3 $(TORTURE)/torture.py $(if $(T),--time '$(T)') \
		--seed '$(SEED)' --kinds '$(KINDS)' --kernels '$(KERNELS)' \
		--round '$(ROUND)'

lint: setup series
	@python3 scripts/lint.py

shell: kernel
	@python3 scripts/selftest.py $(if $(DEBUG),--debug) --shell

deb rpm: setup tree
	@$(if $(filter deb,$@),sh scripts/setup.sh lintian || true)
	@python3 scripts/packages.py $@ --flavour '$(or $(FLAVOUR),lean)'

deb-test: setup deb
	@python3 scripts/debtest.py

debian-patches: setup tree
	@python3 scripts/debian_patches.py $(ARGS)

roll-test: setup tree
	@python3 scripts/plugrolltest.py

stick stick-test: setup tree
	@python3 scripts/$(subst stick-test,sticktest,$@).py

check: $(if $(filter-out help,$(or $(GROUPS),all)),setup)
	@python3 scripts/check.py --groups '$(GROUPS)'

clean:
	@sh scripts/clean.sh
