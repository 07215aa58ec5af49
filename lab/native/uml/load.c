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
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/log2.h>
#include <linux/part_stat.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <os.h>

enum {
	MOST = 128,		/* bios in a plug */
	DISKS = 4,
	TAGS = 1024,		/* of a disk */
	ORDER = 5,		/* of the pages of a bio, at most */
	COLD = 8 << 20,		/* bytes, several times an L2 cache */
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
	unsigned int poll;	/* for the completions */
	unsigned int sleep;	/* until they are done, after so many bios */
	unsigned int full;	/* hold all tags but each so many-th */
	unsigned int delay;	/* chains of multiplications before each bio */
	unsigned int ios;	/* in all */
};

#define WORD(name) { #name, offsetof(struct shape, name) }
static const struct {
	const char *name;
	size_t offset;
} words[] = {
	WORD(n), WORD(least), WORD(announce), WORD(follow), WORD(change),
	WORD(kb), WORD(write), WORD(cold), WORD(poll), WORD(sleep), WORD(full),
	WORD(delay), WORD(ios),
};

struct load {
	struct shape shape;
	struct block_device *disks[MOST];	/* of each bio of a plug */
	blk_opf_t opf;
	u64 mask;		/* of the numbers of blocks */
	u64 random;
	u64 block;
	unsigned int follow;	/* as in struct shape, of this plug */
	unsigned int until;	/* plugs until it changes */
	unsigned int done;	/* bios of this plug */
	unsigned int awaited;
	u64 ios;		/* in all */
	struct task_struct *task;
};

static struct bio *bios[MOST];
static struct bio_vec bvecs[MOST];
static struct page *data;
static u8 *cold_data;
static char result[80];

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
	struct load *load = bio->bi_private;

	if (++load->done == load->awaited)
		wake_up_process(load->task);
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

static __always_inline void submit(struct load *load, unsigned int i)
{
	unsigned int bytes = load->shape.kb << 10;
	struct bio *bio = bios[i];

	bio_init(bio, load->disks[i], &bvecs[i], 1, load->opf);
	bio->bi_vcnt = 1;
	bio->bi_iter.bi_size = bytes;
	bio->bi_iter.bi_sector = (next_block(load) & load->mask) *
				 (bytes >> SECTOR_SHIFT);
	bio->bi_end_io = end_io;
	bio->bi_private = load;
	if (load->shape.delay)
		wait_chains(load->shape.delay);
	submit_bio(bio);
}

/* As a task that waits in a plug: schedule() flushes it. */
static void sleep_until(struct load *load, unsigned int done)
{
	load->awaited = done;
	for (;;) {
		set_current_state(TASK_UNINTERRUPTIBLE);
		if (load->done >= done)
			break;
		io_schedule();
	}
	__set_current_state(TASK_RUNNING);
	load->awaited = 0;
}

