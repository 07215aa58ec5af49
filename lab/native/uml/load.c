// SPDX-License-Identifier: GPL-2.0
/*
 * A load without system calls, for User Mode Linux: start a plug, submit bios,
 * finish the plug, again and again.
 *
 * Write to debugfs/native_load
 *
 *	DISK... NAME=NUMBER...
 *
 * where the names are those of struct shape; what is not named is 0. Bios go to
 * the disks in turn. Then read "ns=TIME ios=NUMBER merged=NUMBER".
 */
#include <linux/bio.h>
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/completion.h>
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/kthread.h>
#include <linux/log2.h>
#include <linux/part_stat.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <asm/unistd.h>
#include <os.h>

enum {
	MOST = 128,		/* bios in a plug */
	DISKS = 4,
	TAGS = 1024,		/* of a disk */
	ORDER = 5,		/* of the pages of a bio, at most */
	COLD = 8 << 20,		/* bytes, several times an L2 cache */
	TASKS = 2,
	SETS = 4,		/* plugs that the other CPU has yet to end */
	PARTS = 8,		/* of what two tasks do */
	FAR = 128,		/* bytes, so that two CPUs share nothing */
};

struct shape {
	unsigned int n;		/* bios in a plug, */
	unsigned int least;	/* or a number from this one to n */
	unsigned int announce;	/* so many, or 0: without a plug */
	unsigned int follow;	/* of two bios, so many continue the last one */
	unsigned int change;	/* all do after so many plugs, and as many later
				 * none
				 */
	unsigned int kb;	/* of a bio */
	unsigned int write;
	unsigned int cold;	/* throw so many KB out of caches, and code */
	unsigned int poll;	/* for the completions; 2: that end singly */
	unsigned int sleep;	/* until they are done, after so many bios */
	unsigned int full;	/* hold all tags but each so many-th */
	unsigned int tasks;	/* so many, each on its own CPU; or 0 */
	unsigned int remote;	/* the second one completes, by polling */
	unsigned int delay;	/* chains of multiplications before each bio */
	unsigned int share;	/* bytes between words that tasks write */
	unsigned int ios;	/* in all */
};

#define WORD(name) { #name, offsetof(struct shape, name) }
static const struct {
	const char *name;
	size_t offset;
} words[] = {
	WORD(n), WORD(least), WORD(announce), WORD(follow), WORD(change),
	WORD(kb), WORD(write), WORD(cold), WORD(poll), WORD(sleep), WORD(full),
	WORD(tasks), WORD(remote), WORD(delay), WORD(share), WORD(ios),
};

/* The bios of a plug. Who completes them writes to this, and nothing else. */
struct set {
	unsigned int done;
	unsigned int awaited;
	struct task_struct *task;
	unsigned int n;
	struct bio *bios[MOST] __aligned(FAR);
} __aligned(FAR);

struct load {
	struct set sets[SETS];
	struct shape shape;
	struct block_device *disks[MOST];	/* of each bio of a plug */
	blk_opf_t opf;
	u64 mask;		/* of the numbers of blocks */
	u64 random;
	u64 block;
	unsigned int follow;	/* as in struct shape, of this plug */
	unsigned int until;	/* plugs until it changes */
	unsigned int plugs;
	unsigned int cpu;
	struct completion ended;

	/* in all; for the other CPU, too */
	u64 ios __aligned(FAR);
};

static struct load loads[TASKS];
static atomic_t started;
static bool stop;
static u64 shared[PAGE_SIZE / sizeof(u64)] __aligned(PAGE_SIZE);
static struct bio_vec bvecs[MOST];
static struct page *data;
static u8 *cold_data;
static char result[400];

static __always_inline u64 ticks(void)
{
	u32 low, high;

	asm volatile("lfence; rdtsc; lfence"
		     : "=a" (low), "=d" (high) : : "memory");
	return (u64)high << 32 | low;
}

/*
 * 64 KB of code: a jump in each of 1024 cache lines, without an alignment,
 * which would undo the shift of all that is linked after it.
 */
static noinline void run_cold_code(void)
{
	asm volatile(".rept 1024\n\t"
		     ".byte 0xeb, 62\n\t"
		     ".skip 62, 0xcc\n\t"
		     ".endr" : : : "memory");
}

