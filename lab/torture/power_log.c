// SPDX-License-Identifier: GPL-2.0
/*
 * power_log: what a power failure at any time leaves of files that were synced
 *
 *	power_log write DM DIR SEED SECONDS
 *	power_log replay LOG TARGET SECTORS ext4|xfs SEED SECONDS
 *
 * "write": each of WRITERS tasks has a directory below DIR with slots. A step
 * brings a slot to its next version: mark "b,WRITER,SLOT,VERSION,COUNT" in the
 * log of the dm-log-writes device DM, the writes, what makes them permanent,
 * mark "d,...". So after a power failure a slot is at the version of its last
 * "d", or of its last "b".
 *
 * "replay": LOG holds what was logged of a device of SECTORS. It is replayed up
 * to each "d", or, where SECONDS do not suffice, to as many of them, spread
 * evenly, and to its end. What came behind the last flush, and is no FUA write,
 * is left out, as the worst that may happen. There, TARGET gets the contents
 * that the device then had; it is mounted on /mnt, so that the journal
 * recovers; the files are compared; and, each few times, fsck finds nothing.
 *
 * The device must complete flushes in the order in which it gets them, as with
 * one hardware queue: the log has a write with the first flush submitted after
 * it. Were a later one to end sooner, the log would lack what that promised.
 *
 * (xfstests' replay-log does the replay alone, and is in no package.)
 *
 * To see that it can fail, BREAK=write leaves every 8th write out, corrupt
 * changes a byte of it, flush applies writes one flush late. BREAK=data leaves
 * out every 8th write of what files contain, which only comparing may find.
 *
 * Says "did KEY N" and "found TEXT". Exit: 0, 1 if something was found, 2 usage
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/dm-ioctl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	/* slots, the same in each writer's directory */
	REPLACED	= 0,		/* as a whole, by fsync and rename */
	UNLINKED	= 8,		/* there at odd versions only */
	APPENDED	= 16,		/* grows by a record a version */
	BLOCKS		= 17,		/* of one file, overwritten in place */
	NR_BLOCKS	= 64,
	SLOTS		= BLOCKS + NR_BLOCKS,

	WRITERS		= 4,
	MAX_APPENDED	= 1000,		/* so that comparing ends soon */
	MAX_SPAN	= 16,		/* of blocks in a step */
	MAX_RECORD	= 4096,
	MAX_FILE	= 64 << 10,
	BLOCK		= 4096,
};

/* The mark behind mkfs and the directories: from here on slots count. */
#define BEGIN	"power-begin"

static uint64_t seed;
static const char *dir = "/mnt";
static char data[MAX_FILE] __attribute__((aligned(BLOCK)));
static char seen[MAX_FILE + 1] __attribute__((aligned(BLOCK)));

static void __attribute__((noreturn, format(printf, 1, 2)))
die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fputs("found power_log: ", stdout);
	vprintf(fmt, args);
	printf(" (%s)\n", strerror(errno));
	exit(1);
}

static long must(long rc, const char *what)
{
	if (rc < 0)
		die("%s", what);
	return rc;
}

/* --- what a version consists of ------------------------------------------ */

static uint64_t mix(uint64_t x)
{
	x ^= x >> 31;
	x *= 0x9e3779b97f4a7c15ull;
	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9ull;
	return x ^ x >> 32;
}

static uint64_t key_of(int writer, int slot, unsigned int version)
{
	return mix(seed ^ mix((uint64_t)version << 32 | slot << 8 | writer));
}

/* Of size bytes, or, if that is 0, of as many as the key says, up to most. No
 * part of it occurs in another version. */
static size_t fill(char *to, size_t size, size_t most, uint64_t key)
{
	size = size ?: 1 + mix(key) % most;
	for (size_t at = 0; at < size; at += sizeof(key)) {
		uint64_t word = mix(key + at);

		memcpy(to + at, &word, size - at < 8 ? size - at : 8);
	}
	return size;
}

static const char *path_of(int writer, int slot)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/w%d/%c%d", dir, writer,
		 slot < UNLINKED ? 'r' : slot < APPENDED ? 'u' :
		 slot < BLOCKS ? 'a' : 'd', slot < BLOCKS ? slot : BLOCKS);
	return path;
}

