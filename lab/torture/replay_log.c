// SPDX-License-Identifier: GPL-2.0
/*
 * replay_log: what a power failure would have left, checked at every promise
 *
 *	replay_log LOG TARGET SECTORS ext4|xfs SEED SECONDS
 *
 * LOG holds what dm-log-writes logged of a device of SECTORS, on which
 * power_load wrote. It is replayed up to each of power_load's marks that a step
 * is permanent, or, where SECONDS do not suffice, to as many of them, spread
 * evenly, and to its end. What came behind the last flush, and is no FUA write,
 * is left out, as the worst that may happen. There, TARGET gets the contents
 * that the device then had; it is mounted on /mnt, so that the journal
 * recovers; power_load compares the files; and, each few times, fsck finds
 * nothing.
 *
 * The device must complete flushes in the order in which it gets them, as with
 * one hardware queue: the log has a write with the first flush submitted after
 * it. Were a later one to end sooner, the log would lack what that promised.
 *
 * Says "did KEY N" and "found TEXT". Exit: 0, 1 if something was found, 2 on
 * wrong usage or a log that is none.
 *
 * To see that it can fail, BREAK=write leaves every 8th write out, corrupt
 * changes a byte of it, flush applies writes one flush late. BREAK=data leaves
 * out every 8th write of what files contain, which power_load alone may find.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "power_load.h"

#define MOUNTED	"/mnt"
#define STATE	"/tmp/replay_log.state"
#define SAID	"/tmp/replay_log.said"
#define MAGIC	0x6a736677736872ull

enum {
	SECTOR		= 512,
	BLOCK		= 4096,
	CHUNK		= 1 << 20,
	BREAK_EACH	= 8,
	MAX_HELD	= 1 << 15,
	MAX_FOUND	= 5,		/* then no more points are tried */
	FSCK_EACH	= 3,		/* points: it takes long */

	/* flags of an entry, see drivers/md/dm-log-writes.c */
	FLUSH		= 1 << 0,
	FUA		= 1 << 1,
	DISCARD		= 1 << 2,
	MARK		= 1 << 3,
	METADATA	= 1 << 4,
};

struct super {
	uint64_t magic, version, entries;
	uint32_t sector_size;
};

struct entry {
	uint64_t sector, sectors, flags, length;
	uint64_t at;			/* of the data in the log */
	char mark[SECTOR - 4 * sizeof(uint64_t)];
};

static struct {
	const char *target, *fs, *seed;
	int log;
	size_t size;			/* of the device */
	char *image;			/* its contents at this point */
	uint64_t entries, points;
	uint32_t sector;		/* of the log, in bytes */
	bool begun;
	struct power_slot slots[POWER_WRITERS][POWER_SLOTS];
	unsigned long long replayed, checked, clean, found;
} replay;

/* What BREAK asks for. */
static enum { INTACT, NO_WRITE, NO_DATA, CORRUPT, LATE } broken;

/* Behind the last flush. */
static struct entry held[MAX_HELD];
static unsigned int nr_held;