static noinline void make_cold(unsigned int kb)
{
	unsigned int i;

	for (i = 0; i < kb << 10; i += 64)
		READ_ONCE(cold_data[i]);
	run_cold_code();
}

/*
 * Each chain is of 72 cycles. The fences keep other work out of that time, so
 * that two numbers of chains differ by the chains alone.
 */
static noinline void wait_chains(unsigned int n)
{
	unsigned long chain = 3;

	asm volatile("lfence" : : : "memory");
	while (n--)
		asm volatile(".rept 24\n\timul %0, %0\n\t.endr" : "+r" (chain));
	asm volatile("lfence" : : : "memory");
}

static void end_io(struct bio *bio)
{
	struct set *set = bio->bi_private;

	if (++set->done == set->awaited)
		wake_up_process(set->task);
}

/* Random numbers by xorshift, of which any bit will do for a coin. */
static __always_inline u64 next_random(struct load *load)
{
	load->random ^= load->random << 13;
	load->random ^= load->random >> 7;
	load->random ^= load->random << 17;
	return load->random;
}

static __always_inline u64 next_block(struct load *load)
{
	if (load->follow == 2)
		return ++load->block;
	if (next_random(load) & BIT_ULL(40) && load->follow)
		return ++load->block;
	return load->block = load->random;
}

/* In several lines, so that it shows where two CPUs share a core's cache. */
static __always_inline void add_to_words(unsigned int offset)
{
	unsigned int end = offset + 8 * FAR;
	u64 *word;

	for (; offset < end; offset += 2 * FAR) {
		word = (void *)shared + offset;
		WRITE_ONCE(*word, READ_ONCE(*word) + 1);
	}
}

static __always_inline void submit(struct load *load, struct set *set,
				   unsigned int i)
{
	unsigned int bytes = load->shape.kb << 10;
	struct bio *bio = set->bios[i];

	bio_init(bio, load->disks[i], &bvecs[i], 1, load->opf);
	bio->bi_vcnt = 1;
	bio->bi_iter.bi_size = bytes;
	bio->bi_iter.bi_sector = (next_block(load) & load->mask) *
				 (bytes >> SECTOR_SHIFT);
	bio->bi_end_io = end_io;
	bio->bi_private = set;
	if (load->shape.delay)
		wait_chains(load->shape.delay);
	if (load->shape.share)
		add_to_words(load->cpu * load->shape.share);
	submit_bio(bio);
}

/* As a task that waits in a plug: schedule() flushes it. */
static void sleep_until(struct set *set, unsigned int done)
{
	set->awaited = done;
	for (;;) {
		set_current_state(TASK_UNINTERRUPTIBLE);
		if (READ_ONCE(set->done) >= done)
			break;
		io_schedule();
	}
	__set_current_state(TASK_RUNNING);
	set->awaited = 0;
}

/* As io_uring: one poll for each disk, whose finds complete in a batch. */
static void poll_until(struct set *set, unsigned int done)
{
	unsigned int i = done - 1;

	while (set->done < done) {
		DEFINE_IO_COMP_BATCH(iob);

		bio_poll(set->bios[i], &iob, 0);
		if (iob.complete)
			iob.complete(&iob);
		i ^= 1;
	}
}

static void poll_all(struct request_queue *queue, bool singly)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	queue_for_each_hw_ctx(queue, hctx, i) {
		DEFINE_IO_COMP_BATCH(iob);

		if (hctx->type != HCTX_TYPE_POLL)
			continue;
		queue->mq_ops->poll(hctx, singly ? NULL : &iob);
		if (iob.complete)
			iob.complete(&iob);
	}
}

/*
 * As a CPU that interrupts go to: it completes what another one has sent. It
 * looks once per plug, since each look takes a lock that sending takes, too.
 */
static void complete_for(const struct load *load)
{
	struct request_queue *queue = bdev_get_queue(load->disks[0]);
	u64 ios, seen = 0;

	while (!READ_ONCE(stop)) {
		ios = READ_ONCE(load->ios);
		if (ios != seen)
			poll_all(queue, load->shape.poll > 1);
		else
			cpu_relax();
		seen = ios;
	}
}

