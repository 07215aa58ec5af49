// SPDX-License-Identifier: GPL-2.0
/*
 * plug_load: keep block devices busy through one io_uring ring, or libaio
 *
 * Every call of io_uring_enter() or io_submit() submits a batch, so every batch
 * is one plug.
 * - A batch holds --submit I/Os, which go to the devices in turn.
 * - While there is room for a further batch under --depth, nothing waits.
 * - Otherwise the call waits for --complete I/Os (the shape of fio's
 *   t/io_uring).
 * The program always ends: after --ios, --time, --ms or one pass over the
 * range, when all I/Os in flight fail in a row, or when nothing completes any
 * more.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <liburing.h>
#include <linux/aio_abi.h>
#include <linux/fs.h>
#include <linux/nvme_ioctl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

	MAX_AGAIN	= 10000, /* EAGAINs of an I/O, then it may wait */
	STUCK_SECONDS	= 30,	/* the kernel's own NVMe I/O timeout */
	MAX_DEVS	= 32,
	MAX_DEPTH	= 4096,
	MAX_BS		= 16 << 20,
	MAX_OPTIONS	= 40,
	SECTOR		= 512,
	FEISTEL_ROUNDS	= 4,
	NSEC_PER_SEC	= 1000000000,

	/* The latencies' histogram: linear steps in each power of two. */
	HIST_BITS	= 7,
	HIST_STEPS	= 1 << HIST_BITS,
	HIST_SIZE	= (65 - HIST_BITS) * HIST_STEPS,
};

enum rw { RW_READ, RW_WRITE, RW_VERIFY };
static const char *const rw_names[] = { "read", "write", "verify", NULL };

enum access { ACCESS_RAND, ACCESS_SEQ, ACCESS_RAND_ONCE };
static const char *const access_names[] = { "rand", "seq", "rand-once", NULL };

enum engine_nr { ENGINE_URING, ENGINE_LIBAIO };
static const char *const engine_names[] = { "uring", "libaio", NULL };

static struct {
	int rw, access, engine;
	__u64 bs, bs2, period, depth, submit, complete, ios, time, ms, offset;
	__u64 range, warmup, rate, mix, fsync, seed;
	int polled, sqpoll, nowait, passthrough, buffered, no_fixed;
	int wait_all, latency, allow_errors, json;
} opt = { .bs = 4096, .depth = 128, .submit = 32, .complete = 32, .seed = 1 };

static struct dev {
	const char *path;
	int fd;
	__u32 nsid;		/* passthrough only */
	unsigned int lba_shift;
	__u64 size;
	__u64 next;		/* where the next sequential I/O goes */
} devs[MAX_DEVS];
static unsigned int nr_devs;

enum op { OP_READ, OP_WRITE, OP_FSYNC };

/* One place in the queue: it owns a buffer and at most one I/O. */
struct slot {
	unsigned int dev;
	enum op op;
	__u64 off;
	__u64 start;	/* ns, only with --latency; 0: the I/O failed */
	void *buf;
	__u32 len;
	__u32 again;	/* EAGAINs in a row */
};

static struct run {
	struct slot *slots, **idle, **again;
	unsigned int nr_idle, nr_again, inflight, failed_in_row;
	struct size {
		__u64 len, blocks;	/* blocks per device */
	} sizes[2];
	__u64 range;	/* per device */
	__u64 issued, done, bytes, errors, retries, fsyncs, submits, rng;
	__u64 now;	/* ns; read once per round */
	__u64 begin, start, last, deadline;	/* ns */
	struct {
		__u64 done, bytes, cpu;
	} at_start;
	bool warming, stop, unsupported;
} run;

static struct {
	__u64 count, sum, max;
	__u64 bucket[HIST_SIZE];
} lat;

/* Set by signals. */
static int interrupted, ticked;

/* --- clocks and numbers --------------------------------------------------- */