/* --- writing ------------------------------------------------------------- */

static int control;		/* device-mapper's */
static const char *dm_name;

/* As "dmsetup message DM 0 mark ...", which would be a process each time. */
static void __attribute__((format(printf, 1, 2))) mark(const char *fmt, ...)
{
	struct {
		struct dm_ioctl head;
		struct dm_target_msg msg;
		char text[72];
	} request = { };
	char *text =
		(char *)&request + sizeof(request.head) + sizeof(request.msg);
	va_list args;

	request.head.version[0] = DM_VERSION_MAJOR;
	request.head.data_size = sizeof(request);
	request.head.data_start = sizeof(request.head);
	snprintf(request.head.name, sizeof(request.head.name), "%s", dm_name);
	va_start(args, fmt);
	vsnprintf(stpcpy(text, "mark "), 64, fmt, args);
	must(ioctl(control, DM_TARGET_MSG, &request), text);
}

static void sync_dir(int writer)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/w%d", dir, writer);
	fd = must(open(path, O_RDONLY | O_DIRECTORY), path);
	must(fsync(fd) | close(fd), path);
}

static void write_file(const char *path, int flags, size_t size, off_t at)
{
	int fd = must(open(path, O_WRONLY | O_CREAT | flags, 0644), path);

	if (pwrite(fd, data, size, at) != (ssize_t)size)
		die("%s: write", path);
	must((flags & O_DIRECT ? fdatasync : fsync)(fd) | close(fd), path);
}

static void write_blocks(int writer, int slot, unsigned int version, int count)
{
	for (int i = 0; i < count; i++)
		fill(data + i * BLOCK, BLOCK, 0,
		     key_of(writer, slot + i, version));
	write_file(path_of(writer, slot), O_DIRECT, count * BLOCK,
		   (slot - BLOCKS) * BLOCK);
}

static void step(int writer, int slot, unsigned int version, int count)
{
	const char *path = path_of(writer, slot);
	uint64_t key = key_of(writer, slot, version);
	char new[256];

	mark("b,%d,%d,%u,%d", writer, slot, version, count);
	if (slot < UNLINKED) {
		snprintf(new, sizeof(new), "%s/w%d/new", dir, writer);
		write_file(new, O_TRUNC, fill(data, 0, MAX_FILE, key), 0);
		must(rename(new, path), path);
	} else if (slot < APPENDED && !(version & 1)) {
		must(unlink(path), path);
	} else if (slot < APPENDED) {
		write_file(path, O_TRUNC, fill(data, 0, MAX_FILE, key), 0);
	} else if (slot < BLOCKS) {
		write_file(path, O_APPEND, fill(data, 0, MAX_RECORD, key), 0);
	} else {
		write_blocks(writer, slot, version, count);
	}
	if (slot < BLOCKS)
		sync_dir(writer);
	mark("d,%d,%d,%u,%d", writer, slot, version, count);
}

static void random_step(int writer, unsigned int *versions, uint64_t chance)
{
	int slot = chance % (BLOCKS + 1), block = (chance >> 16) % NR_BLOCKS;
	int count = 1 + (chance >> 32) % MAX_SPAN;

	if (slot == APPENDED && versions[slot] >= MAX_APPENDED)
		slot = 0;
	versions[slot]++;
	/* all blocks share one version, which no two spans have */
	if (slot < BLOCKS)
		step(writer, slot, versions[slot], 1);
	else
		step(writer, slot + block, versions[slot],
		     count < NR_BLOCKS - block ? count : NR_BLOCKS - block);
}

static int writer_main(int writer, time_t end)
{
	unsigned int versions[BLOCKS + 1] = { [BLOCKS] = 1 };
	uint64_t n;

	/* the file is there, whole, before its blocks change one by one */
	for (int at = 0; at < NR_BLOCKS; at += MAX_SPAN)
		write_blocks(writer, BLOCKS + at, 1, MAX_SPAN);
	sync_dir(writer);
	mark("d,%d,%d,%u,%d", writer, BLOCKS, 1, NR_BLOCKS);
	for (n = 0; time(NULL) < end; n++)
		random_step(writer, versions, key_of(writer, 255, n));
	printf("did power_steps %llu\n", (unsigned long long)n);
	return 0;
}

