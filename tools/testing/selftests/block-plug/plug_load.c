// SPDX-License-Identifier: GPL-2.0
/*
 * plug_load: keep block devices busy through one io_uring ring
 *
 * Every call of io_uring_enter() submits a batch, so every batch is one plug.
 * - A batch holds --submit I/Os, which go to the devices in turn.
 * - While there is room for a further batch under --depth, nothing waits.
 * - Otherwise the call waits for --complete I/Os (the shape of fio's
 *   t/io_uring).
 * The program always ends: after --ios, --time or one pass over the range, when
 * all I/Os in flight fail in a row, or when nothing completes any more.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <liburing.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

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
	NSEC_PER_SEC	= 1000000000,
};

/* Steps of this size, modulo the number of blocks, meet each block once. */
#define PRIME 2654435761ULL

enum rw { RW_READ, RW_WRITE, RW_VERIFY };
static const char *const rw_names[] = { "read", "write", "verify", NULL };

enum access { ACCESS_RAND, ACCESS_SEQ, ACCESS_RAND_ONCE };
static const char *const access_names[] = { "rand", "seq", "rand-once", NULL };

static struct {
	int rw, access, polled, sqpoll, nowait;
	__u64 bs, depth, submit, complete, ios, time, offset, range, mix, seed;
} opt = { .bs = 4096, .depth = 128, .submit = 32, .complete = 32, .seed = 1 };

static struct dev {
	const char *path;
	int fd;
	__u64 next;		/* where the next sequential I/O goes */
} devs[MAX_DEVS];
static unsigned int nr_devs;

/* One place in the queue: it owns a buffer and at most one I/O. */
struct slot {
	unsigned int dev;
	bool write;
	__u32 len;
	__u32 again;	/* EAGAINs in a row */
	__u64 off;
	void *buf;
};

static struct {
	struct slot slots[MAX_DEPTH], *idle[MAX_DEPTH];
	unsigned int nr_idle, inflight, failed_in_row;
	__u64 range, blocks;	/* per device */
	__u64 issued, done, bytes, errors, retries, rng;
	__u64 now, start, last, deadline;	/* ns */
	bool stop, unsupported;
} run;

static __u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (__u64)ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* --- what each I/O is ----------------------------------------------------- */

/* splitmix64: short, and the same everywhere */
static __u64 mix(__u64 x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

static __u64 next_in_sequence(struct dev *d)
{
	__u64 off = d->next;

	if (off + opt.bs > run.range)
		off = 0;
	d->next = off + opt.bs;
	return off;
}

static void place(struct slot *s, __u64 nth)
{
	__u64 off;

	switch (opt.access) {
	case ACCESS_SEQ:
		off = next_in_sequence(&devs[s->dev]);
		break;
	case ACCESS_RAND_ONCE:
		off = (nth / nr_devs * PRIME + opt.seed) % run.blocks * opt.bs;
		break;
	default:
		off = mix(run.rng++) % run.blocks * opt.bs;
	}
	s->off = opt.offset + off;
	s->len = opt.bs;
}

static bool is_write(__u64 nth)
{
	if (opt.mix)
		return mix(opt.seed + nth) % 100 < opt.mix;
	return opt.rw == RW_WRITE;
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

	for (i = 0; i < s->len; i += sizeof(*word))
		*word++ = pattern(s, i);
}

static bool check(struct slot *s)
{
	__u64 *word = s->buf, i;

	for (i = 0; i < s->len; i += sizeof(*word), word++) {
		if (*word == pattern(s, i))
			continue;
		if (!run.errors)
			warnx("%s: wrong data at byte %llu: found %016llx, not %016llx",
			      devs[s->dev].path, s->off + i, *word,
			      pattern(s, i));
		return false;
	}
	return true;
}

/* --- completions ---------------------------------------------------------- */

static void fail(struct slot *s, int res)
{
	run.failed_in_row++;
	if (!run.errors++)
		warnx("%s: %s at byte %llu: %s", devs[s->dev].path,
		      s->write ? "write" : "read", s->off,
		      res < 0 ? strerror(-res) : "short transfer");
	run.unsupported |= !run.done && res == -EOPNOTSUPP;
	/* No point in going on when nothing in flight gets through. */
	if (run.unsupported || run.failed_in_row >= opt.depth)
		run.stop = true;
}

static void queue_slot(struct slot *s);

static void complete_slot(struct slot *s, int res)
{
	run.inflight--;
	if (res == -EAGAIN && opt.nowait) {
		run.retries++;
		s->again++;
		queue_slot(s);
		return;
	}
	s->again = 0;
	run.idle[run.nr_idle++] = s;
	if (res != (int)s->len) {
		fail(s, res);
	} else if (opt.rw == RW_VERIFY && !check(s)) {
		run.errors++;
	} else {
		run.failed_in_row = 0;
		run.done++;
		run.bytes += s->len;
	}
}

/* --- io_uring ------------------------------------------------------------- */

static struct io_uring ring;

static void init_ring(void)
{
	static struct iovec iov[MAX_DEPTH];
	unsigned int i, flags = opt.polled ? IORING_SETUP_IOPOLL : 0;
	int fds[MAX_DEVS], ret;

	flags |= opt.sqpoll ? IORING_SETUP_SQPOLL :
		 IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
	ret = io_uring_queue_init(opt.depth, &ring, flags);
	for (i = 0; i < nr_devs; i++)
		fds[i] = devs[i].fd;
	for (i = 0; i < opt.depth; i++) {
		iov[i].iov_base = run.slots[i].buf;
		iov[i].iov_len = opt.bs;
	}
	ret = ret ?: io_uring_register_files(&ring, fds, nr_devs);
	ret = ret ?: io_uring_register_buffers(&ring, iov, opt.depth);
	if (ret)
		errx(EXIT_UNSUPPORTED, "cannot set up io_uring: %s",
		     strerror(-ret));
}

static void queue_slot(struct slot *s)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	/* Cannot be: the ring has an entry for every slot. */
	if (!sqe)
		errx(EXIT_IO, "the submission ring is full");
	io_uring_prep_rw(s->write ? IORING_OP_WRITE_FIXED :
				    IORING_OP_READ_FIXED,
			 sqe, s->dev, s->buf, s->len, s->off);
	/* As programs do: what could not be done at once for long may wait. */
	if (opt.nowait && s->again < MAX_AGAIN)
		sqe->rw_flags = RWF_NOWAIT;
	sqe->flags |= IOSQE_FIXED_FILE;
	sqe->buf_index = s - run.slots;
	io_uring_sqe_set_data(sqe, s);
	run.inflight++;
}