static __u64 clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (__u64)ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static __u64 now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* With io_uring's own threads, which belong to the process. */
static __u64 cpu_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static void *xcalloc(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		die(EXIT_IO, "out of memory");
	return p;
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

/* --- what each I/O is ----------------------------------------------------- */

/* Phases do not disturb a sequence: it goes on where the last I/O ended. */
static __u64 next_in_sequence(struct dev *d, __u64 len)
{
	__u64 off = d->next;

	if (off + len > run.range)
		off = 0;
	d->next = off + len;
	return off;
}

static void place(struct slot *s, __u64 nth)
{
	struct size *size = &run.sizes[opt.period && nth / opt.period % 2];
	__u64 off;

	switch (opt.access) {
	case ACCESS_SEQ:
		off = next_in_sequence(&devs[s->dev], size->len);
		break;
	case ACCESS_RAND_ONCE:
		off = permute(nth / nr_devs, size->blocks) * size->len;
		break;
	default:
		off = mix(run.rng++) % size->blocks * size->len;
	}
	s->off = opt.offset + off;
	s->len = size->len;
}

static enum op op_of(__u64 nth)
{
	bool write = opt.rw == RW_WRITE;

	if (opt.mix)
		write = mix(opt.seed + nth) % 100 < opt.mix;
	return write ? OP_WRITE : OP_READ;
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

/* --- completions ---------------------------------------------------------- */

static void fail(struct slot *s, int res)
{
	static const char *const op_names[] = { NULL, "write", "fsync" };

	run.failed_in_row++;
	if (!run.errors++)
		fprintf(stderr, "plug_load: %s: %s at byte %llu: %s\n",
			devs[s->dev].path,
			op_names[s->op] ?: rw_names[opt.rw], s->off,
			res < 0 ? strerror(-res) :
			opt.passthrough ? "NVMe error status" :
			"short transfer");
	if (!run.done && (res == -EOPNOTSUPP || res == -ENOTTY))
		run.unsupported = true;
	/* No point in going on when nothing in flight gets through. */
	if (run.unsupported || run.failed_in_row >= opt.depth)
		run.stop = true;
	s->start = 0;
}

static void complete_slot(struct slot *s, int res)
{
	int want = s->op == OP_FSYNC || opt.passthrough ? 0 : s->len;

	run.inflight--;
	if (res == -EAGAIN && opt.nowait) {
		run.retries++;
		s->again++;
		run.again[run.nr_again++] = s;
		return;
	}
	s->again = 0;
	run.idle[run.nr_idle++] = s;
	if (res != want) {
		fail(s, res);
	} else if (opt.rw == RW_VERIFY && !check(s)) {
		run.errors++;
		s->start = 0;
	} else {
		run.failed_in_row = 0;
		if (s->op != OP_FSYNC) {
			run.done++;
			run.bytes += s->len;
		}
	}
}

/* --- latencies ------------------------------------------------------------ */

/*
 * Up to 2 * HIST_STEPS a bucket is one ns wide, above that 1/HIST_STEPS of a
 * power of two.
 */
static void add_latency(__u64 ns)
{
	unsigned int shift = 0;

	if (ns >> HIST_BITS)
		shift = 63 - __builtin_clzll(ns) - HIST_BITS;
	lat.bucket[shift * HIST_STEPS + (ns >> shift)]++;
	lat.count++;
	lat.sum += ns;
	if (ns > lat.max)
		lat.max = ns;
}

/* A bucket's I/Os are taken to lie evenly in it. */
static __u64 within_bucket(unsigned int i, double part)
{
	unsigned int shift = i < HIST_STEPS ? 0 : i / HIST_STEPS - 1;
	__u64 ns = (__u64)(i - shift * HIST_STEPS) << shift;

	ns += part * (1ULL << shift);
	return ns < lat.max ? ns : lat.max;
}

/* The latency that this many of 10000 I/Os do not exceed. */
static __u64 percentile(unsigned int per_10000)
{
	__u64 rank = (lat.count * per_10000 + 9999) / 10000;
	unsigned int i = 0;

	if (!lat.count)
		return 0;
	for (; rank > lat.bucket[i]; i++)
		rank -= lat.bucket[i];
	return within_bucket(i, (rank - 0.5) / lat.bucket[i]);
}

static void stamp(struct slot **slots, unsigned int n)
{
	__u64 now = now_ns();

	while (n--)
		slots[n]->start = now;
}

static void record_latencies(struct slot **slots, unsigned int n)
{
	for (; n--; slots++) {
		if ((*slots)->start && (*slots)->op != OP_FSYNC)
			add_latency(run.now - (*slots)->start);
	}
}

static __u64 largest_size(void)
{
	return opt.bs > opt.bs2 ? opt.bs : opt.bs2;
}

/* --- io_uring ------------------------------------------------------------- */

static struct io_uring ring;

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
	ret = io_uring_queue_init(opt.depth, &ring, flags);
	if (ret == -EINVAL) {
		/* Before 6.1 completions interrupt the task: slower. */
		flags &= ~(IORING_SETUP_SINGLE_ISSUER |
			   IORING_SETUP_DEFER_TASKRUN);
		ret = io_uring_queue_init(opt.depth, &ring, flags);
	}
	if (ret)
		die(EXIT_UNSUPPORTED, "cannot set up io_uring: %s",
		    strerror(-ret));
}

static void register_fixed(void)
{
	struct iovec *iov = xcalloc(opt.depth, sizeof(*iov));
	int fds[MAX_DEVS], ret;
	unsigned int i;

	for (i = 0; i < nr_devs; i++)
		fds[i] = devs[i].fd;
	for (i = 0; i < opt.depth; i++) {
		iov[i].iov_base = run.slots[i].buf;
		iov[i].iov_len = largest_size();
	}
	ret = io_uring_register_files(&ring, fds, nr_devs);
	if (!ret)
		ret = io_uring_register_buffers(&ring, iov, opt.depth);
	if (ret)
		die(EXIT_UNSUPPORTED,
		    "cannot register files and buffers: %s (try --no-fixed)",
		    strerror(-ret));
	free(iov);
}

static void uring_setup(void)
{
	init_ring();
	if (!opt.no_fixed)
		register_fixed();
}

/*
 * As programs do: what could not be done at once for long is allowed to wait.
 * A write next to a page that is cached returns EAGAIN for as long as that is.
 */
static int rw_flags(const struct slot *s)
{
	return opt.nowait && s->again < MAX_AGAIN ? RWF_NOWAIT : 0;
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
	cmd->data_len = s->len;
	cmd->cdw10 = slba;
	cmd->cdw11 = slba >> 32;
	cmd->cdw12 = (s->len >> d->lba_shift) - 1;
	if (!opt.no_fixed)
		sqe->uring_cmd_flags = IORING_URING_CMD_FIXED;
}

static void prep_data(struct io_uring_sqe *sqe, struct slot *s)
{
	bool write = s->op == OP_WRITE;
	int op;

	if (opt.passthrough) {
		prep_passthrough(sqe, s);
		return;
	}
	if (opt.no_fixed)
		op = write ? IORING_OP_WRITE : IORING_OP_READ;
	else
		op = write ? IORING_OP_WRITE_FIXED : IORING_OP_READ_FIXED;
	io_uring_prep_rw(op, sqe, devs[s->dev].fd, s->buf, s->len, s->off);
	sqe->rw_flags = rw_flags(s);
}

static void uring_queue(struct slot *s)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	/* Cannot be: the ring has an entry for every slot. */
	if (!sqe)
		die(EXIT_IO, "the submission ring is full");
	if (s->op == OP_FSYNC)
		io_uring_prep_fsync(sqe, devs[s->dev].fd, 0);
	else
		prep_data(sqe, s);
	if (!opt.no_fixed) {
		sqe->fd = s->dev;
		sqe->flags |= IOSQE_FIXED_FILE;
		if (s->op != OP_FSYNC)
			sqe->buf_index = s - run.slots;
	}
	io_uring_sqe_set_data(sqe, s);
}