static int write_main(unsigned int seconds)
{
	time_t end = time(NULL) + seconds;
	int i, status, rc = 0;
	char path[256];

	control = must(open("/dev/mapper/control", O_RDWR), "/dev/mapper/control");
	for (i = 0; i < WRITERS; i++) {
		snprintf(path, sizeof(path), "%s/w%d", dir, i);
		must(mkdir(path, 0755), path);
	}
	sync();
	mark(BEGIN);
	for (i = 0; i < WRITERS; i++)
		if (!must(fork(), "fork"))
			exit(writer_main(i, end));
	while (wait(&status) > 0)
		rc |= status != 0;
	return rc;
}

/* --- comparing ----------------------------------------------------------- */

/* What the log promises at this point, and what it may have. */
static struct slot {
	unsigned int done, begun;
} slots[WRITERS][SLOTS];

static bool is_file(int writer, int slot, unsigned int version, ssize_t size)
{
	if (!version || (slot >= UNLINKED && !(version & 1)))
		return size == -1;
	return size == (ssize_t)fill(data, 0, MAX_FILE,
				     key_of(writer, slot, version)) &&
	       !memcmp(data, seen, size);
}

static bool file_is_right(int writer, int slot, const struct slot *is, int fd)
{
	ssize_t size = fd < 0 ? -1 : read(fd, seen, sizeof(seen));

	return is_file(writer, slot, is->done, size) ||
		is_file(writer, slot, is->begun, size) ||
		/* a write to a new file may have come only in part */
		(slot >= UNLINKED && is->begun != is->done && is->begun & 1);
}

/* All records that were synced. */
static bool appended_is_right(int writer, int slot, const struct slot *is,
			      int fd)
{
	for (unsigned int i = 1; i <= is->done; i++) {
		size_t size =
			fill(data, 0, MAX_RECORD, key_of(writer, slot, i));

		if (read(fd, seen, size) != (ssize_t)size ||
		    memcmp(seen, data, size))
			return false;
	}
	return true;
}

static bool is_block(int writer, int slot, unsigned int version, int fd)
{
	fill(data, BLOCK, 0, key_of(writer, slot, version));
	return pread(fd, seen, BLOCK, (slot - BLOCKS) * BLOCK) == BLOCK &&
		!memcmp(seen, data, BLOCK);
}

static bool block_is_right(int writer, int slot, const struct slot *is, int fd)
{
	return !is->done || is_block(writer, slot, is->done, fd) ||
		is_block(writer, slot, is->begun, fd);
}

/* Says which slot is neither as it was synced nor as it was to be next. */
static bool files_are_right(void)
{
	for (int i = 0; i < WRITERS * SLOTS; i++) {
		int writer = i / SLOTS, slot = i % SLOTS;
		const struct slot *is = &slots[writer][slot];
		int fd = open(path_of(writer, slot), O_RDONLY);
		bool right;

		must(fd < 0 && errno != ENOENT ? -1 : 0, path_of(writer, slot));
		right = (slot < APPENDED ? file_is_right : slot < BLOCKS ?
			 appended_is_right : block_is_right)(writer, slot, is,
							     fd);
		close(fd);
		if (right)
			continue;
		printf("found %s, slot %d: neither version %u, which was synced, nor %u\n",
		       path_of(writer, slot), slot, is->done, is->begun);
		return false;
	}
	return true;
}

/* --- the log ------------------------------------------------------------- */

