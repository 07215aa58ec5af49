// SPDX-License-Identifier: GPL-2.0
/*
 * knob_fuzz: many tasks write anything to the knobs of the series, and read
 *
 *	knob_fuzz -m "MODE..." -S SEED -t SECONDS [-j TASKS] [-s DISK]...
 *		  [-r DISK]...
 *
 * MODE... are the modes that queue/plug_policy shows, in its order. A DISK
 * given with -s stays, one given with -r comes and goes. Each write is
 * predicted: what is documented is taken, anything else refused. Each read must
 * have the file's form. One write in four is alone at its file, which must
 * then read as before after a refusal, and as written otherwise. A file that
 * goes may also give ENOENT, ENODEV, or, if it is in debugfs and open, EIO.
 *
 * Says "did KEY N" and "found TEXT". Exit: 0, 1 if something was found, 2 on
 * wrong usage.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BLOCK_DEBUGFS	"/sys/kernel/debug/block/"
#define NVME_DEBUGFS	"/sys/kernel/debug/nvme_plug/"

enum {
	MAX_MODES	= 8,
	MAX_KNOBS	= 256,
	MAX_TASKS	= 64,
	MAX_HCTXS	= 4,
	MAX_FOUND	= 20,
	MAX_TEXT	= 1 << 20,
	OPS_PER_OPEN	= 16,		/* at most */
	STUCK_SECONDS	= 60,
	SYSFS_BYTES	= 4096,		/* it takes the first page of a write */
	UINT_BYTES	= 34,		/* kstrtouint_from_user() looks at */
	REFUSED		= -1,
	OFF		= -2,		/* the file says that it says nothing */
};

enum kind {
	POLICY,
	NOMERGES,
	STATS_ENABLED,
	HCTX_STATS,
	HCTX_ADAPTIVE,
	DOORBELLS,
	NR_KINDS
};

/* What a kind of file takes, and what it says. */
static const struct {
	const char *name;
	bool sysfs;
	unsigned long long most;	/* number that it takes */
	int base;			/* of numbers; -1: takes none */
	size_t looks_at;		/* bytes of a number */
	int read_only;			/* error of a write, or 0 */
} kinds[NR_KINDS] = {
	[POLICY]	= { "plug_policy", true, 0, -1, 0, 0 },
	[NOMERGES]	= { "nomerges", true, UINT32_MAX, 10, SYSFS_BYTES, 0 },
	[STATS_ENABLED]	= { "plug_stats_enabled", false, 1, 0, UINT_BYTES, 0 },
	[HCTX_STATS]	= { "plug_stats", false, 0, -1, 0, EPERM },
	[HCTX_ADAPTIVE]	= { "plug_adaptive", false, 32, 0, UINT_BYTES, 0 },
	[DOORBELLS]	= { "doorbells", false, 0, -1, 0, EINVAL },
};

struct knob {
	enum kind kind;
	bool goes;
	char path[128];
	pthread_rwlock_t lock;		/* who is alone holds it for writing */
};

struct task {
	pthread_t thread;
	uint64_t chance;
	_Atomic(unsigned long long) ops;
	struct knob *_Atomic at;
	const char *_Atomic doing;
	char *text;			/* what is written */
	char said[1 << 16];		/* what was read */
};

static struct knob knobs[MAX_KNOBS];
static int nr_knobs;
static struct task tasks[MAX_TASKS];
static const char *modes[MAX_MODES];
static int nr_modes;
static atomic_bool stop;
static atomic_ullong writes, reads, refused, gone, alone, faults;

static void __attribute__((format(printf, 1, 2))) found(const char *fmt, ...)
{
	char text[512];
	va_list args;

	if (++faults > MAX_FOUND)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	for (char *c = text; *c; c++)
		if (!isprint((unsigned char)*c))
			*c = '?';
	printf("found %s\n", text);
}

static uint64_t rnd(struct task *task, uint64_t below)
{
	task->chance ^= task->chance << 13;
	task->chance ^= task->chance >> 7;
	task->chance ^= task->chance << 17;
	return (task->chance * 0x2545f4914f6cdd1dull >> 33) % below;
}