static int uring_submit_and_wait(unsigned int want, __u64 timeout)
{
	struct __kernel_timespec ts;
	struct io_uring_cqe *cqe;

	if (!timeout)
		return io_uring_submit_and_wait(&ring, want);
	ts.tv_sec = timeout / NSEC_PER_SEC;
	ts.tv_nsec = timeout % NSEC_PER_SEC;
	return io_uring_submit_and_wait_timeout(&ring, &cqe, want, &ts, NULL);
}

static unsigned int uring_drop_unsent(void)
{
	return io_uring_sq_ready(&ring);
}

static void uring_wait(void)
{
	struct io_uring_cqe *cqe;

	io_uring_wait_cqe(&ring, &cqe);
}

static void uring_reap(__u64 limit)
{
	struct io_uring_cqe *cqe;
	unsigned int head, n = 0;

	io_uring_for_each_cqe(&ring, head, cqe) {
		if (n == limit)
			break;
		complete_slot(io_uring_cqe_get_data(cqe), cqe->res);
		n++;
	}
	io_uring_cq_advance(&ring, n);
}

/* --- libaio's system calls, without the library --------------------------- */

static struct {
	aio_context_t ctx;
	struct iocb *iocbs;	/* one per slot */
	struct iocb **unsent;
	struct io_event *events;
	unsigned int nr_unsent, nr_events, next_event;
} aio;

