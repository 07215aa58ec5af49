// SPDX-License-Identifier: GPL-2.0
/*
 * plug_load for the laboratory: that of the kselftests, which is its source,
 * with what only measurements need: latencies, a warm-up, two block sizes, and
 * libaio.
 */
#define main kselftest_main
#include "../../tools/testing/selftests/block-plug/plug_load.c"
#undef main

#include <linux/aio_abi.h>
#include <sys/syscall.h>

enum {
	/* The latencies' histogram: linear steps in each power of two. */
	HIST_BITS	= 7,
	HIST_STEPS	= 1 << HIST_BITS,
	HIST_SIZE	= (65 - HIST_BITS) * HIST_STEPS,
};

enum engine { ENGINE_URING, ENGINE_LIBAIO };
static const char *const engine_names[] = { "uring", "libaio", NULL };

static struct {
	int engine, wait_all, latency, allow_errors;
	__u64 bs2, period, ms, warmup;
} more;

static const struct row more_rows[] = {
	{ 'e', "engine", &more.engine, engine_names, 0, 0,
	  "uring or libaio [uring]" },
	{ '2', "bs2", &more.bs2, NULL, SECTOR, MAX_BS,
	  "block size of every second --period (only --rw read)" },
	{ 'p', "period", &more.period, NULL, 1, ULLONG_MAX,
	  "I/Os until --bs and --bs2 change places, at the end of a batch" },
	{ 'T', "ms", &more.ms, NULL, 1, 1 << 30, "ms to run; adds to --time" },
	{ 'W', "warmup", &more.warmup, NULL, 0, ULLONG_MAX,
	  "so many I/Os, about, before anything is measured [0]" },
	{ 'w', "wait-all", &more.wait_all,
	  .help = "submit a batch, wait for all of it: depth is --submit" },
	{ 'l', "latency", &more.latency,
	  .help = "report lat_mean, _p50, _p99, _p999, _max in ns: from a\n"
	  "\t\t      batch's submission to the end of the wait (see -c)" },
	{ 'E', "allow-errors", &more.allow_errors,
	  .help = "count failed I/Os, and exit 0" },
};

static struct {
	__u64 done, bytes, cpu;		/* when the warm-up was over */
	bool warming;
	__u64 bs[2], batches;
} at;

static __u64 cpu_ns(void)
{
	struct timespec ts;

	/* With io_uring's own threads, which belong to the process. */
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (__u64)ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* --- latencies ------------------------------------------------------------ */

static struct {
	__u64 start[MAX_DEPTH];		/* ns, by slot */
	__u64 count, sum, max;
	__u64 bucket[HIST_SIZE];
} lat;

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
		lat.start[slots[n] - run.slots] = now;
}

static void record_latencies(struct slot **slots, unsigned int n)
{
	for (; n--; slots++)
		add_latency(run.now - lat.start[*slots - run.slots]);
}

/* --- libaio's system calls, without the library --------------------------- */

static struct {
	aio_context_t ctx;
	struct iocb iocbs[MAX_DEPTH], *unsent[MAX_DEPTH];
	struct io_event events[MAX_DEPTH];
	long nr_unsent, nr_events;
} aio;

static void aio_setup(void)
{
	if (syscall(SYS_io_setup, (unsigned int)opt.depth, &aio.ctx))
		errx(EXIT_UNSUPPORTED, "cannot set up libaio: %s%s",
		     strerror(errno), errno != EAGAIN ? "" :
		     " (--depth exceeds what /proc/sys/fs/aio-max-nr leaves)");
}

static void aio_queue(struct slot *s)
{
	struct iocb *iocb = &aio.iocbs[s - run.slots];

	memset(iocb, 0, sizeof(*iocb));
	iocb->aio_data = (uintptr_t)s;
	iocb->aio_fildes = devs[s->dev].fd;
	iocb->aio_lio_opcode = s->write ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD;
	iocb->aio_buf = (uintptr_t)s->buf;
	iocb->aio_nbytes = s->len;
	iocb->aio_offset = s->off;
	aio.unsent[aio.nr_unsent++] = iocb;
	run.inflight++;
}

/* The kernel may take part of a batch: the rest is kept for the next call. */
static int aio_submit_and_wait(long want)
{
	long n = 0, sent;

	if (aio.nr_unsent)
		n = syscall(SYS_io_submit, aio.ctx, aio.nr_unsent, aio.unsent);
	if (n < 0 && errno != EAGAIN)
		return -errno;
	if (n > 0) {
		aio.nr_unsent -= n;
		memmove(aio.unsent, aio.unsent + n,
			aio.nr_unsent * sizeof(*aio.unsent));
	}
	sent = run.inflight - aio.nr_unsent;
	aio.nr_events = syscall(SYS_io_getevents, aio.ctx,
				want < sent ? want : sent, (long)opt.depth,
				aio.events, NULL);
	return aio.nr_events < 0 ? -errno : 0;
}

static void aio_reap(void)
{
	struct io_event *event;

	for (event = aio.events; aio.nr_events > 0; event++, aio.nr_events--)
		complete_slot((void *)(uintptr_t)event->data, event->res);
}