static void __attribute__((noreturn, format(printf, 1, 2)))
die(const char *fmt, ...)
{
	va_list args;

	fputs("found replay_log: ", stdout);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
	exit(2);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* --- the log ------------------------------------------------------------- */

static void read_log(void *to, size_t size, uint64_t at)
{
	ssize_t done = pread(replay.log, to, size, at);

	if (done < 0 || (size_t)done != size)
		die("log: cannot read %zu bytes at %llu", size,
		    (unsigned long long)at);
}

static void open_log(const char *path)
{
	struct super super;

	replay.log = open(path, O_RDONLY);
	if (replay.log < 0)
		die("log %s: %s", path, strerror(errno));
	read_log(&super, sizeof(super), 0);
	if (le64toh(super.magic) != MAGIC || le64toh(super.version) != 1)
		die("log %s: not dm-log-writes', version 1", path);
	replay.entries = le64toh(super.entries);
	replay.sector = le32toh(super.sector_size);
	if (replay.sector < SECTOR || replay.sector > BLOCK)
		die("log %s: sectors of %u bytes", path, replay.sector);
}

/* Reads the entry at *at, which goes on to the next one. */
static void read_entry(struct entry *entry, uint64_t *at)
{
	char raw[SECTOR];
	uint64_t words[4];

	read_log(raw, sizeof(raw), *at);
	memcpy(words, raw, sizeof(words));
	entry->sector = le64toh(words[0]);
	entry->sectors = le64toh(words[1]);
	entry->flags = le64toh(words[2]);
	entry->length = le64toh(words[3]);
	entry->at = *at + replay.sector;
	*at = entry->at;
	if (!(entry->flags & DISCARD))
		*at += entry->sectors * replay.sector;
	memcpy(entry->mark, raw + sizeof(words), sizeof(entry->mark));
	entry->mark[sizeof(entry->mark) - 1] = '\0';
}

static void take_step(const char *text)
{
	unsigned int writer, slot, version, count, i;
	char what;

	if (sscanf(text, "%c,%u,%u,%u,%u", &what, &writer, &slot, &version,
		   &count) != 5 || writer >= POWER_WRITERS ||
	    slot + count > POWER_SLOTS)
		return;			/* another mark, as the last one */
	for (i = slot; i < slot + count; i++) {
		replay.slots[writer][i].begun = version;
		if (what == 'd')
			replay.slots[writer][i].done = version;
	}
}

static void take_mark(const struct entry *entry)
{
	if (!strcmp(entry->mark, POWER_BEGIN))
		replay.begun = true;
	else
		take_step(entry->mark);
}

/* Whether power_load was told that something is permanent. */
static bool is_point(const struct entry *entry)
{
	return entry->flags & MARK && !strncmp(entry->mark, "d,", 2);
}

/* --- the image ----------------------------------------------------------- */

static void apply(const struct entry *entry)
{
	size_t size = entry->sectors * replay.sector;
	size_t at = entry->sector * replay.sector;

	if (at > replay.size || size > replay.size - at)
		die("log: a write beyond the device, at %zu", at);
	if (entry->flags & DISCARD) {
		memset(replay.image + at, 0, size);
		return;
	}
	if (size)
		read_log(replay.image + at, size, entry->at);
	replay.replayed += size;
}

static void apply_broken(const struct entry *entry)
{
	static unsigned int nr;

	if (broken == LATE || !entry->sectors ||
	    (broken == NO_DATA && entry->flags & METADATA) ||
	    ++nr % BREAK_EACH) {
		apply(entry);
	} else if (broken == CORRUPT) {
		apply(entry);
		replay.image[entry->sector * replay.sector + 100] ^= 1;
	}
}

static void make_permanent(const struct entry *entry)
{
	if (broken && replay.begun)
		apply_broken(entry);
	else
		apply(entry);
}

/* The first nr of those that no flush made permanent yet. */
static void release(unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		make_permanent(&held[i]);
	nr_held -= nr;
	memmove(held, held + nr, nr_held * sizeof(*held));
}

static void take_flush(void)
{
	static unsigned int nr_before;

	release(broken == LATE && replay.begun ? nr_before : nr_held);
	nr_before = nr_held;
}

static void hold(const struct entry *entry)
{
	if (nr_held == MAX_HELD)
		die("log: more than %u writes without a flush", MAX_HELD);
	held[nr_held++] = *entry;
}

static void take(const struct entry *entry)
{
	if (entry->flags & MARK) {
		take_mark(entry);
		return;
	}
	if (entry->flags & FLUSH)
		take_flush();
	if (entry->flags & (FLUSH | FUA))
		make_permanent(entry);
	else
		hold(entry);
}

/* --- the target ---------------------------------------------------------- */

static void write_blocks(int fd, char *is, const char *should, size_t at)
{
	size_t from, to;

	for (from = 0; from < CHUNK; from = to + BLOCK) {
		for (to = from; to < CHUNK; to += BLOCK)
			if (!memcmp(is + to, should + to, BLOCK))
				break;
		if (to == from)
			continue;
		memcpy(is + from, should + from, to - from);
		if (pwrite(fd, is + from, to - from, at + from) !=
		    (ssize_t)(to - from))
			die("%s: write: %s", replay.target, strerror(errno));
	}
}

/* Writes only where the last check, or the log, made a difference. */
static void fill_target(void)
{
	static char is[CHUNK] __attribute__((aligned(BLOCK)));
	int fd = open(replay.target, O_RDWR | O_DIRECT);
	size_t at;

	if (fd < 0)
		die("%s: %s", replay.target, strerror(errno));
	for (at = 0; at < replay.size; at += CHUNK) {
		if (pread(fd, is, CHUNK, at) != CHUNK)
			die("%s: read: %s", replay.target, strerror(errno));
		if (memcmp(is, replay.image + at, CHUNK))
			write_blocks(fd, is, replay.image + at, at);
	}
	if (fsync(fd) || close(fd))
		die("%s: fsync: %s", replay.target, strerror(errno));
}

/* --- checking a point ---------------------------------------------------- */

static void save_state(void)
{
	int fd = open(STATE, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, replay.slots, sizeof(replay.slots)) !=
	    sizeof(replay.slots) || close(fd))
		die("%s: %s", STATE, strerror(errno));
}