static void aio_setup(void)
{
	if (syscall(SYS_io_setup, (unsigned int)opt.depth, &aio.ctx))
		die(EXIT_UNSUPPORTED, "cannot set up libaio: %s%s",
		    strerror(errno), errno != EAGAIN ? "" :
		    " (--depth exceeds what /proc/sys/fs/aio-max-nr leaves)");
	aio.iocbs = xcalloc(opt.depth, sizeof(*aio.iocbs));
	aio.unsent = xcalloc(opt.depth, sizeof(*aio.unsent));
	aio.events = xcalloc(opt.depth, sizeof(*aio.events));
}

static void aio_queue(struct slot *s)
{
	struct iocb *iocb = &aio.iocbs[s - run.slots];

	memset(iocb, 0, sizeof(*iocb));
	iocb->aio_data = (uintptr_t)s;
	iocb->aio_fildes = devs[s->dev].fd;
	if (s->op == OP_FSYNC) {
		iocb->aio_lio_opcode = IOCB_CMD_FSYNC;
	} else {
		iocb->aio_lio_opcode = s->op == OP_WRITE ? IOCB_CMD_PWRITE :
							   IOCB_CMD_PREAD;
		iocb->aio_buf = (uintptr_t)s->buf;
		iocb->aio_nbytes = s->len;
		iocb->aio_offset = s->off;
		iocb->aio_rw_flags = rw_flags(s);
	}
	aio.unsent[aio.nr_unsent++] = iocb;
}

static int aio_get_events(unsigned int want, __u64 timeout)
{
	struct timespec ts = {
		.tv_sec = timeout / NSEC_PER_SEC,
		.tv_nsec = timeout % NSEC_PER_SEC,
	};
	long n;

	/* The end of the warm-up left some over. */
	if (aio.nr_events)
		return 0;
	n = syscall(SYS_io_getevents, aio.ctx, (long)want, (long)opt.depth,
		    aio.events, timeout ? &ts : NULL);
	if (n < 0)
		return -errno;
	aio.nr_events = n;
	aio.next_event = 0;
	return 0;
}

/* The kernel may take part of a batch: the rest is kept for the next call. */
static int aio_submit(void)
{
	long n = syscall(SYS_io_submit, aio.ctx, (long)aio.nr_unsent,
			 aio.unsent);

	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	aio.nr_unsent -= n;
	memmove(aio.unsent, aio.unsent + n,
		aio.nr_unsent * sizeof(*aio.unsent));
	return 0;
}

static int aio_submit_and_wait(unsigned int want, __u64 timeout)
{
	unsigned int sent;
	int ret;

	if (aio.nr_unsent) {
		ret = aio_submit();
		if (ret)
			return ret;
	}
	sent = run.inflight - aio.nr_unsent;
	return aio_get_events(want < sent ? want : sent, timeout);
}

static unsigned int aio_drop_unsent(void)
{
	unsigned int n = aio.nr_unsent;

	aio.nr_unsent = 0;
	return n;
}

static void aio_wait(void)
{
	aio_get_events(1, 0);
}

static void aio_reap(__u64 limit)
{
	struct io_event *event;

	for (; aio.nr_events && limit; limit--) {
		event = &aio.events[aio.next_event++];
		aio.nr_events--;
		complete_slot((void *)(uintptr_t)event->data, event->res);
	}
}

/* --- the run -------------------------------------------------------------- */

