// SPDX-License-Identifier: GPL-2.0
/*
 * plug_load: keep block devices busy through one io_uring ring
 *
 * Every call of io_uring_enter() submits a batch, so every batch is one plug.
 * - A batch holds --submit I/Os, which go to the devices in turn.
 * - While there is room for a further batch under --depth, nothing waits.
 * - Otherwise the call waits for --complete I/Os (the shape of fio's
 *   t/io_uring).
 * The program always ends: after --ios, --time or one pass over the range,
 * when all I/Os in flight fail in a row, or when nothing completes any more.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <liburing.h>
#include <linux/fs.h>
#include <linux/nvme_ioctl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define die(code, fmt, ...)						\
	do {								\
		fprintf(stderr, "plug_load: " fmt "\n", ##__VA_ARGS__);	\
		exit(code);						\
	} while (0)

enum {
	EXIT_IO		= 1,	/* an I/O failed, or data was not as written */
	EXIT_USAGE	= 2,
	EXIT_STUCK	= 3,	/* nothing completed for STUCK_SECONDS */
	EXIT_UNSUPPORTED = 4,	/* the kselftest code for a skip */

	STUCK_SECONDS	= 30,	/* the kernel's own NVMe I/O timeout */
	MAX_DEVS	= 16,
	MAX_DEPTH	= 4096,
	MAX_BS		= 16 << 20,
	MAX_OPTIONS	= 32,
	SECTOR		= 512,
	FEISTEL_ROUNDS	= 4,
};

enum rw { RW_READ, RW_WRITE, RW_VERIFY };
static const char *const rw_names[] = { "read", "write", "verify", NULL };

enum access { ACCESS_RAND, ACCESS_SEQ, ACCESS_RAND_ONCE };
static const char *const access_names[] = { "rand", "seq", "rand-once", NULL };

static struct {
	int rw, access;
	__u64 bs, depth, submit, complete, ios, time, offset, range;
	__u64 fsync, seed;
	int polled, sqpoll, nowait, passthrough, buffered, no_fixed;
	int wait_all, allow_errors, json;
} opt = { .bs = 4096, .depth = 128, .submit = 32, .complete = 32, .seed = 1 };

static struct dev {
	const char *path;
	int fd;
	__u32 nsid;		/* passthrough only */
	unsigned int lba_shift;
	__u64 size;
} devs[MAX_DEVS];
static unsigned int nr_devs;

/* One place in the queue: it owns a buffer and at most one I/O. */
struct slot {
	unsigned int dev;
	__u64 off;
	void *buf;
	bool is_fsync;
};

static struct run {
	struct io_uring ring;
	struct slot *slots, **idle, **again;
	unsigned int nr_idle, nr_again, inflight, failed_in_row;
	__u64 blocks;	/* per device */
	__u64 issued, done, errors, retries, fsyncs, submits, rng;
	__u64 start, last;	/* ns */
	bool stop, unsupported;
} run;

/* Set by signals. */
static int interrupted, ticked;