/* As io_uring: one poll for each disk, whose finds complete in a batch. */
static void poll_until(struct load *load, unsigned int done)
{
	unsigned int i = done - 1;

	while (load->done < done) {
		DEFINE_IO_COMP_BATCH(iob);

		bio_poll(bios[i], &iob, 0);
		if (iob.complete)
			iob.complete(&iob);
		i ^= 1;
	}
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

static noinline void batch(struct load *load)
{
	const struct shape *shape = &load->shape;
	unsigned int i, n = next_plug(load);
	struct blk_plug plug;

	load->done = 0;
	/* the number that comes, or always the same, which it may not be */
	if (shape->announce)
		blk_start_plug_nr_ios(&plug, shape->announce == shape->n ?
					     n : shape->announce);
	for (i = 0; i < n; i++) {
		submit(load, i);
		if (shape->sleep && (i + 1) % shape->sleep == 0)
			sleep_until(load, i + 1);
	}
	if (shape->announce)
		blk_finish_plug(&plug);
	if (shape->poll)
		poll_until(load, n);
	else if (load->done < n)
		sleep_until(load, n);
	load->ios += n;
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

static void run(struct load *load)
{
	unsigned int batches = 2 * load->shape.ios /
			       (load->shape.n + load->shape.least);
	u64 own, all, ns, merges;

	run_warm(load, batches / 10);
	load->ios = 0;
	merges = merged(load);
	ns = os_nsecs();
	all = ticks();
	own = load->shape.cold ? run_cold(load, batches) :
				 run_warm(load, batches);
	all = ticks() - all;
	ns = os_nsecs() - ns;
	snprintf(result, sizeof(result), "ns=%llu ios=%llu merged=%llu\n",
		 mul_u64_u64_div_u64(ns, own, all), load->ios,
		 merged(load) - merges);
}

/* As others that use the disk: what they leave is one here and one there. */
static void run_on_full_disk(struct load *load)
{
	struct request_queue *queue = bdev_get_queue(load->disks[0]);
	static struct request *held[TAGS];
	unsigned int i, n;

	for (n = 0; n < TAGS; n++) {
		held[n] = blk_mq_alloc_request(queue, REQ_OP_DRV_IN,
					       BLK_MQ_REQ_NOWAIT);
		if (IS_ERR(held[n]))
			break;
	}
	for (i = 0; i < n; i += load->shape.full)
		blk_mq_free_request(held[i]);
	run(load);
	for (i = 0; i < n; i++)
		if (i % load->shape.full)
			blk_mq_free_request(held[i]);
}

/* What it is of, or an error; complete() fills in what follows from it. */
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

static int complete_load(struct load *load)
{
	struct shape *shape = &load->shape;
	unsigned int sectors;

	shape->least = shape->least ?: shape->n;
	shape->kb = shape->kb ?: 4;
	/* what polls looks at the last two bios */
	if (!shape->n || shape->n > MOST || shape->least > shape->n ||
	    shape->ios < shape->n || shape->cold > COLD >> 10 ||
	    shape->kb << 10 > PAGE_SIZE << ORDER ||
	    (shape->poll && shape->n % 2))
		return -EINVAL;
	sectors = shape->kb << 10 >> SECTOR_SHIFT;
	load->mask = rounddown_pow_of_two(bdev_nr_sectors(load->disks[0]) /
					  sectors) - 1;
	load->follow = shape->follow;
	load->opf = shape->write ? REQ_OP_WRITE | REQ_SYNC | REQ_IDLE :
				   REQ_OP_READ;
	if (shape->poll)
		load->opf |= REQ_POLLED;
	return 0;
}

static int run_shape(struct load *load, struct file **files, unsigned int nr)
{
	unsigned int i;
	int error;

	for (i = 0; i < MOST; i++)
		load->disks[i] = file_bdev(files[i % nr]);
	error = complete_load(load);
	if (error)
		return error;
	for (i = 0; i < MOST; i++)
		bvec_set_page(&bvecs[i], data, load->shape.kb << 10, 0);
	if (load->shape.full)
		run_on_full_disk(load);
	else
		run(load);
	return 0;
}

static struct file *open_disk(const char *name)
{
	char path[40];

	snprintf(path, sizeof(path), "/dev/%s", name);
	return bdev_file_open_by_path(path, BLK_OPEN_READ, NULL, NULL);
}

static int run_text(struct load *load, char *text)
{
	struct file *files[DISKS];
	unsigned int nr = 0;
	int error = 0;
	char *word;

	while (!error && (word = strsep(&text, " "))) {
		if (strchr(word, '=')) {
			error = parse_word(&load->shape, word);
		} else if (*word && nr < DISKS) {
			files[nr] = open_disk(word);
			error = PTR_ERR_OR_ZERO(files[nr]);
			nr += !error;
		}
	}
	if (!error)
		error = nr ? run_shape(load, files, nr) : -ENODEV;
	while (nr)
		bdev_fput(files[--nr]);
	return error;
}

static ssize_t load_write(struct file *file, const char __user *from,
			  size_t count, loff_t *pos)
{
	static struct load load;
	char *text = memdup_user_nul(from, count);
	int error;

	if (IS_ERR(text))
		return PTR_ERR(text);
	load = (struct load) {
		.random = 0x9E3779B97F4A7C15, .task = current,
	};
	error = run_text(&load, text);
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

static int __init load_init(void)
{
	unsigned int i;

	data = alloc_pages(GFP_KERNEL, ORDER);
	cold_data = vmalloc(COLD);
	if (!data || !cold_data)
		return -ENOMEM;
	memset(cold_data, 1, COLD);	/* not all of it the zero page */
	for (i = 0; i < MOST; i++) {
		/* at the begin of a cache line, as bios of a mempool are */
		bios[i] = kzalloc(roundup_pow_of_two(sizeof(struct bio)),
				  GFP_KERNEL);
		if (!bios[i])
			return -ENOMEM;
	}
	debugfs_create_file("native_load", 0600, NULL, NULL, &load_fops);
	return 0;
}
late_initcall(load_init);