static const struct engine {
	const char *call;	/* for messages */
	void (*setup)(void);
	void (*queue)(struct slot *s);
	/* Waits at most timeout ns, unless that is 0; returns -errno. */
	int (*submit_and_wait)(unsigned int want, __u64 timeout);
	/* Forgets what the kernel has not taken; returns how many. */
	unsigned int (*drop_unsent)(void);
	/* For any one completion, or a signal. */
	void (*wait)(void);
	/* Calls complete_slot() for what has completed, up to limit. */
	void (*reap)(__u64 limit);
} engines[] = {
	[ENGINE_URING] = {
		"io_uring_enter", uring_setup, uring_queue,
		uring_submit_and_wait, uring_drop_unsent, uring_wait,
		uring_reap,
	},
	[ENGINE_LIBAIO] = {
		"io_submit or io_getevents", aio_setup, aio_queue,
		aio_submit_and_wait, aio_drop_unsent, aio_wait, aio_reap,
	},
}, *engine;

static void queue_slot(struct slot *s)
{
	engine->queue(s);
	run.inflight++;
}

static void queue_next(void)
{
	struct slot *s = run.idle[--run.nr_idle];
	__u64 nth = run.issued;

	s->dev = nth % nr_devs;
	/* The fsync goes in between, to the device written last. */
	if (opt.fsync && nth && run.fsyncs < nth / opt.fsync) {
		s->op = OP_FSYNC;
		s->dev = (nth - 1) % nr_devs;
		run.fsyncs++;
	} else {
		s->op = op_of(nth);
		place(s, nth);
		if (opt.rw == RW_WRITE)
			fill(s);
		run.issued++;
	}
	queue_slot(s);
}

static bool more_to_queue(void)
{
	return !run.stop && (run.nr_again || run.issued < opt.ios);
}

/* --rate: when the next batch may go */
static __u64 batch_time(void)
{
	return run.begin + run.issued * ((double)NSEC_PER_SEC / opt.rate);
}

static void queue_batch(void)
{
	unsigned int n = 0, idle = run.nr_idle;

	if (__atomic_load_n(&interrupted, __ATOMIC_RELAXED) ||
	    run.now >= run.deadline)
		run.stop = true;
	if (run.stop || (opt.rate && run.now < batch_time()))
		return;
	for (; run.nr_again && n < opt.submit; n++)
		queue_slot(run.again[--run.nr_again]);
	for (; run.nr_idle && run.issued < opt.ios && n < opt.submit; n++)
		queue_next();
	/* What is sent again keeps the time of the first try. */
	if (opt.latency)
		stamp(&run.idle[run.nr_idle], idle - run.nr_idle);
}

static bool room_for_batch(void)
{
	return more_to_queue() && run.inflight + opt.submit <= opt.depth;
}

static unsigned int completions_to_await(void)
{
	unsigned int want = opt.complete;

	/* With a partial batch's room left, fewer must do. */
	return want < run.inflight ? want : run.inflight;
}

/* With --rate, completions are not left lying until the next batch's time. */
static int submit_until_batch_time(void)
{
	__u64 due = batch_time(), now = now_ns();
	struct timespec ts = {
		.tv_sec = due / NSEC_PER_SEC, .tv_nsec = due % NSEC_PER_SEC,
	};

	/* A wait that polls has no time limit. */
	if (now >= due || opt.polled)
		return engine->submit_and_wait(0, 0);
	if (run.inflight)
		return engine->submit_and_wait(completions_to_await(),
					       due - now);
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
	return 0;
}

/* Returns false when the kernel will take no more. */
static bool submit_and_wait(void)
{
	int ret;

	if (!room_for_batch())
		ret = engine->submit_and_wait(completions_to_await(), 0);
	else if (opt.rate)
		ret = submit_until_batch_time();
	else
		ret = engine->submit_and_wait(0, 0);
	run.submits++;
	if (ret >= 0)
		return true;
	/* EINTR: the timer below. EAGAIN, EBUSY: reap first. ETIME: --rate. */
	if (ret == -EINTR || ret == -EAGAIN || ret == -EBUSY || ret == -ETIME)
		return true;
	run.errors++;
	run.inflight -= engine->drop_unsent();
	fprintf(stderr, "plug_load: %s: %s\n", engine->call, strerror(-ret));
	if (!run.done && ret == -EOPNOTSUPP)
		run.unsupported = true;
	return false;
}