static __u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* splitmix64: short, and the same everywhere */
static __u64 mix(__u64 x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/*
 * A Feistel network is a permutation of 0 .. 4^half - 1; walking on while the
 * result is outside makes it one of 0 .. n - 1, without memory.
 */
static __u64 permute(__u64 x, __u64 n)
{
	unsigned int half = 1, i;
	__u64 mask, left, right, next;

	while (half < 32 && (1ULL << (2 * half)) < n)
		half++;
	mask = (1ULL << half) - 1;
	do {
		left = x >> half;
		right = x & mask;
		for (i = 0; i < FEISTEL_ROUNDS; i++) {
			next = left ^ (mix(right + opt.seed * 31 + i) & mask);
			left = right;
			right = next;
		}
		x = left << half | right;
	} while (x >= n);
	return x;
}

static __u64 block_of(__u64 nth)
{
	switch (opt.access) {
	case ACCESS_SEQ:
		return nth % run.blocks;
	case ACCESS_RAND_ONCE:
		return permute(nth, run.blocks);
	default:
		return mix(run.rng++) % run.blocks;
	}
}

/*
 * A sector's words tell seed, device and sector number: data that went to
 * the wrong device or place is then as visible as data that went nowhere.
 */
static __u64 pattern(const struct slot *s, __u64 off)
{
	__u64 sector = (s->off + off) / SECTOR;

	return mix(opt.seed + sector + ((__u64)s->dev << 48)) + off % SECTOR;
}

static void fill(struct slot *s)
{
	__u64 *word = s->buf, i;

	for (i = 0; i < opt.bs; i += sizeof(*word))
		*word++ = pattern(s, i);
}

static bool check(struct slot *s)
{
	__u64 *word = s->buf, i;

	for (i = 0; i < opt.bs; i += sizeof(*word), word++) {
		if (*word == pattern(s, i))
			continue;
		if (!run.errors)
			fprintf(stderr,
				"plug_load: %s: wrong data at byte %llu: found %016llx, not %016llx\n",
				devs[s->dev].path, s->off + i, *word,
				pattern(s, i));
		return false;
	}
	return true;
}

static void prep_passthrough(struct io_uring_sqe *sqe, struct slot *s)
{
	struct nvme_uring_cmd *cmd = (struct nvme_uring_cmd *)sqe->cmd;
	struct dev *d = &devs[s->dev];
	__u64 slba = s->off >> d->lba_shift;

	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, d->fd, NULL, 0, 0);
	sqe->cmd_op = NVME_URING_CMD_IO;
	memset(cmd, 0, sizeof(*cmd));
	cmd->opcode = 2;	/* Read */
	cmd->nsid = d->nsid;
	cmd->addr = (uintptr_t)s->buf;
	cmd->data_len = opt.bs;
	cmd->cdw10 = slba;
	cmd->cdw11 = slba >> 32;
	cmd->cdw12 = (opt.bs >> d->lba_shift) - 1;
	if (!opt.no_fixed)
		sqe->uring_cmd_flags = IORING_URING_CMD_FIXED;
}

static void prep_data(struct io_uring_sqe *sqe, struct slot *s)
{
	bool write = opt.rw == RW_WRITE;
	int op;

	if (opt.passthrough) {
		prep_passthrough(sqe, s);
		return;
	}
	if (opt.no_fixed)
		op = write ? IORING_OP_WRITE : IORING_OP_READ;
	else
		op = write ? IORING_OP_WRITE_FIXED : IORING_OP_READ_FIXED;
	io_uring_prep_rw(op, sqe, devs[s->dev].fd, s->buf, opt.bs, s->off);
	if (opt.nowait)
		sqe->rw_flags = RWF_NOWAIT;
}

static void queue_slot(struct slot *s)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&run.ring);

	/* Cannot be: the ring has an entry for every slot. */
	if (!sqe)
		die(EXIT_IO, "the submission ring is full");
	if (s->is_fsync)
		io_uring_prep_fsync(sqe, devs[s->dev].fd, 0);
	else
		prep_data(sqe, s);
	if (!opt.no_fixed) {
		sqe->fd = s->dev;
		sqe->flags |= IOSQE_FIXED_FILE;
		if (!s->is_fsync)
			sqe->buf_index = s - run.slots;
	}
	io_uring_sqe_set_data(sqe, s);
	run.inflight++;
}

static void queue_next(void)
{
	struct slot *s = run.idle[--run.nr_idle];
	__u64 nth = run.issued;

	s->dev = nth % nr_devs;
	/* The fsync goes in between, to the device written last. */
	s->is_fsync = opt.fsync && nth && run.fsyncs < nth / opt.fsync;
	if (s->is_fsync) {
		s->dev = (nth - 1) % nr_devs;
		run.fsyncs++;
	} else {
		s->off = opt.offset + block_of(nth / nr_devs) * opt.bs;
		if (opt.rw == RW_WRITE)
			fill(s);
		run.issued++;
	}
	queue_slot(s);
}

static bool time_is_up(void)
{
	return opt.time && now_ns() - run.start >= opt.time * 1000000000ULL;
}

static void queue_batch(void)
{
	unsigned int n = 0;

	if (__atomic_load_n(&interrupted, __ATOMIC_RELAXED) || time_is_up())
		run.stop = true;
	if (run.stop)
		return;
	for (; run.nr_again && n < opt.submit; n++)
		queue_slot(run.again[--run.nr_again]);
	for (; run.nr_idle && run.issued < opt.ios && n < opt.submit; n++)
		queue_next();
}

static bool more_to_queue(void)
{
	return !run.stop && (run.nr_again || run.issued < opt.ios);
}

static unsigned int completions_to_await(void)
{
	unsigned int want = opt.complete;

	if (more_to_queue() && run.inflight + opt.submit <= opt.depth)
		return 0;
	/* With a partial batch's room left, fewer must do. */
	return want < run.inflight ? want : run.inflight;
}