/* --- what should happen -------------------------------------------------- */

/* The mode that a text names, as sysfs_match_string() takes it, or REFUSED. */
static int mode_of(const char *text)
{
	size_t len = strlen(text);
	int i;

	if (len && text[len - 1] == '\n')
		len--;
	for (i = 0; i < nr_modes; i++)
		if (strlen(modes[i]) == len && !memcmp(modes[i], text, len))
			return i;
	return REFUSED;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

/* As kstrtoull() takes it; REFUSED for what is no number up to most. */
static long long number_of(const char *text, int base, unsigned long long most)
{
	unsigned long long n = 0;
	int digits = 0;

	if (*text == '+')
		text++;
	if (!base && *text == '0')
		base = tolower((unsigned char)text[1]) == 'x' &&
			digit(text[2]) < 16 ? 16 : 8;
	if (!base)
		base = 10;
	if (base == 16 && *text == '0')
		text += 2;
	for (; digit(*text) < base; text++, digits++) {
		n = n * base + digit(*text);
		if (n > most)
			n = most + 1;
	}
	if (*text == '\n')
		text++;
	return digits && !*text && n <= most ? (long long)n : REFUSED;
}

/* The value that a write sets, or REFUSED. */
static long long predict(enum kind kind, const char *text, size_t size)
{
	char seen[SYSFS_BYTES + 1];
	size_t looks_at = kind == POLICY ? SYSFS_BYTES : kinds[kind].looks_at;

	if (kinds[kind].read_only)
		return REFUSED;
	if (size > looks_at)
		size = looks_at;
	memcpy(seen, text, size);
	seen[size] = '\0';
	if (kind == POLICY)
		return mode_of(seen);
	return number_of(seen, kinds[kind].base, kinds[kind].most);
}

static bool is_refusal(enum kind kind, int error)
{
	if (kinds[kind].read_only)
		return error == kinds[kind].read_only;
	/* what overflows is told apart where a number is read by debugfs */
	return error == EINVAL || (error == ERANGE && !kinds[kind].sysfs &&
				   kinds[kind].base >= 0);
}

static bool is_gone(const struct knob *knob, int error)
{
	if (!knob->goes)
		return false;
	return error == ENOENT || error == ENODEV ||
		(error == EIO && !kinds[knob->kind].sysfs);
}

/* --- what a read says ---------------------------------------------------- */

/* The chosen mode, or REFUSED if text is not all modes, one in brackets. */
static int chosen_mode(const char *text)
{
	char wanted[256];
	int set, i, len;

	for (set = 0; set < nr_modes; set++) {
		for (i = 0, len = 0; i < nr_modes; i++)
			len += snprintf(wanted + len, sizeof(wanted) - len,
					i == set ? "%s[%s]" : "%s%s",
					i ? " " : "", modes[i]);
		strcat(wanted, "\n");
		if (!strcmp(text, wanted))
			return set;
	}
	return REFUSED;
}

/* A number on a line of its own, up to most. */
static long long only_number(const char *text, long long most)
{
	char *end;
	long long n = strtoll(text, &end, 10);

	return isdigit((unsigned char)*text) && !strcmp(end, "\n") &&
		n <= most ? n : REFUSED;
}

static bool counts_only(const char *text)
{
	unsigned long long n;
	char word[64];
	int len;

	for (; *text; text += len) {
		len = 0;
		if (sscanf(text, "%63s %llu\n%n", word, &n, &len) != 2 || !len)
			return false;
	}
	return true;
}

static bool doorbells_only(const char *text)
{
	unsigned long long q, n, m;
	int len;

	for (; *text; text += len) {
		len = 0;
		if (sscanf(text, "queue %llu doorbells %llu commands %llu\n%n",
			   &q, &n, &m, &len) != 3 || !len)
			return false;
	}
	return true;
}

/* What is pinned; OFF before the first plug. */
static long long adaptive(const char *text)
{
	unsigned int group, pinned, from, trial;

	if (!*text)
		return OFF;
	if (sscanf(text, "group %u pinned %u from %u trial %u samples_parked",
		   &group, &pinned, &from, &trial) != 4 || !counts_only(text) ||
	    group < 1 || group > 32 || pinned > 1 || from < 1 || from > 32 ||
	    trial > 32)
		return REFUSED;
	return pinned ? group : 0;
}

/* The value that a file says, OFF, or REFUSED if it has another form. */
static long long parse(enum kind kind, const char *text)
{
	switch (kind) {
	case POLICY:
		return chosen_mode(text);
	case NOMERGES:
		return only_number(text, 2);
	case STATS_ENABLED:
		return only_number(text, 1);
	case HCTX_STATS:
		return counts_only(text) ? 0 : REFUSED;
	case HCTX_ADAPTIVE:
		return adaptive(text);
	default:
		return doorbells_only(text) ? 0 : REFUSED;
	}
}

/* What a file says after a number was written. */
static long long shown(enum kind kind, long long value)
{
	return kind == NOMERGES && value > 2 ? 1 : value;
}

/* --- texts to write ------------------------------------------------------ */

static size_t likely_text(struct task *task, enum kind kind)
{
	static const char *const number[] = { "%llu", "%llu\n", "+%llu",
					      "00%llu", "%llu\n" };
	unsigned long long most = kinds[kind].most < 40 ? kinds[kind].most : 3;

	/* often beside what just still is taken */
	if (!rnd(task, 8))
		return sprintf(task->text, "%llu", most + rnd(task, 3));
	if (kind == POLICY)
		return sprintf(task->text, "%s%s", modes[rnd(task, nr_modes)],
			       rnd(task, 2) ? "\n" : "");
	if (kind >= HCTX_ADAPTIVE && rnd(task, 4) == 0)
		return sprintf(task->text, "0x%llx",
			       (unsigned long long)rnd(task, most + 1));
	return sprintf(task->text, number[rnd(task, 5)],
		       (unsigned long long)rnd(task, most + 1));
}

static size_t number_text(struct task *task)
{
	static const char *const number[] = { "%lld", "-%lld", "%lld ",
					      " %lld", "0x%llx", "0%llo",
					      "%lld.5", "%lld,", "++%lld",
					      "%lld\n\n" };

	return sprintf(task->text, number[rnd(task, 10)],
		       (long long)rnd(task, 1ull << rnd(task, 31)) *
		       (long long)(1 + rnd(task, 1ull << rnd(task, 31))));
}

static void put_bytes(struct task *task, size_t from, size_t to)
{
	unsigned int same = rnd(task, 256);
	bool all_same = rnd(task, 2);

	for (; from < to; from++)
		task->text[from] = all_same ? same : rnd(task, 256);
}

/* A likely text with a small change. */
static size_t mutated_text(struct task *task, enum kind kind)
{
	static const char odd[] = " \n\t_-[]Aa0\r";
	size_t size = likely_text(task, kind), at = rnd(task, size + 1);

	switch (rnd(task, 6)) {
	case 0:
		return at;				/* a prefix */
	case 1:
		memmove(task->text + at + 1, task->text + at, size - at);
		task->text[at] = odd[rnd(task, sizeof(odd))];	/* or NUL */
		return size + 1;
	case 2:
		task->text[at] = rnd(task, 256);
		return size + (at == size);
	case 3:
		task->text[rnd(task, size)] ^= 0x20;	/* a capital */
		return size;
	case 4:
		memcpy(task->text + size, task->text, size);	/* twice */
		return 2 * size;
	default:
		task->text[size] = '\0';		/* a NUL, then more */
		put_bytes(task, size + 1, size + 40);
		return size + 40;
	}
}

/* Up to 1 MiB, now and then with a likely text at its head. */
static size_t long_text(struct task *task, enum kind kind)
{
	static const size_t sizes[] = { 33, 34, 35, 64, 4095, 4096, 4097,
					65536 };
	/* few of the largest, which take as long as a thousand others */
	size_t size = rnd(task, 64) ? sizes[rnd(task, 8)] : MAX_TEXT, head = 0;

	memset(task->text, "a0 \n"[rnd(task, 4)], size);
	if (rnd(task, 2))
		head = likely_text(task, kind);
	if (head)
		task->text[head] = "\0\n a"[rnd(task, 4)];
	return size;
}

static size_t make_text(struct task *task, enum kind kind)
{
	size_t size;

	switch (rnd(task, 16)) {
	default:
		return likely_text(task, kind);
	case 7 ... 10:
		return mutated_text(task, kind);
	case 11:
		return 0;
	case 12:
		return number_text(task);
	case 13:
		return long_text(task, kind);
	case 14:
	case 15:
		size = rnd(task, 65);
		put_bytes(task, 0, size);
		return size;
	}
}

/* --- one write, one read ------------------------------------------------- */

/* debugfs takes no offset for a file that is made of a sequence. */
static ssize_t put(const struct knob *knob, int fd, const char *from,
		   size_t size, off_t at)
{
	return kinds[knob->kind].sysfs ? pwrite(fd, from, size, at) :
		write(fd, from, size);
}

static void now_doing(struct task *task, struct knob *knob, const char *what)
{
	task->at = knob;
	task->doing = what;
	task->ops++;
}

/* Whole; its value, or REFUSED, which was told unless the file has gone. */
static long long read_knob(struct task *task, struct knob *knob, int fd)
{
	long long value;
	ssize_t size;

	now_doing(task, knob, "read");
	size = pread(fd, task->said, sizeof(task->said) - 1, 0);
	reads++;
	if (size < 0) {
		if (is_gone(knob, errno))
			gone++;
		else
			found("%s: read: %s", knob->path, strerror(errno));
		return REFUSED;
	}
	task->said[size] = '\0';
	value = parse(knob->kind, task->said);
	if (value == REFUSED || strlen(task->said) != (size_t)size)
		found("%s: reads '%s'", knob->path, task->said);
	return value;
}

/* Somewhere, with any size: there is nothing to expect but an answer. */
static void read_part(struct task *task, struct knob *knob, int fd)
{
	size_t size = 1 + rnd(task, 100);
	ssize_t got;

	now_doing(task, knob, "read");
	got = pread(fd, task->said, size,
		  rnd(task, 1ull << rnd(task, 20)));
	reads++;
	if (got > (ssize_t)size || (got < 0 && !is_gone(knob, errno)))
		found("%s: read of %zu bytes: %zd", knob->path, size, got);
}

/* There is nothing to pin with an elevator, or no memory at that moment. */
static bool is_excused(enum kind kind, int error)
{
	return kind == HCTX_ADAPTIVE &&
		(error == EOPNOTSUPP || error == ENOMEM);
}

static void judge_write(const struct knob *knob, const char *text, size_t size,
			ssize_t got, int error, long long wanted)
{
	size_t taken = kinds[knob->kind].sysfs && size > SYSFS_BYTES ?
		SYSFS_BYTES : size;

	if (got >= 0 && wanted == REFUSED)
		found("%s: takes '%.40s' (%zu bytes)", knob->path, text, size);
	else if (got >= 0 && (size_t)got != taken)
		found("%s: takes %zd of %zu bytes", knob->path, got, size);
	else if (got < 0 && wanted != REFUSED &&
		 !is_excused(knob->kind, error))
		found("%s: refuses '%.40s' (%zu bytes): %s", knob->path, text,
		      size, strerror(error));
	else if (got < 0 && wanted == REFUSED &&
		 !is_refusal(knob->kind, error))
		found("%s: refuses '%.40s' (%zu bytes) with %s", knob->path,
		      text, size, strerror(error));
}

/* The value that was set, or REFUSED. */
static long long write_knob(struct task *task, struct knob *knob, int fd)
{
	size_t size = make_text(task, knob->kind);
	long long wanted = predict(knob->kind, task->text, size);
	off_t at = rnd(task, 4) ? 0 : rnd(task, 1 << 20);
	ssize_t got;
	int error;

	/* sysfs is not even asked about nothing */
	if (!size && kinds[knob->kind].sysfs)
		wanted = 0;
	now_doing(task, knob, "write");
	got = put(knob, fd, task->text, size, at);
	error = errno;
	writes++;
	if (got < 0 && is_gone(knob, error)) {
		gone++;
		return REFUSED;
	}
	if (got < 0)
		refused++;
	task->text[size] = '\0';
	judge_write(knob, task->text, size, got, error, wanted);
	return got < 0 || !size ? REFUSED : wanted;
}

/* Nobody else writes meanwhile, so that the value is known. */
static void write_alone(struct task *task, struct knob *knob, int fd)
{
	long long before, set, after;

	now_doing(task, knob, "wait");
	pthread_rwlock_wrlock(&knob->lock);
	before = read_knob(task, knob, fd);
	set = write_knob(task, knob, fd);
	after = read_knob(task, knob, fd);
	pthread_rwlock_unlock(&knob->lock);
	alone++;
	if (knob->goes || before < 0 || after < 0)
		return;
	if (set == REFUSED && after != before)
		found("%s: %lld became %lld by what was refused: '%.40s'",
		      knob->path, before, after, task->text);
	if (set != REFUSED && after != shown(knob->kind, set))
		found("%s: %lld after '%.40s'", knob->path, after, task->text);
}

static void write_among_others(struct task *task, struct knob *knob, int fd)
{
	now_doing(task, knob, "wait");
	pthread_rwlock_rdlock(&knob->lock);
	write_knob(task, knob, fd);
	pthread_rwlock_unlock(&knob->lock);
}

static void operate(struct task *task, struct knob *knob, int fd)
{
	switch (rnd(task, 8)) {
	case 0 ... 1:
		read_knob(task, knob, fd);
		break;
	case 2:
		read_part(task, knob, fd);
		break;
	case 3:
		write_alone(task, knob, fd);
		break;
	default:
		write_among_others(task, knob, fd);
	}
}

/* --- tasks --------------------------------------------------------------- */

/* An open file outlives its device, so some stay open for a while. */
static void visit(struct task *task, struct knob *knob)
{
	int fd, n = 1 + rnd(task, OPS_PER_OPEN);

	now_doing(task, knob, "open");
	fd = open(knob->path, O_RDWR);
	if (fd < 0) {
		if (is_gone(knob, errno))
			gone++;
		else
			found("%s: open: %s", knob->path, strerror(errno));
		return;
	}
	while (n-- && !stop)
		operate(task, knob, fd);
	now_doing(task, knob, "close");
	close(fd);
}

/* Half of the time at queue/plug_policy, which comes first of each disk's. */
static struct knob *choose(struct task *task)
{
	struct knob *knob = &knobs[rnd(task, nr_knobs)];

	if (rnd(task, 2))
		while (knob > knobs && knob->kind != POLICY)
			knob--;
	return knob;
}

static void *task_main(void *data)
{
	struct task *task = data;

	while (!stop)
		visit(task, choose(task));
	task->doing = NULL;
	return NULL;
}

static void start_tasks(int nr, uint64_t seed)
{
	int i;

	for (i = 0; i < nr; i++) {
		tasks[i].chance = (seed + 1) * 0x9e3779b97f4a7c15ull + i;
		tasks[i].text = malloc(MAX_TEXT + 256);
		if (!tasks[i].text ||
		    pthread_create(&tasks[i].thread, NULL, task_main,
				   &tasks[i])) {
			fputs("knob_fuzz: cannot start tasks\n", stderr);
			exit(2);
		}
	}
}

/* Ends this program if a task does not come back from the kernel. */
static void check_stuck(int nr)
{
	static unsigned long long last[MAX_TASKS];
	static int since[MAX_TASKS];
	int i;

	for (i = 0; i < nr; i++) {
		const char *doing = tasks[i].doing;

		since[i] = tasks[i].ops == last[i] ? since[i] + 1 : 0;
		last[i] = tasks[i].ops;
		if (!doing || since[i] < STUCK_SECONDS)
			continue;
		found("%s: %s takes more than %d s", tasks[i].at->path, doing,
		      STUCK_SECONDS);
		fflush(stdout);
		_exit(1);
	}
}

static void run(int nr, unsigned int seconds)
{
	unsigned int n;
	int i, left;

	for (n = 0; n < seconds && faults < MAX_FOUND; n++) {
		sleep(1);
		check_stuck(nr);
	}
	stop = true;
	do {
		sleep(1);
		check_stuck(nr);
		for (i = 0, left = 0; i < nr; i++)
			left += tasks[i].doing != NULL;
	} while (left);
	for (i = 0; i < nr; i++)
		pthread_join(tasks[i].thread, NULL);
}

/* --- knobs --------------------------------------------------------------- */

/* Who wants to be alone comes to its turn. */
static void init_lock(struct knob *knob)
{
	pthread_rwlockattr_t attr;

	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr,
		PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&knob->lock, &attr);
}