static void reap_ring(void)
{
	struct io_uring_cqe *cqe;
	unsigned int head, n = 0;

	io_uring_for_each_cqe(&ring, head, cqe) {
		complete_slot(io_uring_cqe_get_data(cqe), cqe->res);
		n++;
	}
	io_uring_cq_advance(&ring, n);
}

/* --- the run -------------------------------------------------------------- */

/* Takes an idle slot, and decides what it does. */
static struct slot *next_slot(void)
{
	struct slot *s = run.idle[--run.nr_idle];
	__u64 nth = run.issued++;

	s->dev = nth % nr_devs;
	s->write = is_write(nth);
	place(s, nth);
	if (opt.rw == RW_WRITE)
		fill(s);
	return s;
}

static bool more_to_queue(void)
{
	return !run.stop && run.issued < opt.ios;
}

static void queue_batch(void)
{
	unsigned int n;

	if (run.now >= run.deadline)
		run.stop = true;
	for (n = 0; n < opt.submit && run.nr_idle && more_to_queue(); n++)
		queue_slot(next_slot());
}

static bool room_for_batch(void)
{
	return more_to_queue() && run.inflight + opt.submit <= opt.depth;
}

/* With a partial batch's room left, fewer must do. */
static unsigned int to_await(void)
{
	return opt.complete < run.inflight ? opt.complete : run.inflight;
}

/* Returns false when the kernel has said that it will take no more. */
static bool accepted(int ret)
{
	/* EINTR: on_tick(). EAGAIN, EBUSY: reap first. */
	if (ret >= 0 || ret == -EINTR || ret == -EAGAIN || ret == -EBUSY)
		return true;
	if (!run.errors++)
		warnx("cannot submit: %s", strerror(-ret));
	run.unsupported |= !run.done && ret == -EOPNOTSUPP;
	return false;
}

static void report(void)
{
	printf("ios=%llu bytes=%llu ns=%llu errors=%llu retries=%llu\n",
	       run.done, run.bytes, run.last - run.start, run.errors,
	       run.retries);
	fflush(stdout);
}

static void start_clocks(void)
{
	run.now = now_ns();
	run.start = run.now;
	run.last = run.now;
	run.deadline = opt.time ? run.start + opt.time * NSEC_PER_SEC :
				  ULLONG_MAX;
}