static void fail(struct slot *s, int res)
{
	run.failed_in_row++;
	if (!run.errors++)
		fprintf(stderr, "plug_load: %s: %s at byte %llu: %s\n",
			devs[s->dev].path,
			s->is_fsync ? "fsync" : rw_names[opt.rw], s->off,
			res < 0 ? strerror(-res) :
			opt.passthrough ? "NVMe error status" :
			"short transfer");
	if (!run.done && (res == -EOPNOTSUPP || res == -ENOTTY))
		run.unsupported = true;
	/* No point in going on when nothing in flight gets through. */
	if (run.unsupported || run.failed_in_row >= opt.depth)
		run.stop = true;
}

static void complete_slot(struct slot *s, int res)
{
	int want = s->is_fsync || opt.passthrough ? 0 : opt.bs;

	run.inflight--;
	if (res == -EAGAIN && opt.nowait) {
		run.retries++;
		run.again[run.nr_again++] = s;
		return;
	}
	run.last = now_ns();
	run.idle[run.nr_idle++] = s;
	if (res != want) {
		fail(s, res);
	} else if (opt.rw == RW_VERIFY && !check(s)) {
		run.errors++;
	} else {
		run.failed_in_row = 0;
		run.done += !s->is_fsync;
	}
}

static void reap(void)
{
	struct io_uring_cqe *cqe;
	unsigned int head, n = 0;

	io_uring_for_each_cqe(&run.ring, head, cqe) {
		complete_slot(io_uring_cqe_get_data(cqe), cqe->res);
		n++;
	}
	io_uring_cq_advance(&run.ring, n);
}

static void report(void)
{
	__u64 ns = run.last > run.start ? run.last - run.start : 1;
	const struct {
		const char *name;
		__u64 value;
	} fields[] = {
		{ "ios", run.done }, { "bytes", run.done * opt.bs },
		{ "ns", ns }, { "iops", run.done * 1e9 / ns + 0.5 },
		{ "errors", run.errors }, { "submits", run.submits },
		{ "fsyncs", run.fsyncs }, { "retries", run.retries },
		{ 0 }
	};
	int i;

	for (i = 0; fields[i].name; i++)
		printf(opt.json ? "%s\"%s\": %llu" : "%s%s=%llu",
		       !i ? opt.json ? "{" : "" : opt.json ? ", " : " ",
		       fields[i].name, fields[i].value);
	puts(opt.json ? "}" : "");
	fflush(stdout);
}

static void check_stuck(void)
{
	if (!__atomic_exchange_n(&ticked, 0, __ATOMIC_RELAXED))
		return;
	if (now_ns() - run.last < STUCK_SECONDS * 1000000000ULL)
		return;
	fprintf(stderr,
		"plug_load: stuck: no completion for %d s, %u in flight\n",
		STUCK_SECONDS, run.inflight);
	report();
	/* exit() would wait for the ring. */
	_exit(EXIT_STUCK);
}

/* Returns false when the kernel will take no more. */
static bool submit_and_wait(void)
{
	int ret = io_uring_submit_and_wait(&run.ring, completions_to_await());

	run.submits++;
	if (ret >= 0)
		return true;
	/* EINTR: the timer below. EAGAIN, EBUSY: reap first. */
	if (ret == -EINTR || ret == -EAGAIN || ret == -EBUSY)
		return true;
	run.errors++;
	run.inflight -= io_uring_sq_ready(&run.ring);
	fprintf(stderr, "plug_load: io_uring_enter: %s\n", strerror(-ret));
	return false;
}

static void drain(void)
{
	struct io_uring_cqe *cqe;

	while (run.inflight) {
		io_uring_wait_cqe(&run.ring, &cqe);
		reap();
		check_stuck();
	}
}

static void do_run(void)
{
	run.start = now_ns();
	run.last = run.start;
	for (;;) {
		if (run.nr_idle || run.nr_again)
			queue_batch();
		if (!run.inflight && !more_to_queue())
			return;
		if (!submit_and_wait())
			break;
		reap();
		check_stuck();
	}
	drain();
}

static void on_signal(int sig)
{
	int *flag = sig == SIGALRM ? &ticked : &interrupted;

	__atomic_store_n(flag, 1, __ATOMIC_RELAXED);
}

/*
 * The timer's signal ends a wait in io_uring_enter(), polled or not, with
 * EINTR: that is where a run that makes no progress is noticed.
 */