/* What it says goes to SAID. */
static int run(char *const *argv)
{
	int fd, status;
	pid_t child = fork();

	if (child < 0)
		die("fork: %s", strerror(errno));
	if (!child) {
		fd = open(SAID, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		dup2(fd, 1);
		dup2(fd, 2);
		execvp(argv[0], argv);
		_exit(127);
	}
	if (waitpid(child, &status, 0) < 0)
		die("wait: %s", strerror(errno));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static void found(uint64_t n, const char *what)
{
	char said[4096] = "";
	int fd = open(SAID, O_RDONLY);

	if (fd >= 0) {
		if (read(fd, said, sizeof(said) - 1) < 0)
			said[0] = '\0';
		close(fd);
	}
	printf("found %s replayed to entry %llu of %llu: %s\n%s", replay.fs,
	       (unsigned long long)n, (unsigned long long)replay.entries,
	       what, said);
	replay.found++;
}

static bool files_are_right(uint64_t n)
{
	char *verify[] = { "power_load", "verify", STATE, MOUNTED,
			   (char *)replay.seed, NULL };
	char why[128];
	bool right;

	unlink(SAID);
	/* a replayed XFS has the UUID of the original: nothing else is told */
	if (mount(replay.target, MOUNTED, replay.fs, 0,
		  strcmp(replay.fs, "xfs") ? "" : "nouuid")) {
		snprintf(why, sizeof(why), "cannot be mounted: %s",
			 strerror(errno));
		found(n, why);
		return false;
	}
	right = !run(verify);
	if (!right)
		found(n, "files differ:");
	if (umount(MOUNTED))
		die("umount: %s", strerror(errno));
	return right;
}

static bool fsck_is_clean(uint64_t n)
{
	char *ext4[] = { "e2fsck", "-fn", (char *)replay.target, NULL };
	char *xfs[] = { "xfs_repair", "-n", (char *)replay.target, NULL };

	if (!run(strcmp(replay.fs, "xfs") ? ext4 : xfs))
		return true;
	found(n, "fsck complains:");
	return false;
}

static void check(uint64_t n)
{
	fill_target();
	save_state();
	if (files_are_right(n) && replay.checked % FSCK_EACH == 0 &&
	    fsck_is_clean(n))
		replay.clean++;
	replay.checked++;
}

/* --- all points ---------------------------------------------------------- */

static void count_points(void)
{
	uint64_t i, at = replay.sector;
	struct entry entry;

	for (i = 0; i < replay.entries; i++) {
		read_entry(&entry, &at);
		if (entry.flags & MARK)
			take_mark(&entry);
		replay.points += is_point(&entry);
	}
	if (!replay.begun)
		die("log: no mark " POWER_BEGIN);
	replay.begun = false;
	memset(replay.slots, 0, sizeof(replay.slots));
}

/* Every so many points, so that those left fit into the time that is left. */
static double stride(double begin, double seconds, uint64_t left)
{
	double spent = now() - begin;
	double each = replay.checked ? spent / replay.checked : 0;
	double fit = each > 0 ? (seconds - spent) / each : left;

	if (fit < 1)
		fit = 1;
	return left > fit ? left / fit : 1;
}

static void replay_all(double seconds)
{
	uint64_t i, at = replay.sector, point = 0;
	double begin = now(), next = 1;
	struct entry entry;

	for (i = 0; i < replay.entries && replay.found < MAX_FOUND; i++) {
		read_entry(&entry, &at);
		take(&entry);
		if (!is_point(&entry) || ++point < next ||
		    (replay.checked && now() - begin > seconds))
			continue;
		check(i);
		next = point + stride(begin, seconds, replay.points - point);
	}
	if (replay.found < MAX_FOUND)
		check(i);
}

static void parse_break(void)
{
	const char *text = getenv("BREAK");

	if (!text || !*text)
		broken = INTACT;
	else if (!strcmp(text, "write"))
		broken = NO_WRITE;
	else if (!strcmp(text, "data"))
		broken = NO_DATA;
	else if (!strcmp(text, "corrupt"))
		broken = CORRUPT;
	else if (!strcmp(text, "flush"))
		broken = LATE;
	else
		die("BREAK=%s is none of write, data, corrupt, flush", text);
}

static void report(void)
{
	printf("did points_replayed %llu\n", replay.checked);
	printf("did points_logged %llu\n", (unsigned long long)replay.points);
	printf("did fsck_clean %llu\n", replay.clean);
	printf("did bytes_replayed %llu\n", replay.replayed);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 7 || (strcmp(argv[4], "ext4") && strcmp(argv[4], "xfs"))) {
		fputs("usage: replay_log LOG TARGET SECTORS ext4|xfs SEED SECONDS\n",
		      stderr);
		return 2;
	}
	parse_break();
	replay.target = argv[2];
	replay.fs = argv[4];
	replay.seed = argv[5];
	replay.size = strtoull(argv[3], NULL, 0) * SECTOR;
	if (!replay.size || replay.size % CHUNK)
		die("%s sectors are no whole number of MiB", argv[3]);
	replay.image = mmap(NULL, replay.size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (replay.image == MAP_FAILED)
		die("no memory for %zu bytes", replay.size);
	open_log(argv[1]);
	count_points();
	replay_all(strtod(argv[6], NULL));
	report();
	return replay.found ? 1 : 0;
}