static void __attribute__((format(printf, 3, 4)))
add_knob(enum kind kind, bool goes, const char *fmt, ...)
{
	struct knob *knob = &knobs[nr_knobs];
	va_list args;

	if (nr_knobs == MAX_KNOBS) {
		fputs("knob_fuzz: too many disks\n", stderr);
		exit(2);
	}
	va_start(args, fmt);
	vsnprintf(knob->path, sizeof(knob->path), fmt, args);
	va_end(args);
	/* a queue more or less depends on the number of CPUs */
	if (!goes && access(knob->path, F_OK))
		return;
	knob->kind = kind;
	knob->goes = goes;
	init_lock(knob);
	nr_knobs++;
}

static void add_hctx(const char *disk, bool goes, int n)
{
	add_knob(HCTX_STATS, goes, BLOCK_DEBUGFS "%s/hctx%d/plug_stats", disk,
		 n);
	add_knob(HCTX_ADAPTIVE, goes, BLOCK_DEBUGFS "%s/hctx%d/plug_adaptive",
		 disk, n);
}

static void add_disk(const char *disk, bool goes)
{
	int n, ctrl;

	add_knob(POLICY, goes, "/sys/block/%s/queue/plug_policy", disk);
	add_knob(NOMERGES, goes, "/sys/block/%s/queue/nomerges", disk);
	add_knob(STATS_ENABLED, goes, BLOCK_DEBUGFS "%s/plug_stats_enabled",
		 disk);
	for (n = 0; n < MAX_HCTXS; n++)
		add_hctx(disk, goes, n);
	if (sscanf(disk, "nvme%d", &ctrl) == 1)
		add_knob(DOORBELLS, goes, NVME_DEBUGFS "nvme%d/doorbells",
			 ctrl);
}