static void set_signals(void)
{
	const struct sigaction sa = { .sa_handler = on_signal };
	const struct itimerval tick = { { 1, 0 }, { 1, 0 } };

	sigaction(SIGALRM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	setitimer(ITIMER_REAL, &tick, NULL);
}

static void init_ring(void)
{
	unsigned int flags = 0;
	int ret;

	if (opt.polled)
		flags |= IORING_SETUP_IOPOLL;
	if (opt.passthrough)
		flags |= IORING_SETUP_SQE128 | IORING_SETUP_CQE32;
	if (opt.sqpoll)
		flags |= IORING_SETUP_SQPOLL;
	else
		flags |= IORING_SETUP_SINGLE_ISSUER |
			 IORING_SETUP_DEFER_TASKRUN;
	ret = io_uring_queue_init(opt.depth, &run.ring, flags);
	if (ret == -EINVAL) {
		/* Before 6.1 completions interrupt the task: slower. */
		flags &= ~(IORING_SETUP_SINGLE_ISSUER |
			   IORING_SETUP_DEFER_TASKRUN);
		ret = io_uring_queue_init(opt.depth, &run.ring, flags);
	}
	if (ret)
		die(EXIT_UNSUPPORTED, "cannot set up io_uring: %s",
		    strerror(-ret));
}

static void *xcalloc(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		die(EXIT_IO, "out of memory");
	return p;
}

static void register_fixed(struct iovec *iov)
{
	int fds[MAX_DEVS], ret;
	unsigned int i;

	for (i = 0; i < nr_devs; i++)
		fds[i] = devs[i].fd;
	ret = io_uring_register_files(&run.ring, fds, nr_devs);
	if (!ret)
		ret = io_uring_register_buffers(&run.ring, iov, opt.depth);
	if (ret)
		die(EXIT_UNSUPPORTED,
		    "cannot register files and buffers: %s (try --no-fixed)",
		    strerror(-ret));
}

static void init_slots(void)
{
	struct iovec *iov = xcalloc(opt.depth, sizeof(*iov));
	char *mem;
	unsigned int i;

	if (posix_memalign((void **)&mem, 4096, opt.depth * opt.bs))
		die(EXIT_IO, "out of memory for %llu buffers of %llu bytes", opt.depth, opt.bs);
	memset(mem, 0, opt.depth * opt.bs);
	run.slots = xcalloc(opt.depth, sizeof(*run.slots));
	run.idle = xcalloc(opt.depth, sizeof(*run.idle));
	run.again = xcalloc(opt.depth, sizeof(*run.again));
	for (i = 0; i < opt.depth; i++) {
		run.slots[i].buf = mem + i * opt.bs;
		run.idle[run.nr_idle++] = &run.slots[i];
		iov[i].iov_base = run.slots[i].buf;
		iov[i].iov_len = opt.bs;
	}
	if (!opt.no_fixed)
		register_fixed(iov);
	free(iov);
}

/* Namespace size and sector size: Identify, with the fields' offsets. */
static void identify(struct dev *d)
{
	static unsigned char id[4096];
	struct nvme_admin_cmd cmd = {
		.opcode = 6, .addr = (uintptr_t)id, .data_len = sizeof(id),
	};
	int nsid = ioctl(d->fd, NVME_IOCTL_ID);
	__u64 nsze;

	cmd.nsid = nsid;
	if (nsid < 0 || ioctl(d->fd, NVME_IOCTL_ADMIN_CMD, &cmd))
		die(EXIT_UNSUPPORTED, "%s: no NVMe generic device (ngXnY)",
		    d->path);
	d->nsid = nsid;
	memcpy(&nsze, id, sizeof(nsze));
	d->lba_shift = id[128 + 4 * (id[26] & 15) + 2];
	d->size = nsze << d->lba_shift;
}

static void open_dev(struct dev *d)
{
	int flags = opt.rw == RW_WRITE ? O_RDWR : O_RDONLY;
	struct stat st;

	if (!opt.buffered && !opt.passthrough)
		flags |= O_DIRECT;
	d->fd = open(d->path, flags);
	if (d->fd < 0 || fstat(d->fd, &st))
		die(EXIT_USAGE, "%s: %s", d->path, strerror(errno));
	d->size = st.st_size;
	if (opt.passthrough)
		identify(d);
	else if (S_ISBLK(st.st_mode) && ioctl(d->fd, BLKGETSIZE64, &d->size))
		die(EXIT_USAGE, "%s: no size: %s", d->path, strerror(errno));
	if (opt.passthrough && opt.bs & ((1ULL << d->lba_shift) - 1))
		die(EXIT_USAGE, "--bs must be a multiple of %u on %s",
		    1U << d->lba_shift, d->path);
}

static void init_range(void)
{
	__u64 room = ULLONG_MAX, pass;
	unsigned int i;

	for (i = 0; i < nr_devs; i++) {
		open_dev(&devs[i]);
		if (devs[i].size < room)
			room = devs[i].size;
	}
	if (opt.offset + opt.bs > room ||
	    (opt.range && opt.range > room - opt.offset))
		die(EXIT_USAGE,
		    "--offset and --range must lie within %llu bytes",
		    room);
	run.blocks = (opt.range ? opt.range : room - opt.offset) / opt.bs;
	if (!run.blocks)
		die(EXIT_USAGE, "--range must hold a block of --bs");
	pass = run.blocks * nr_devs;
	if (opt.access == ACCESS_RAND_ONCE && opt.ios > pass)
		die(EXIT_USAGE, "--ios must be at most %llu to touch each block once", pass);
	if (!opt.ios)
		opt.ios = opt.time && opt.access != ACCESS_RAND_ONCE ?
			  ULLONG_MAX : pass;
}

enum arg { ARG_NONE, ARG_NUM, ARG_RW, ARG_ACCESS };

/* getopt's table and the help are made from this one. */
static const struct {
	char c;
	enum arg arg;
	const char *name;
	void *value;
	__u64 min, max;
	const char *help;
} options[] = {
	{ 'r', ARG_RW, "rw", &opt.rw, 0, 0, "read, write or verify [read]" },
	{ 'a', ARG_ACCESS, "access", &opt.access, 0, 0,
	  "rand, seq or rand-once (each block once) [rand]" },
	{ 'b', ARG_NUM, "bs", &opt.bs, SECTOR, MAX_BS, "block size [4k]" },
	{ 'd', ARG_NUM, "depth", &opt.depth, 1, MAX_DEPTH,
	  "I/Os in flight [128]" },
	{ 's', ARG_NUM, "submit", &opt.submit, 1, MAX_DEPTH,
	  "I/Os per submission, and so per plug [32]" },
	{ 'c', ARG_NUM, "complete", &opt.complete, 1, MAX_DEPTH,
	  "completions to wait for [32]" },
	{ 'n', ARG_NUM, "ios", &opt.ios, 1, ULLONG_MAX,
	  "I/Os in all [one pass over the range]" },
	{ 't', ARG_NUM, "time", &opt.time, 1, 1 << 20, "seconds to run" },
	{ 'o', ARG_NUM, "offset", &opt.offset, 0, LLONG_MAX,
	  "first byte used [0]" },
	{ 'z', ARG_NUM, "range", &opt.range, 1, LLONG_MAX,
	  "bytes used from there [to the end]" },
	{ 'P', ARG_NONE, "polled", &opt.polled, 0, 0, "poll for completions" },
	{ 'q', ARG_NONE, "sqpoll", &opt.sqpoll, 0, 0,
	  "a kernel thread submits" },
	{ 'N', ARG_NONE, "nowait", &opt.nowait, 0, 0,
	  "RWF_NOWAIT; what returns EAGAIN is sent again" },
	{ 'u', ARG_NONE, "passthrough", &opt.passthrough, 0, 0,
	  "NVMe commands to an ngXnY device (not for write)" },
	{ 'B', ARG_NONE, "buffered", &opt.buffered, 0, 0,
	  "through the page cache" },
	{ 'F', ARG_NONE, "no-fixed", &opt.no_fixed, 0, 0,
	  "files and buffers are not registered" },
	{ 'w', ARG_NONE, "wait-all", &opt.wait_all, 0, 0,
	  "submit a batch, wait for all of it: depth is --submit" },
	{ 'f', ARG_NUM, "fsync", &opt.fsync, 1, ULLONG_MAX,
	  "an fsync every so many writes" },
	{ 'S', ARG_NUM, "seed", &opt.seed, 0, ULLONG_MAX,
	  "of order and pattern [1]" },
	{ 'E', ARG_NONE, "allow-errors", &opt.allow_errors, 0, 0,
	  "count failed I/Os, and exit 0" },
	{ 'j', ARG_NONE, "json", &opt.json, 0, 0, "print a JSON object" },
	{ 'h', ARG_NONE, "help", NULL, 0, 0, "print this" },
	{ 0 }
};

static void help(void)
{
	size_t i;

	puts("Usage: plug_load [options] DEV [DEV...]\n\n"
	     "Several DEVs take turns I/O by I/O, so they share each plug. A\n"
	     "DEV's place in the list is part of the pattern written to it.\n"
	     "Sizes take k, m or g. Defaults are in brackets.\n");
	for (i = 0; options[i].name; i++)
		printf("  -%c, --%-13s %s\n", options[i].c, options[i].name,
		       options[i].help);
	puts("\nExit: 0 ok, 1 I/O error or wrong data, 2 usage, 3 stuck,\n"
	     "4 not supported here.");
	exit(0);
}

static int pick(const char *name, const char *const *names, const char *accepts)
{
	int i;

	for (i = 0; names[i]; i++) {
		if (!strcmp(names[i], optarg))
			return i;
	}
	die(EXIT_USAGE, "--%s: '%s' is unknown; accepted: %s", name, optarg,
	    accepts);
}

static __u64 number(size_t i)
{
	static const char suffixes[] = "kmg";
	const char *suffix;
	char *end;
	__u64 v;
	unsigned int shift = 0;

	errno = 0;
	v = strtoull(optarg, &end, 0);
	if (end != optarg && *end) {
		suffix = strchr(suffixes, *end | 0x20);
		if (suffix && !end[1]) {
			shift = 10 * (suffix - suffixes + 1);
			end++;
		}
	}
	if (errno || *end || *optarg < '0' || *optarg > '9' ||
	    v > ULLONG_MAX >> shift || v << shift < options[i].min ||
	    v << shift > options[i].max)
		die(EXIT_USAGE,
		    "--%s: '%s' is no integer from %llu to %llu (k, m, g)",
		    options[i].name, optarg, options[i].min,
		    options[i].max);
	return v << shift;
}

static void set_option(int c)
{
	size_t i = 0;

	while (options[i].name && options[i].c != c)
		i++;
	if (c == 'h')
		help();
	if (!options[i].name)
		die(EXIT_USAGE, "see plug_load --help for the options");
	switch (options[i].arg) {
	case ARG_NONE:
		*(int *)options[i].value = 1;
		break;
	case ARG_NUM:
		*(__u64 *)options[i].value = number(i);
		break;
	case ARG_RW:
		opt.rw = pick("rw", rw_names, "read, write, verify");
		break;
	case ARG_ACCESS:
		opt.access = pick("access", access_names,
				  "rand, seq, rand-once");
		break;
	}
}

static void check_options(void)
{
	if (opt.wait_all) {
		opt.depth = opt.submit;
		opt.complete = opt.submit;
	}
	if (opt.submit > opt.depth || opt.complete > opt.depth)
		die(EXIT_USAGE,
		    "--submit and --complete must be at most --depth (%llu)", opt.depth);
	if (opt.bs % SECTOR || opt.offset % SECTOR)
		die(EXIT_USAGE, "--bs and --offset must be multiples of %d",
		    SECTOR);
	if (opt.passthrough && (opt.rw == RW_WRITE || opt.nowait))
		die(EXIT_USAGE,
		    "--passthrough takes --rw read or verify, no --nowait");
	if (opt.fsync && (opt.rw != RW_WRITE || opt.polled))
		die(EXIT_USAGE, "--fsync takes --rw write, no --polled");
	if (opt.polled && opt.buffered)
		die(EXIT_USAGE, "--polled excludes --buffered");
}

static void parse(int argc, char **argv)
{
	struct option longopts[MAX_OPTIONS] = { 0 };
	char shortopts[2 * MAX_OPTIONS], *p = shortopts;
	size_t i;
	int c;

	for (i = 0; options[i].name; i++) {
		longopts[i].name = options[i].name;
		longopts[i].val = options[i].c;
		longopts[i].has_arg = options[i].arg != ARG_NONE;
		*p++ = options[i].c;
		if (options[i].arg != ARG_NONE)
			*p++ = ':';
	}
	*p = '\0';
	while ((c = getopt_long(argc, argv, shortopts, longopts, NULL)) != -1)
		set_option(c);
	for (; optind < argc; optind++) {
		if (nr_devs == MAX_DEVS)
			die(EXIT_USAGE, "at most %d DEVs", MAX_DEVS);
		devs[nr_devs++].path = argv[optind];
	}
	if (!nr_devs)
		die(EXIT_USAGE, "name a block device or file (--help)");
	check_options();
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	init_range();
	init_ring();
	init_slots();
	run.rng = mix(opt.seed);
	set_signals();
	do_run();
	report();
	if (run.unsupported)
		return EXIT_UNSUPPORTED;
	return run.errors && !opt.allow_errors ? EXIT_IO : 0;
}