static void do_run(void)
{
	unsigned int want;
	bool going = true;
	__u64 done;

	start_clocks();
	while (going || run.inflight) {
		if (going)
			queue_batch();
		going = more_to_queue();
		if (!run.inflight)
			continue;
		want = room_for_batch() ? 0 : to_await();
		if (!accepted(io_uring_submit_and_wait(&ring, want)))
			return;
		/* One reading of the clock serves all that has completed. */
		run.now = now_ns();
		done = run.done;
		reap_ring();
		if (run.done != done)
			run.last = run.now;
	}
}

/* --- set-up --------------------------------------------------------------- */

/*
 * Once a second. It also ends a wait in io_uring_enter(), with EINTR, after
 * which a partial batch may be submitted.
 */
static void on_tick(int sig)
{
	static const char text[] = "plug_load: stuck: nothing completes\n";
	static __u64 seen;
	static int ticks;

	(void)sig;
	ticks = seen == run.done + run.errors + run.retries ? ticks + 1 : 0;
	seen = run.done + run.errors + run.retries;
	/* exit() would wait for the ring. */
	if (ticks > STUCK_SECONDS && write(2, text, sizeof(text) - 1) > 0)
		_exit(EXIT_STUCK);
}

static void start_ticks(void)
{
	const struct sigaction sa = { .sa_handler = on_tick };
	const struct itimerval tick = { { 1, 0 }, { 1, 0 } };

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &tick, NULL);
}

static void init_slots(void)
{
	char *mem = aligned_alloc(4096, (opt.depth * opt.bs + 4095) & ~4095ULL);
	unsigned int i;

	if (!mem)
		errx(EXIT_IO, "out of memory for %llu buffers of %llu bytes",
		     opt.depth, opt.bs);
	memset(mem, 0, opt.depth * opt.bs);
	for (i = 0; i < opt.depth; i++) {
		run.slots[i].buf = mem + i * opt.bs;
		run.idle[run.nr_idle++] = &run.slots[i];
	}
	run.rng = mix(opt.seed);
}

/* Returns its size. */
static __u64 open_dev(struct dev *d)
{
	int flags = opt.rw == RW_WRITE || opt.mix ? O_RDWR : O_RDONLY;
	off_t size;

	d->fd = open(d->path, flags | O_DIRECT);
	if (d->fd < 0)
		err(EXIT_USAGE, "%s", d->path);
	size = lseek(d->fd, 0, SEEK_END);
	if (size < 0)
		err(EXIT_USAGE, "%s: no size", d->path);
	return size;
}

static void init_range(void)
{
	__u64 room = ULLONG_MAX, size, pass;
	unsigned int i;

	for (i = 0; i < nr_devs; i++) {
		size = open_dev(&devs[i]);
		if (size < room)
			room = size;
	}
	if (opt.offset + opt.bs > room || opt.range > room - opt.offset)
		errx(EXIT_USAGE,
		     "--offset and --range must lie within %llu bytes", room);
	run.range = opt.range ?: room - opt.offset;
	run.blocks = run.range / opt.bs;
	if (!run.blocks)
		errx(EXIT_USAGE, "--range must hold a block");
	pass = run.blocks * nr_devs;
	if (!opt.ios)
		opt.ios = opt.time && opt.access != ACCESS_RAND_ONCE ?
			  ULLONG_MAX : pass;
	if (opt.access == ACCESS_RAND_ONCE && opt.ios > pass)
		errx(EXIT_USAGE,
		     "--ios must be at most %llu to touch each block once",
		     pass);
}

/* --- the command line ----------------------------------------------------- */

/* Without names and max, it is a flag. */
struct row {
	char c;
	const char *name;
	void *value;
	const char *const *names;
	__u64 min, max;
	const char *help;
};