static void take_modes(char *list)
{
	char *word;

	for (word = strtok(list, " "); word && nr_modes < MAX_MODES;
	     word = strtok(NULL, " "))
		modes[nr_modes++] = word;
}

static int usage(void)
{
	fputs("usage: knob_fuzz -m \"MODE...\" -S SEED -t SECONDS [-j TASKS] [-s DISK]... [-r DISK]...\n",
	      stderr);
	return 2;
}

static void report(void)
{
	printf("did knob_writes %llu\ndid knob_reads %llu\n", writes, reads);
	printf("did refused %llu\ndid knob_alone %llu\n", refused, alone);
	printf("did knob_gone %llu\n", gone);
}

static struct {
	unsigned int seconds;
	uint64_t seed;
	int tasks;
} options = { .tasks = 16 };

static bool take_option(int option)
{
	switch (option) {
	case 'm':
		take_modes(optarg);
		break;
	case 'S':
		options.seed = strtoull(optarg, NULL, 0);
		break;
	case 't':
		options.seconds = strtoul(optarg, NULL, 0);
		break;
	case 'j':
		options.tasks = atoi(optarg);
		break;
	case 's':
	case 'r':
		add_disk(optarg, option == 'r');
		break;
	default:
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "m:S:t:j:s:r:")) != -1)
		if (!take_option(option))
			return usage();
	if (optind != argc || !nr_modes || !options.seconds || !nr_knobs ||
	    options.tasks < 1 || options.tasks > MAX_TASKS)
		return usage();
	setvbuf(stdout, NULL, _IOLBF, 0);
	start_tasks(options.tasks, options.seed);
	run(options.tasks, options.seconds);
	report();
	return faults ? 1 : 0;
}