static void wait_for_other_cpu(struct set *set)
{
	while (READ_ONCE(set->done) < set->n)
		cpu_relax();
}

/* What this plug is: so many bios. */
static __always_inline unsigned int next_plug(struct load *load)
{
	const struct shape *shape = &load->shape;

	if (shape->change && !load->until--) {
		load->until = shape->change - 1;
		load->follow ^= 2;
	}
	if (shape->least == shape->n)
		return shape->n;
	return shape->least + (next_random(load) >> 32) %
			      (shape->n - shape->least + 1);
}

static void wait_for_bios(struct load *load, struct set *set)
{
	if (load->shape.remote)
		return;
	if (load->shape.poll)
		poll_until(set, set->n);
	else if (READ_ONCE(set->done) < set->n)
		sleep_until(set, set->n);
}

static noinline void batch(struct load *load)
{
	const struct shape *shape = &load->shape;
	struct set *set = &load->sets[shape->remote ? load->plugs++ % SETS : 0];
	unsigned int i, n = next_plug(load);
	struct blk_plug plug;

	if (shape->remote)
		wait_for_other_cpu(set);
	set->done = 0;
	set->n = n;
	/* the number that comes, or always the same, which it may not be */
	if (shape->announce == 1)
		blk_start_plug(&plug);
	else if (shape->announce)
		blk_start_plug_nr_ios(&plug, shape->announce == shape->n ?
					     n : shape->announce);
	for (i = 0; i < n; i++) {
		submit(load, set, i);
		if (shape->sleep && (i + 1) % shape->sleep == 0)
			sleep_until(set, i + 1);
	}
	if (shape->announce)
		blk_finish_plug(&plug);
	wait_for_bios(load, set);
	WRITE_ONCE(load->ios, load->ios + n);
}

/* Ticks of so many batches. */
static u64 run_warm(struct load *load, unsigned int batches)
{
	u64 start = ticks();

	while (batches--)
		batch(load);
	return ticks() - start;
}

static u64 run_cold(struct load *load, unsigned int batches)
{
	u64 sum = 0, start;

	while (batches--) {
		make_cold(load->shape.cold);
		start = ticks();
		batch(load);
		sum += ticks() - start;
	}
	return sum;
}

static u64 merged(const struct load *load)
{
	return part_stat_read(load->disks[0], merges[STAT_READ]) +
	       part_stat_read(load->disks[0], merges[STAT_WRITE]);
}

static u64 all_ios(void)
{
	return READ_ONCE(loads[0].ios) + READ_ONCE(loads[1].ios);
}

/* All are warm, and begin. */
static void meet(const struct load *load)
{
	unsigned int tasks = load->shape.remote ? 1 : load->shape.tasks;

	atomic_inc(&started);
	while (atomic_read(&started) < tasks)
		cpu_relax();
}

static unsigned int batches(const struct load *load)
{
	return 2 * load->shape.ios / (load->shape.n + load->shape.least);
}

/* The ns of so many batches, and to what all CPUs' I/Os have come by then. */
static u64 run_part(struct load *load, unsigned int batches, u64 *ios)
{
	u64 ns = os_nsecs(), all = ticks(), own;

	own = load->shape.cold ? run_cold(load, batches) :
				 run_warm(load, batches);
	all = ticks() - all;
	*ios = all_ios();
	return mul_u64_u64_div_u64(os_nsecs() - ns, own, all);
}

/*
 * The first task measures, until it has sent what it was told to.  Two CPUs are
 * both left alone for a short time only: measure parts.
 */
static void run(struct load *load)
{
	unsigned int parts = load->shape.tasks ? PARTS : 1, len = 0, i;
	unsigned int n = max(batches(load) / parts, 1);
	u64 sum = 0, merges, ios, first;

	run_warm(load, batches(load) / 10);
	meet(load);
	first = all_ios();
	ios = first;
	merges = merged(load);
	for (i = 0; i < parts; i++) {
		u64 before = ios, ns = run_part(load, n, &ios);

		sum += ns;
		len += scnprintf(result + len, sizeof(result) - len,
				 "%s%llu/%llu", i ? "," : "parts=", ns,
				 ios - before);
	}
	scnprintf(result + len, sizeof(result) - len,
		  " ns=%llu ios=%llu merged=%llu\n", sum, ios - first,
		  merged(load) - merges);
}