static const struct row rows[] = {
	{ 'r', "rw", &opt.rw, rw_names, 0, 0, "read, write or verify [read]" },
	{ 'm', "mix", &opt.mix, NULL, 0, 100, "percentage of writes [0]" },
	{ 'a', "access", &opt.access, access_names, 0, 0,
	  "rand, seq or rand-once (each block once) [rand]" },
	{ 'b', "bs", &opt.bs, NULL, SECTOR, MAX_BS, "block size [4k]" },
	{ 'd', "depth", &opt.depth, NULL, 1, MAX_DEPTH, "in flight [128]" },
	{ 's', "submit", &opt.submit, NULL, 1, MAX_DEPTH, "I/Os per plug [32]" },
	{ 'c', "complete", &opt.complete, NULL, 1, MAX_DEPTH,
	  "completions to wait for [32]" },
	{ 'n', "ios", &opt.ios, NULL, 1, ULLONG_MAX,
	  "I/Os in all [one pass over the range]" },
	{ 't', "time", &opt.time, NULL, 1, 1 << 20, "seconds to run" },
	{ 'o', "offset", &opt.offset, NULL, 0, LLONG_MAX, "first byte [0]" },
	{ 'z', "range", &opt.range, NULL, 1, LLONG_MAX,
	  "bytes used from there [to the end]" },
	{ 'P', "polled", &opt.polled, .help = "poll for completions" },
	{ 'q', "sqpoll", &opt.sqpoll, .help = "a kernel thread submits" },
	{ 'N', "nowait", &opt.nowait, .help = "RWF_NOWAIT, and try again" },
	{ 'S', "seed", &opt.seed, NULL, 0, ULLONG_MAX, "of order, data [1]" },
};

static void help(const struct row *row, size_t nr)
{
	puts("Usage: plug_load [options] DEV [DEV...]\n"
	     "Several DEVs take turns I/O by I/O, so they share each plug.");
	for (; nr--; row++)
		printf("  -%c, --%-13s %s\n", row->c, row->name, row->help);
	puts("\nExit: 0 ok, 1 I/O error or wrong data, 2 usage, 3 stuck, 4 not here");
	exit(0);
}

static int pick(const struct row *row)
{
	int i;

	for (i = 0; row->names[i]; i++) {
		if (!strcmp(row->names[i], optarg))
			return i;
	}
	errx(EXIT_USAGE, "--%s: '%s' is unknown; accepted: %s", row->name,
	     optarg, row->help);
}

static __u64 number(const struct row *row)
{
	static const char units[] = "kmg";
	char *end;
	__u64 v = strtoull(optarg, &end, 0);
	const char *unit = *end ? strchr(units, *end) : NULL;

	if (unit) {
		v <<= 10 * (unit - units + 1);
		end++;
	}
	if (*end || *optarg < '0' || *optarg > '9' || v < row->min ||
	    v > row->max)
		errx(EXIT_USAGE,
		     "--%s: '%s' is no integer from %llu to %llu (k, m, g)",
		     row->name, optarg, row->min, row->max);
	return v;
}

static void set_option(const struct row *row)
{
	if (row->names)
		*(int *)row->value = pick(row);
	else if (row->max)
		*(__u64 *)row->value = number(row);
	else
		*(int *)row->value = 1;
}

static void check_options(void)
{
	if (opt.submit > opt.depth || opt.complete > opt.depth)
		errx(EXIT_USAGE,
		     "--submit and --complete must be at most --depth (%llu)",
		     opt.depth);
	if (opt.bs % SECTOR || opt.offset % SECTOR)
		errx(EXIT_USAGE, "--bs and --offset must be multiples of %d",
		     SECTOR);
}

static void parse(int argc, char **argv, const struct row *row, size_t nr)
{
	struct option longopts[MAX_OPTIONS] = { { "help", 0, NULL, 'h' } };
	char shortopts[2 * MAX_OPTIONS] = "h", *p = shortopts + 1;
	size_t i;
	int c;

	for (i = 0; i < nr; i++) {
		bool takes = row[i].names || row[i].max;

		longopts[i + 1] = (struct option){ row[i].name, takes, NULL,
						   row[i].c };
		*p++ = row[i].c;
		if (takes)
			*p++ = ':';
	}
	while ((c = getopt_long(argc, argv, shortopts, longopts, NULL)) != -1) {
		for (i = 0; i < nr && row[i].c != c; i++)
			;
		if (c == 'h')
			help(row, nr);
		if (i == nr)
			errx(EXIT_USAGE, "see --help for the options");
		set_option(&row[i]);
	}
	for (; optind < argc && nr_devs < MAX_DEVS; optind++)
		devs[nr_devs++].path = argv[optind];
	if (!nr_devs || optind < argc)
		errx(EXIT_USAGE, "name 1 to %d block devices or files (--help)",
		     MAX_DEVS);
	check_options();
}

static void set_up(void)
{
	init_range();
	init_slots();
	init_ring();
	start_ticks();
}

int main(int argc, char **argv)
{
	parse(argc, argv, rows, sizeof(rows) / sizeof(*rows));
	set_up();
	do_run();
	report();
	return run.unsupported ? EXIT_UNSUPPORTED : run.errors ? EXIT_IO : 0;
}