/* What has completed up to here does not count. */
static void start_clocks(void)
{
	run.warming = false;
	run.start = run.now;
	if (opt.time || opt.ms)
		run.deadline = run.start + opt.time * NSEC_PER_SEC +
			       opt.ms * (NSEC_PER_SEC / 1000);
	run.at_start.done = run.done;
	run.at_start.bytes = run.bytes;
	run.at_start.cpu = cpu_ns();
}

static void print_field(const char *name, __u64 value)
{
	static bool more;

	if (opt.json)
		printf("%s\"%s\": %llu", more ? ", " : "{", name, value);
	else
		printf("%s%s=%llu", more ? " " : "", name, value);
	more = true;
}

static void report(void)
{
	__u64 ns, ios, cpu = cpu_ns();

	if (run.warming) {
		fprintf(stderr, "plug_load: ended within the --warmup\n");
		start_clocks();
		cpu = run.at_start.cpu;
	}
	ns = run.last > run.start ? run.last - run.start : 1;
	ios = run.done - run.at_start.done;
	print_field("ios", ios);
	print_field("bytes", run.bytes - run.at_start.bytes);
	print_field("ns", ns);
	print_field("iops", ios * 1e9 / ns + 0.5);
	print_field("errors", run.errors);
	print_field("submits", run.submits);
	print_field("fsyncs", run.fsyncs);
	print_field("retries", run.retries);
	print_field("cpu_ns", cpu - run.at_start.cpu);
	if (opt.latency) {
		print_field("lat_mean", lat.count ? lat.sum / lat.count : 0);
		print_field("lat_p50", percentile(5000));
		print_field("lat_p99", percentile(9900));
		print_field("lat_p999", percentile(9990));
		print_field("lat_max", lat.max);
	}
	puts(opt.json ? "}" : "");
	fflush(stdout);
}

static void check_stuck(void)
{
	if (!__atomic_exchange_n(&ticked, 0, __ATOMIC_RELAXED))
		return;
	if (run.now - run.last < (__u64)STUCK_SECONDS * NSEC_PER_SEC)
		return;
	fprintf(stderr,
		"plug_load: stuck: no completion for %d s, %u in flight\n",
		STUCK_SECONDS, run.inflight);
	report();
	/* exit() would wait for the ring. (For libaio the kernel does.) */
	_exit(EXIT_STUCK);
}

/*
 * A round: one reading of the clock serves all that has completed. That is now
 * behind nr_idle's old value in the order of completion, unless it goes again.
 */
static void reap(void)
{
	unsigned int idle = run.nr_idle;

	run.now = now_ns();
	engine->reap(run.warming ? opt.warmup - run.done : ULLONG_MAX);
	if (run.nr_idle != idle)
		run.last = run.now;
	if (run.warming && run.done == opt.warmup)
		start_clocks();
	else if (opt.latency && !run.warming)
		record_latencies(&run.idle[idle], run.nr_idle - idle);
	check_stuck();
}

static void drain(void)
{
	while (run.inflight) {
		engine->wait();
		reap();
	}
}

static void do_run(void)
{
	run.now = now_ns();
	run.begin = run.now;
	run.last = run.now;
	run.deadline = ULLONG_MAX;
	run.warming = opt.warmup;
	if (!run.warming)
		start_clocks();
	for (;;) {
		if (run.nr_idle || run.nr_again)
			queue_batch();
		if (!run.inflight && !more_to_queue())
			return;
		if (!submit_and_wait())
			break;
		reap();
	}
	drain();
}

/* --- set-up --------------------------------------------------------------- */

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