/* The second one does the same as long, or completes what the first sends. */
static void run_along(struct load *load)
{
	if (load->shape.remote) {
		complete_for(&loads[0]);
		return;
	}
	run_warm(load, batches(load) / 10);
	meet(load);
	while (!READ_ONCE(stop))
		batch(load);
}

/* The virtual CPU that we are on is to have one of the machine to itself. */
static void pin(unsigned int cpu)
{
	static unsigned long host_cpus[16];
	unsigned long mask[ARRAY_SIZE(host_cpus)] = {};
	unsigned int bits = ARRAY_SIZE(host_cpus) * BITS_PER_LONG;

	if (bitmap_empty(host_cpus, bits))
		syscall(__NR_sched_getaffinity, 0, sizeof(host_cpus),
			host_cpus);
	__set_bit(find_nth_bit(host_cpus, bits, cpu), mask);
	syscall(__NR_sched_setaffinity, 0, sizeof(mask), mask);
}

static int task_main(void *data)
{
	struct load *load = data;
	unsigned int i;

	/* kthread_bind() sleeps for a tick, most often */
	set_cpus_allowed_ptr(current, cpumask_of(load->cpu));
	pin(load->cpu);
	for (i = 0; i < SETS; i++)
		load->sets[i].task = current;
	if (load->cpu) {
		run_along(load);
	} else {
		run(load);
		for (i = 0; i < SETS; i++)
			wait_for_other_cpu(&load->sets[i]);
		WRITE_ONCE(stop, true);
	}
	complete(&load->ended);
	return 0;
}

/* As many as there are, or none. */
static int run_tasks(unsigned int nr)
{
	struct task_struct *tasks[TASKS];
	unsigned int i;

	for (i = 0; i < nr; i++) {
		tasks[i] = kthread_create(task_main, &loads[i], "native/%u", i);
		if (IS_ERR(tasks[i]))
			return PTR_ERR(tasks[i]);
	}
	for (i = 0; i < nr; i++)
		wake_up_process(tasks[i]);
	for (i = 0; i < nr; i++)
		wait_for_completion(&loads[i].ended);
	return 0;
}

static int run_here(void)
{
	unsigned int i;

	for (i = 0; i < SETS; i++)
		loads[0].sets[i].task = current;
	run(&loads[0]);
	return 0;
}

static int run_all(void)
{
	unsigned int tasks = loads[0].shape.tasks;

	return tasks ? run_tasks(tasks) : run_here();
}

/* As others that use the disk: what they leave is one here and one there. */
static int run_on_full_disk(struct load *load)
{
	struct request_queue *queue = bdev_get_queue(load->disks[0]);
	static struct request *held[TAGS];
	unsigned int i, n;
	int error;

	for (n = 0; n < TAGS; n++) {
		held[n] = blk_mq_alloc_request(queue, REQ_OP_DRV_IN,
					       BLK_MQ_REQ_NOWAIT);
		if (IS_ERR(held[n]))
			break;
	}
	for (i = 0; i < n; i += load->shape.full)
		blk_mq_free_request(held[i]);
	error = run_all();
	for (i = 0; i < n; i++)
		if (i % load->shape.full)
			blk_mq_free_request(held[i]);
	return error;
}

static int parse_word(struct shape *shape, char *word)
{
	char *name = strsep(&word, "=");
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(name, words[i].name))
			return kstrtouint(word, 0,
					  (void *)shape + words[i].offset);
	return -EINVAL;
}

/* Fill in what is not named, and refuse what cannot be. */
static int check(struct shape *shape)
{
	shape->least = shape->least ?: shape->n;
	shape->kb = shape->kb ?: 4;
	if (!shape->n || shape->n > MOST || shape->least > shape->n ||
	    shape->ios < shape->n || shape->cold > COLD >> 10 ||
	    shape->kb << 10 > PAGE_SIZE << ORDER)
		return -EINVAL;
	if (shape->tasks > min(TASKS, num_online_cpus()) ||
	    (shape->remote && (shape->tasks != TASKS || !shape->poll)) ||
	    shape->share >= PAGE_SIZE - 8 * FAR)
		return -EINVAL;
	/* what polls for its own looks at the last two bios */
	return shape->poll && !shape->remote && shape->n % 2 ? -EINVAL : 0;
}