enum {
	SECTOR		= 512,
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

/* As they lie on the disk: guests are little-endian. Data follows an entry's
 * sector. */
struct super {
	uint64_t magic, version, entries;
	uint32_t sector;
};

struct entry {
	uint64_t sector, sectors, flags, length;
	char mark[SECTOR - 32];
};

static struct {
	const char *target, *fs;
	const struct super *log;
	const struct entry *first;
	size_t size;			/* of the device */
	char *image;			/* its contents at this point */
	bool begun;
	unsigned long long points, bytes, checked, clean, found;
} replay;

static enum { INTACT, WRITE, DATA, CORRUPT, LATE } broken;

/* Behind the last flush. */
static const struct entry *held[MAX_HELD];
static unsigned int nr_held;

static const struct entry *next(const struct entry *entry)
{
	uint64_t sectors = entry->flags & DISCARD ? 0 : entry->sectors;

	return (void *)((char *)entry + (1 + sectors) * replay.log->sector);
}

static void take_mark(const char *text)
{
	unsigned int writer, slot, version, count, i;
	char what;

	replay.begun |= !strcmp(text, BEGIN);
	if (sscanf(text, "%c,%u,%u,%u,%u", &what, &writer, &slot, &version,
		   &count) != 5 || writer >= WRITERS || slot + count > SLOTS)
		return;			/* another mark, as the last one */
	for (i = slot; i < slot + count; i++) {
		slots[writer][i].begun = version;
		if (what == 'd')
			slots[writer][i].done = version;
	}
}

/* Whether a writer was told that something is permanent. */
static bool is_point(const struct entry *entry)
{
	return entry->flags & MARK && !strncmp(entry->mark, "d,", 2);
}

/* --- the image ----------------------------------------------------------- */

static void apply(const struct entry *entry)
{
	static unsigned int nr;
	size_t size = entry->sectors * replay.log->sector;
	size_t at = entry->sector * replay.log->sector;
	bool breaks = replay.begun && broken && broken != LATE && size &&
		!(broken == DATA && entry->flags & METADATA) &&
		++nr % BREAK_EACH == 0;

	if (at > replay.size || size > replay.size - at)
		die("log: a write beyond the device, at %zu", at);
	if (breaks && broken != CORRUPT)
		return;
	if (entry->flags & DISCARD)
		memset(replay.image + at, 0, size);
	else
		memcpy(replay.image + at, (char *)entry + replay.log->sector,
		       size);
	if (breaks)
		replay.image[at + 100] ^= 1;
	replay.bytes += size;
}

/* All that came before the flush, or, to break it, before the one before. */
static void take_flush(void)
{
	static unsigned int nr_before;
	unsigned int nr = broken == LATE && replay.begun ? nr_before : nr_held;
	unsigned int i;

	for (i = 0; i < nr; i++)
		apply(held[i]);
	nr_held -= nr;
	memmove(held, held + nr, nr_held * sizeof(*held));
	nr_before = nr_held;
}

static void take(const struct entry *entry)
{
	if (entry->flags & MARK) {
		take_mark(entry->mark);
		return;
	}
	if (entry->flags & FLUSH)
		take_flush();
	if (entry->flags & (FLUSH | FUA))
		apply(entry);
	else if (nr_held < MAX_HELD)
		held[nr_held++] = entry;
	else
		die("log: more than %u writes without a flush", MAX_HELD);
}

/* --- checking a point ---------------------------------------------------- */

/* Writes only where the last check, or the log, made a difference. */
static void fill_target(void)
{
	static char is[BLOCK * 16] __attribute__((aligned(BLOCK)));
	int fd = must(open(replay.target, O_RDWR | O_DIRECT), replay.target);

	for (size_t at = 0; at < replay.size; at += sizeof(is)) {
		if (pread(fd, is, sizeof(is), at) != sizeof(is))
			die("%s: read", replay.target);
		if (!memcmp(is, replay.image + at, sizeof(is)))
			continue;
		memcpy(is, replay.image + at, sizeof(is));
		if (pwrite(fd, is, sizeof(is), at) != sizeof(is))
			die("%s: write", replay.target);
	}
	must(fsync(fd) | close(fd), replay.target);
}

static bool recovers(void)
{
	bool right;

	/* a replayed XFS has the UUID of the original: nothing else is told */
	if (mount(replay.target, dir, replay.fs, 0,
		  strcmp(replay.fs, "xfs") ? "" : "nouuid")) {
		printf("found it cannot be mounted: %s\n", strerror(errno));
		return false;
	}
	right = files_are_right();
	must(umount(dir), "umount");
	return right;
}

static bool fsck_is_clean(void)
{
	char command[512];

	snprintf(command, sizeof(command), "%s %s >/tmp/fsck 2>&1 && exit; "
		 "echo found fsck complains:; cat /tmp/fsck; exit 1",
		 strcmp(replay.fs, "xfs") ? "e2fsck -fn" : "xfs_repair -n",
		 replay.target);
	return !system(command);
}

static void check(unsigned long long n)
{
	bool fsck = replay.checked++ % FSCK_EACH == 0;

	fill_target();
	if (!recovers() || (fsck && !fsck_is_clean()))
		printf("that is %s replayed to entry %llu of %llu, error %llu\n",
		       replay.fs, n, (unsigned long long)replay.log->entries,
		       ++replay.found);
	else
		replay.clean += fsck;
}

/* --- all points ---------------------------------------------------------- */

static void open_log(const char *path)
{
	int fd = must(open(path, O_RDONLY), path);
	const struct entry *entry;
	uint64_t i;

	replay.log = mmap(NULL, lseek(fd, 0, SEEK_END), PROT_READ, MAP_PRIVATE,
			  fd, 0);
	replay.image = mmap(NULL, replay.size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (replay.log == MAP_FAILED || replay.image == MAP_FAILED)
		die("%s: mmap", path);
	if (replay.log->magic != 0x6a736677736872ull ||
	    replay.log->version != 1 || replay.log->sector < SECTOR ||
	    replay.log->sector > BLOCK)
		die("%s: no log of dm-log-writes, version 1", path);
	replay.first = (void *)((char *)replay.log + replay.log->sector);
	for (i = 0, entry = replay.first; i < replay.log->entries;
	     i++, entry = next(entry)) {
		if (entry->flags & MARK)
			replay.begun |= !strcmp(entry->mark, BEGIN);
		replay.points += is_point(entry);
	}
	if (!replay.begun)
		die("%s: no mark " BEGIN, path);
	replay.begun = false;
}

/* Every so many points, so that those left fit into the time that is left. */
static double stride(double spent, double seconds, double left)
{
	double fit = spent ? (seconds - spent) * replay.checked / spent : left;

	return left / (fit < 1 ? 1 : fit > left ? left : fit);
}

static int replay_main(time_t seconds)
{
	static const char *const ways[] = { "", "write", "data", "corrupt", "flush" };
	const char *way = getenv("BREAK") ?: "";
	const struct entry *entry = replay.first;
	time_t begin = time(NULL);
	uint64_t i, point = 0;
	double at = 1;

	for (i = 0; i < 5 && strcmp(way, ways[i]); i++)
		;
	if (i == 5)
		die("BREAK=%s is none of write, data, corrupt, flush", way);
	broken = i;
	for (i = 0; i < replay.log->entries && replay.found < MAX_FOUND;
	     i++, entry = next(entry)) {
		take(entry);
		if (!is_point(entry) || ++point < at ||
		    (replay.checked && time(NULL) - begin > seconds))
			continue;
		check(i);
		at = point +
		     stride(time(NULL) - begin, seconds, replay.points - point);
	}
	if (replay.found < MAX_FOUND)
		check(i);
	printf("did points_replayed %llu\ndid points_logged %llu\n"
	       "did fsck_clean %llu\ndid bytes_replayed %llu\n", replay.checked,
	       replay.points, replay.clean, replay.bytes);
	return replay.found ? 1 : 0;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 6 && !strcmp(argv[1], "write")) {
		dm_name = argv[2];
		dir = argv[3];
		seed = strtoull(argv[4], NULL, 0);
		return write_main(strtoul(argv[5], NULL, 0));
	}
	if (argc == 8 && !strcmp(argv[1], "replay")) {
		replay.target = argv[3];
		replay.size = strtoull(argv[4], NULL, 0) * SECTOR;
		replay.fs = argv[5];
		seed = strtoull(argv[6], NULL, 0);
		open_log(argv[2]);
		return replay_main(strtol(argv[7], NULL, 0));
	}
	fputs("usage: power_log write DM DIR SEED SECONDS\n"
	      "       power_log replay LOG TARGET SECTORS ext4|xfs SEED SECONDS\n",
	      stderr);
	return 2;
}