/* --- the run -------------------------------------------------------------- */

static void set_size(__u64 bs)
{
	opt.bs = bs;
	run.blocks = run.range / bs;
}

static void queue_some(void)
{
	unsigned int n, idle = run.nr_idle;
	struct slot *s;

	if (run.now >= run.deadline)
		run.stop = true;
	if (more.period)
		set_size(at.bs[run.issued / more.period % 2]);
	for (n = 0; n < opt.submit && run.nr_idle && more_to_queue(); n++) {
		s = next_slot();
		if (more.engine == ENGINE_LIBAIO)
			aio_queue(s);
		else
			queue_slot(s);
	}
	if (more.latency)
		stamp(&run.idle[run.nr_idle], idle - run.nr_idle);
}

static int submit_and_wait(void)
{
	unsigned int want = room_for_batch() ? 0 : to_await();

	if (more.engine == ENGINE_LIBAIO)
		return aio_submit_and_wait(want);
	return io_uring_submit_and_wait(&ring, want);
}

/* What has completed up to here does not count. */
static void measure_from_here(void)
{
	at.warming = false;
	start_clocks();
	if (opt.time || more.ms)
		run.deadline = run.start + opt.time * NSEC_PER_SEC +
			       more.ms * (NSEC_PER_SEC / 1000);
	at.done = run.done;
	at.bytes = run.bytes;
	at.cpu = cpu_ns();
}

static void reap_some(void)
{
	unsigned int idle = run.nr_idle;

	run.now = now_ns();
	if (more.engine == ENGINE_LIBAIO)
		aio_reap();
	else
		reap_ring();
	if (run.nr_idle != idle)
		run.last = run.now;
	if (at.warming && run.done >= more.warmup)
		measure_from_here();
	else if (more.latency && !at.warming)
		record_latencies(&run.idle[idle], run.nr_idle - idle);
}

static void run_all(void)
{
	bool going = true;

	measure_from_here();
	at.warming = more.warmup;
	if (at.warming)
		run.deadline = ULLONG_MAX;
	while (going || run.inflight) {
		if (going)
			queue_some();
		going = more_to_queue();
		if (!run.inflight && !going)
			return;
		if (!accepted(submit_and_wait()))
			return;
		reap_some();
	}
}

static void report_all(void)
{
	__u64 ns = run.last > run.start ? run.last - run.start : 1;
	__u64 ios = run.done - at.done;

	if (at.warming)
		warnx("ended within the --warmup");
	printf("ios=%llu bytes=%llu ns=%llu iops=%llu errors=%llu retries=%llu cpu_ns=%llu",
	       ios, run.bytes - at.bytes, ns, (__u64)(ios * 1e9 / ns + 0.5),
	       run.errors, run.retries, cpu_ns() - at.cpu);
	if (more.latency)
		printf(" lat_mean=%llu lat_p50=%llu lat_p99=%llu lat_p999=%llu lat_max=%llu",
		       lat.count ? lat.sum / lat.count : 0, percentile(5000),
		       percentile(9900), percentile(9990), lat.max);
	puts("");
	fflush(stdout);
}

/* --- the command line ----------------------------------------------------- */

static void check_more(void)
{
	if (!more.bs2 != !more.period)
		errx(EXIT_USAGE, "--bs2 and --period take each other");
	if (more.bs2 && opt.rw != RW_READ)
		errx(EXIT_USAGE, "--bs2 takes --rw read");
	if (more.engine == ENGINE_LIBAIO &&
	    (opt.polled || opt.sqpoll || opt.nowait))
		errx(EXIT_USAGE,
		     "--engine libaio excludes --polled, --sqpoll and --nowait");
}

int main(int argc, char **argv)
{
	struct row all[MAX_OPTIONS];
	size_t nr = sizeof(rows) / sizeof(*rows);
	size_t nr_more = sizeof(more_rows) / sizeof(*more_rows);

	memcpy(all, rows, sizeof(rows));
	memcpy(all + nr, more_rows, sizeof(more_rows));
	parse(argc, argv, all, nr + nr_more);
	if (more.wait_all) {
		opt.depth = opt.submit;
		opt.complete = opt.submit;
	}
	check_more();
	at.bs[0] = opt.bs;
	at.bs[1] = more.bs2 ?: opt.bs;
	/* Buffers are for the larger. */
	opt.bs = at.bs[0] > at.bs[1] ? at.bs[0] : at.bs[1];
	if (more.ms && !opt.ios && opt.access != ACCESS_RAND_ONCE)
		opt.ios = ULLONG_MAX;
	set_up();
	set_size(at.bs[0]);
	if (more.warmup >= opt.ios)
		errx(EXIT_USAGE,
		     "--warmup must be less than the %llu I/Os in all (--ios)",
		     opt.ios);
	if (more.engine == ENGINE_LIBAIO)
		aio_setup();
	run_all();
	report_all();
	if (run.unsupported)
		return EXIT_UNSUPPORTED;
	return run.errors && !more.allow_errors ? EXIT_IO : 0;
}