static void init_slots(void)
{
	__u64 size = largest_size();
	char *mem;
	unsigned int i;

	if (posix_memalign((void **)&mem, 4096, opt.depth * size))
		die(EXIT_IO, "out of memory for %llu buffers of %llu bytes", opt.depth, size);
	memset(mem, 0, opt.depth * size);
	run.slots = xcalloc(opt.depth, sizeof(*run.slots));
	run.idle = xcalloc(opt.depth, sizeof(*run.idle));
	run.again = xcalloc(opt.depth, sizeof(*run.again));
	for (i = 0; i < opt.depth; i++) {
		run.slots[i].buf = mem + i * size;
		run.idle[run.nr_idle++] = &run.slots[i];
	}
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
	int flags = opt.rw == RW_WRITE || opt.mix ? O_RDWR : O_RDONLY;
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
	if (opt.passthrough &&
	    (opt.bs | opt.bs2) & ((1ULL << d->lba_shift) - 1))
		die(EXIT_USAGE, "--bs and --bs2 must be multiples of %u on %s",
		    1U << d->lba_shift, d->path);
}

static void init_sizes(void)
{
	run.sizes[0].len = opt.bs;
	run.sizes[1].len = opt.bs2 ?: opt.bs;
	run.sizes[0].blocks = run.range / run.sizes[0].len;
	run.sizes[1].blocks = run.range / run.sizes[1].len;
	if (!run.sizes[0].blocks || !run.sizes[1].blocks)
		die(EXIT_USAGE,
		    "--range must hold a block of --bs, and of --bs2");
}

static void init_range(void)
{
	__u64 room = ULLONG_MAX;
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
	run.range = opt.range ? opt.range : room - opt.offset;
	init_sizes();
}

static void init_ios(void)
{
	__u64 pass = run.sizes[0].blocks * nr_devs;
	bool run_time = opt.time || opt.ms;

	if (opt.access == ACCESS_RAND_ONCE && opt.ios > pass)
		die(EXIT_USAGE, "--ios must be at most %llu to touch each block once", pass);
	if (!opt.ios)
		opt.ios = run_time && opt.access != ACCESS_RAND_ONCE ?
			  ULLONG_MAX : pass;
	if (opt.warmup >= opt.ios)
		die(EXIT_USAGE,
		    "--warmup must be less than the %llu I/Os in all (--ios)",
		    opt.ios);
}

/* --- the command line ----------------------------------------------------- */

enum arg { ARG_NONE, ARG_NUM, ARG_RW, ARG_ACCESS, ARG_ENGINE };

static const char *const *const names_of[] = {
	[ARG_RW] = rw_names,
	[ARG_ACCESS] = access_names,
	[ARG_ENGINE] = engine_names,
};

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
	{ 'm', ARG_NUM, "mix", &opt.mix, 0, 100,
	  "percentage of writes with --rw read, of any data [0]" },
	{ 'a', ARG_ACCESS, "access", &opt.access, 0, 0,
	  "rand, seq or rand-once (each block once) [rand]" },
	{ 'e', ARG_ENGINE, "engine", &opt.engine, 0, 0,
	  "uring or libaio (files, buffers not registered) [uring]" },
	{ 'b', ARG_NUM, "bs", &opt.bs, SECTOR, MAX_BS, "block size [4k]" },
	{ '2', ARG_NUM, "bs2", &opt.bs2, SECTOR, MAX_BS,
	  "block size of every second --period (only --rw read)" },
	{ 'p', ARG_NUM, "period", &opt.period, 1, ULLONG_MAX,
	  "I/Os until --bs and --bs2 change places" },
	{ 'd', ARG_NUM, "depth", &opt.depth, 1, MAX_DEPTH,
	  "I/Os in flight [128]" },
	{ 's', ARG_NUM, "submit", &opt.submit, 1, MAX_DEPTH,
	  "I/Os per submission, and so per plug [32]" },
	{ 'c', ARG_NUM, "complete", &opt.complete, 1, MAX_DEPTH,
	  "completions to wait for [32]" },
	{ 'n', ARG_NUM, "ios", &opt.ios, 1, ULLONG_MAX,
	  "I/Os in all [one pass over the range]" },
	{ 't', ARG_NUM, "time", &opt.time, 1, 1 << 20,
	  "seconds to run, after the --warmup" },
	{ 'T', ARG_NUM, "ms", &opt.ms, 1, 1 << 30,
	  "the same in ms; both add up" },
	{ 'W', ARG_NUM, "warmup", &opt.warmup, 0, ULLONG_MAX,
	  "let so many I/Os complete before ios, bytes, ns, iops,\n"
	  "\t\t      cpu_ns and latencies begin to count [0]" },
	{ 'R', ARG_NUM, "rate", &opt.rate, 1, NSEC_PER_SEC,
	  "I/Os per second at most, batch by batch [no limit]" },
	{ 'o', ARG_NUM, "offset", &opt.offset, 0, LLONG_MAX,
	  "first byte used [0]" },
	{ 'z', ARG_NUM, "range", &opt.range, 1, LLONG_MAX,
	  "bytes used from there [to the end]" },
	{ 'P', ARG_NONE, "polled", &opt.polled, 0, 0, "poll for completions" },
	{ 'q', ARG_NONE, "sqpoll", &opt.sqpoll, 0, 0,
	  "a kernel thread submits" },
	{ 'N', ARG_NONE, "nowait", &opt.nowait, 0, 0,
	  "RWF_NOWAIT; what returns EAGAIN is sent again, and after\n"
	  "\t\t      10000 times without it" },
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
	{ 'l', ARG_NONE, "latency", &opt.latency, 0, 0,
	  "report lat_mean, _p50, _p99, _p999, _max in ns: from a\n"
	  "\t\t      batch's submission to the end of the wait (see -c)" },
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