static void fill_in(struct load *load, const struct shape *shape,
		    unsigned int cpu)
{
	unsigned int sectors = shape->kb << 10 >> SECTOR_SHIFT;

	load->shape = *shape;
	load->cpu = cpu;
	load->random = 0x9E3779B97F4A7C15 * (2 * cpu + 1);
	load->block = 0;
	load->ios = 0;
	load->until = 0;
	load->plugs = 0;
	load->mask = rounddown_pow_of_two(bdev_nr_sectors(load->disks[0]) /
					  sectors) - 1;
	load->follow = shape->follow;
	load->opf = shape->write ? REQ_OP_WRITE | REQ_SYNC | REQ_IDLE :
				   REQ_OP_READ;
	if (shape->poll)
		load->opf |= REQ_POLLED;
	init_completion(&load->ended);
}

static int run_shape(struct shape *shape, struct file **files, unsigned int nr)
{
	unsigned int cpu, i;
	int error = check(shape);

	if (error)
		return error;
	for (cpu = 0; cpu < TASKS; cpu++) {
		for (i = 0; i < MOST; i++)
			loads[cpu].disks[i] = file_bdev(files[i % nr]);
		fill_in(&loads[cpu], shape, cpu);
	}
	for (i = 0; i < MOST; i++)
		bvec_set_page(&bvecs[i], data, shape->kb << 10, 0);
	atomic_set(&started, 0);
	stop = false;
	return shape->full ? run_on_full_disk(&loads[0]) : run_all();
}

static struct file *open_disk(const char *name)
{
	char path[40];

	snprintf(path, sizeof(path), "/dev/%s", name);
	return bdev_file_open_by_path(path, BLK_OPEN_READ, NULL, NULL);
}

static int run_text(char *text)
{
	struct shape shape = {};
	struct file *files[DISKS];
	unsigned int nr = 0;
	int error = 0;
	char *word;

	while (!error && (word = strsep(&text, " "))) {
		if (strchr(word, '=')) {
			error = parse_word(&shape, word);
		} else if (*word && nr < DISKS) {
			files[nr] = open_disk(word);
			error = PTR_ERR_OR_ZERO(files[nr]);
			nr += !error;
		}
	}
	if (!error)
		error = nr ? run_shape(&shape, files, nr) : -ENODEV;
	while (nr)
		bdev_fput(files[--nr]);
	return error;
}

static ssize_t load_write(struct file *file, const char __user *from,
			  size_t count, loff_t *pos)
{
	char *text = memdup_user_nul(from, count);
	int error;

	if (IS_ERR(text))
		return PTR_ERR(text);
	error = run_text(text);
	kfree(text);
	return error ?: count;
}

static ssize_t load_read(struct file *file, char __user *to, size_t count,
			 loff_t *pos)
{
	return simple_read_from_buffer(to, count, pos, result, strlen(result));
}

static const struct file_operations load_fops = {
	.write = load_write,
	.read = load_read,
};

/* At the begin of a cache line, as bios of a mempool are. */
static int __init alloc_bios(struct set *set)
{
	unsigned int i;

	for (i = 0; i < MOST; i++) {
		set->bios[i] = kzalloc(roundup_pow_of_two(sizeof(struct bio)),
				       GFP_KERNEL);
		if (!set->bios[i])
			return -ENOMEM;
	}
	return 0;
}

static int __init load_init(void)
{
	unsigned int i;

	data = alloc_pages(GFP_KERNEL, ORDER);
	cold_data = vmalloc(COLD);
	if (!data || !cold_data)
		return -ENOMEM;
	memset(cold_data, 1, COLD);	/* not all of it the zero page */
	for (i = 0; i < TASKS * SETS; i++)
		if (alloc_bios(&loads[i / SETS].sets[i % SETS]))
			return -ENOMEM;
	debugfs_create_file("native_load", 0600, NULL, NULL, &load_fops);
	return 0;
}
late_initcall(load_init);