static int pick(const char *option, const char *const *names)
{
	char accepted[64] = "";
	int i;

	for (i = 0; names[i]; i++) {
		if (!strcmp(names[i], optarg))
			return i;
		strcat(strcat(accepted, i ? ", " : ""), names[i]);
	}
	die(EXIT_USAGE, "--%s: '%s' is unknown; accepted: %s", option, optarg,
	    accepted);
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
	case ARG_ACCESS:
	case ARG_ENGINE:
		*(int *)options[i].value = pick(options[i].name,
						names_of[options[i].arg]);
		break;
	}
}

static void check_sizes(void)
{
	if (opt.submit > opt.depth || opt.complete > opt.depth)
		die(EXIT_USAGE,
		    "--submit and --complete must be at most --depth (%llu)", opt.depth);
	if (opt.bs % SECTOR || opt.bs2 % SECTOR || opt.offset % SECTOR)
		die(EXIT_USAGE,
		    "--bs, --bs2 and --offset must be multiples of %d", SECTOR);
	if (!opt.bs2 != !opt.period)
		die(EXIT_USAGE, "--bs2 and --period take each other");
	/* Else ticks would find no progress between two batches. */
	if (opt.rate && opt.rate < opt.submit)
		die(EXIT_USAGE, "--rate must be at least --submit (%llu)", opt.submit);
}

static void check_combinations(void)
{
	if (opt.passthrough && (opt.rw == RW_WRITE || opt.nowait))
		die(EXIT_USAGE,
		    "--passthrough takes --rw read or verify, no --nowait");
	if (opt.fsync && (opt.rw != RW_WRITE || opt.polled))
		die(EXIT_USAGE, "--fsync takes --rw write, no --polled");
	if (opt.polled && opt.buffered)
		die(EXIT_USAGE, "--polled excludes --buffered");
	if (opt.mix && (opt.rw != RW_READ || opt.passthrough))
		die(EXIT_USAGE, "--mix takes --rw read, no --passthrough");
	if (opt.bs2 && (opt.rw != RW_READ || opt.access == ACCESS_RAND_ONCE))
		die(EXIT_USAGE, "--bs2 takes --rw read, --access rand or seq");
	if (opt.engine == ENGINE_LIBAIO &&
	    (opt.polled || opt.sqpoll || opt.passthrough))
		die(EXIT_USAGE,
		    "--engine libaio excludes --polled, --sqpoll and --passthrough");
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
	if (opt.wait_all) {
		opt.depth = opt.submit;
		opt.complete = opt.submit;
	}
	check_sizes();
	check_combinations();
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	init_range();
	init_ios();
	init_slots();
	engine = &engines[opt.engine];
	engine->setup();
	run.rng = mix(opt.seed);
	set_signals();
	do_run();
	report();
	if (run.unsupported)
		return EXIT_UNSUPPORTED;
	return run.errors && !opt.allow_errors ? EXIT_IO : 0;
}
