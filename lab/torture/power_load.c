// SPDX-License-Identifier: GPL-2.0
/*
 * power_load: files whose state after a power failure is known
 *
 *	power_load write DM DIR SEED SECONDS
 *	power_load verify STATE DIR SEED
 *
 * "write" makes the steps of power_load.h, with several tasks, below DIR, and
 * tells the dm-log-writes device DM about them. "verify" compares DIR with
 * STATE, which replay_log wrote: one struct power_slot for each slot.
 *
 * Exit: 0, 1 if something differs or failed, 2 on wrong usage.
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
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "power_load.h"

enum {
	BLOCK		= 4096,
	MAX_FILE	= 64 << 10,
	MAX_RECORD	= 4096,
	MAX_SPAN	= 16,
	MAX_APPENDED	= 1000,		/* so that verifying ends soon */
	PATH_SIZE	= 256,
};

static uint64_t seed;
static int control = -1;		/* device-mapper's */
static char *dm_name;
static char data[MAX_FILE] __attribute__((aligned(BLOCK)));
static char seen[MAX_FILE + 1] __attribute__((aligned(BLOCK)));

static void __attribute__((noreturn, format(printf, 1, 2)))
die(const char *fmt, ...)
{
	va_list args;

	fputs("found power_load: ", stdout);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
	exit(1);
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

/* No part of it occurs in another version. */
static void fill(char *to, size_t size, uint64_t key)
{
	for (size_t at = 0; at < size; at += sizeof(key)) {
		size_t left = size - at;
		uint64_t word = mix(key + at);

		memcpy(to + at, &word, left < sizeof(word) ? left :
		       sizeof(word));
	}
}

static size_t file_size(uint64_t key)
{
	return 1 + mix(key) % MAX_FILE;
}

static size_t record_size(uint64_t key)
{
	return 1 + mix(key) % MAX_RECORD;
}

static void path_of(char *path, const char *dir, int writer, int slot)
{
	if (slot < POWER_UNLINKED)
		snprintf(path, PATH_SIZE, "%s/w%d/r%d", dir, writer, slot);
	else if (slot < POWER_APPENDED)
		snprintf(path, PATH_SIZE, "%s/w%d/u%d", dir, writer,
			 slot - POWER_UNLINKED);
	else
		snprintf(path, PATH_SIZE, "%s/w%d/%c", dir, writer,
			 slot == POWER_APPENDED ? 'a' : 'd');
}

/* --- writing ------------------------------------------------------------- */

/* As "dmsetup message DM 0 mark TEXT", which would be a process each time. */
static void mark(const char *text)
{
	struct {
		struct dm_ioctl head;
		struct dm_target_msg msg;
		char text[64];
	} request = { };

	request.head.version[0] = DM_VERSION_MAJOR;
	request.head.data_size = sizeof(request);
	request.head.data_start = sizeof(request.head);
	snprintf(request.head.name, sizeof(request.head.name), "%s", dm_name);
	snprintf((char *)&request + sizeof(request.head) + sizeof(request.msg),
		 sizeof(request.text), "mark %s", text);
	if (ioctl(control, DM_TARGET_MSG, &request))
		die("mark %s: %s", text, strerror(errno));
}

static void mark_step(char what, int writer, int slot, unsigned int version,
		      int count)
{
	char text[64];

	snprintf(text, sizeof(text), "%c,%d,%d,%u,%d", what, writer, slot,
		 version, count);
	mark(text);
}

static int open_or_die(const char *path, int flags)
{
	int fd = open(path, flags, 0644);

	if (fd < 0)
		die("open %s: %s", path, strerror(errno));
	return fd;
}

static void write_all(int fd, const char *from, size_t size, off_t at)
{
	ssize_t done = pwrite(fd, from, size, at);

	if (done < 0 || (size_t)done != size)
		die("write of %zu bytes: %s", size,
		    done < 0 ? strerror(errno) : "short");
}

static void sync_and_close(int fd)
{
	if (fsync(fd) || close(fd))
		die("fsync: %s", strerror(errno));
}

static void sync_dir(const char *dir, int writer)
{
	char path[PATH_SIZE];

	snprintf(path, sizeof(path), "%s/w%d", dir, writer);
	sync_and_close(open_or_die(path, O_RDONLY | O_DIRECTORY));
}

static void write_file(const char *path, uint64_t key)
{
	int fd = open_or_die(path, O_WRONLY | O_CREAT | O_TRUNC);
	size_t size = file_size(key);

	fill(data, size, key);
	write_all(fd, data, size, 0);
	sync_and_close(fd);
}

static void step_replace(const char *dir, int writer, int slot, uint64_t key)
{
	char path[PATH_SIZE], from[PATH_SIZE];

	path_of(path, dir, writer, slot);
	snprintf(from, sizeof(from), "%s/w%d/new", dir, writer);
	write_file(from, key);
	if (rename(from, path))
		die("rename %s: %s", path, strerror(errno));
	sync_dir(dir, writer);
}

static void step_unlink(const char *dir, int writer, int slot,
			unsigned int version, uint64_t key)
{
	char path[PATH_SIZE];

	path_of(path, dir, writer, slot);
	if (version & 1)
		write_file(path, key);
	else if (unlink(path))
		die("unlink %s: %s", path, strerror(errno));
	sync_dir(dir, writer);
}

static void step_append(const char *dir, int writer, uint64_t key)
{
	char path[PATH_SIZE];
	size_t size = record_size(key);
	int fd;

	path_of(path, dir, writer, POWER_APPENDED);
	fd = open_or_die(path, O_WRONLY | O_CREAT);
	fill(data, size, key);
	write_all(fd, data, size, lseek(fd, 0, SEEK_END));
	sync_and_close(fd);
	sync_dir(dir, writer);
}

static void step_blocks(const char *dir, int writer, int slot, int count,
			unsigned int version)
{
	char path[PATH_SIZE];
	int fd, i;

	path_of(path, dir, writer, POWER_BLOCKS);
	for (i = 0; i < count; i++)
		fill(data + i * BLOCK, BLOCK,
		     key_of(writer, slot + i, version));
	fd = open_or_die(path, O_WRONLY | O_CREAT | O_DIRECT);
	write_all(fd, data, count * BLOCK, (slot - POWER_BLOCKS) * BLOCK);
	if (fdatasync(fd) || close(fd))
		die("fdatasync %s: %s", path, strerror(errno));
}

static void step(const char *dir, int writer, int slot, unsigned int version,
		 int count)
{
	uint64_t key = key_of(writer, slot, version);

	mark_step('b', writer, slot, version, count);
	if (slot < POWER_UNLINKED)
		step_replace(dir, writer, slot, key);
	else if (slot < POWER_APPENDED)
		step_unlink(dir, writer, slot, version, key);
	else if (slot == POWER_APPENDED)
		step_append(dir, writer, key);
	else
		step_blocks(dir, writer, slot, count, version);
	mark_step('d', writer, slot, version, count);
}

/* The file of blocks is there, whole, before its blocks change one by one. */
static void first_blocks(const char *dir, int writer)
{
	int at;

	for (at = 0; at < POWER_NR_BLOCKS; at += MAX_SPAN)
		step_blocks(dir, writer, POWER_BLOCKS + at, MAX_SPAN, 1);
	sync_dir(dir, writer);
	mark_step('d', writer, POWER_BLOCKS, 1, POWER_NR_BLOCKS);
}

static void random_step(const char *dir, int writer, unsigned int *versions,
			uint64_t chance)
{
	unsigned int *blocks = &versions[POWER_BLOCKS];
	int slot = chance % (POWER_BLOCKS + 1);
	int block = (chance >> 16) % POWER_NR_BLOCKS;
	int count = 1 + (chance >> 32) % MAX_SPAN;

	if (slot == POWER_APPENDED && versions[slot] >= MAX_APPENDED)
		slot = 0;
	if (slot < POWER_BLOCKS) {
		step(dir, writer, slot, ++versions[slot], 1);
		return;
	}
	/* all blocks share one version, which no two spans have */
	if (count > POWER_NR_BLOCKS - block)
		count = POWER_NR_BLOCKS - block;
	step(dir, writer, POWER_BLOCKS + block, ++*blocks, count);
}

static int writer_main(const char *dir, int writer, time_t end)
{
	unsigned int versions[POWER_SLOTS] = { };
	uint64_t n;

	first_blocks(dir, writer);
	versions[POWER_BLOCKS] = 1;
	for (n = 0; time(NULL) < end; n++)
		random_step(dir, writer, versions, key_of(writer, 255, n));
	printf("did power_steps %llu\n", (unsigned long long)n);
	return 0;
}

static void make_dirs(const char *dir)
{
	char path[PATH_SIZE];
	int i;

	for (i = 0; i < POWER_WRITERS; i++) {
		snprintf(path, sizeof(path), "%s/w%d", dir, i);
		if (mkdir(path, 0755))
			die("mkdir %s: %s", path, strerror(errno));
	}
	sync();
}

static int write_main(const char *dir, unsigned int seconds)
{
	time_t end = time(NULL) + seconds;
	int i, status, rc = 0;

	control = open_or_die("/dev/mapper/control", O_RDWR);
	make_dirs(dir);
	mark(POWER_BEGIN);
	for (i = 0; i < POWER_WRITERS; i++) {
		pid_t child = fork();

		if (child < 0)
			die("fork: %s", strerror(errno));
		if (!child)
			exit(writer_main(dir, i, end));
	}
	while (wait(&status) > 0)
		rc |= status != 0;
	return rc;
}

/* --- verifying ----------------------------------------------------------- */

/* The size of the file, up to one more than one may have; -1: there is none. */
static ssize_t read_file(const char *path)
{
	int fd = open(path, O_RDONLY);
	ssize_t size;

	if (fd < 0 && errno == ENOENT)
		return -1;
	if (fd < 0)
		die("open %s: %s", path, strerror(errno));
	size = read(fd, seen, sizeof(seen));
	if (size < 0)
		die("read %s: %s", path, strerror(errno));
	close(fd);
	return size;
}

static bool is_file(int writer, int slot, unsigned int version, ssize_t size)
{
	uint64_t key = key_of(writer, slot, version);

	if (!version || (slot >= POWER_UNLINKED && !(version & 1)))
		return size == -1;
	if (size != (ssize_t)file_size(key))
		return false;
	fill(data, size, key);
	return !memcmp(data, seen, size);
}

/* A write to a new file may have come only in part: it was not promised. */
static bool may_be_partial(int slot, const struct power_slot *slots)
{
	return slot >= POWER_UNLINKED && slots->begun != slots->done &&
		slots->begun & 1;
}

static void verify_file(const char *dir, int writer, int slot,
			const struct power_slot *is)
{
	char path[PATH_SIZE];
	ssize_t size;

	path_of(path, dir, writer, slot);
	size = read_file(path);
	if (is_file(writer, slot, is->done, size) ||
	    is_file(writer, slot, is->begun, size) || may_be_partial(slot, is))
		return;
	die("%s: neither version %u, which was synced, nor %u (size %zd)",
	    path, is->done, is->begun, size);
}

static void verify_appended(const char *dir, int writer,
			    const struct power_slot *is)
{
	char path[PATH_SIZE];
	unsigned int i;
	size_t size;
	FILE *file;

	if (!is->done)
		return;
	path_of(path, dir, writer, POWER_APPENDED);
	file = fopen(path, "r");
	if (!file)
		die("%s: %s, but %u records were synced", path,
		    strerror(errno), is->done);
	for (i = 1; i <= is->done; i++) {
		uint64_t key = key_of(writer, POWER_APPENDED, i);

		size = record_size(key);
		fill(data, size, key);
		if (fread(seen, 1, size, file) != size ||
		    memcmp(seen, data, size))
			die("%s: record %u of %u that were synced is lost",
			    path, i, is->done);
	}
	fclose(file);
}

static bool is_block(int fd, int writer, int slot, unsigned int version)
{
	off_t at = (off_t)(slot - POWER_BLOCKS) * BLOCK;

	fill(data, BLOCK, key_of(writer, slot, version));
	return pread(fd, seen, BLOCK, at) == BLOCK &&
		!memcmp(seen, data, BLOCK);
}

static void verify_blocks(const char *dir, int writer,
			  const struct power_slot *slots)
{
	char path[PATH_SIZE];
	int fd, slot;

	if (!slots[POWER_BLOCKS].done)
		return;
	path_of(path, dir, writer, POWER_BLOCKS);
	fd = open_or_die(path, O_RDONLY);
	for (slot = POWER_BLOCKS; slot < POWER_SLOTS; slot++)
		if (!is_block(fd, writer, slot, slots[slot].done) &&
		    !is_block(fd, writer, slot, slots[slot].begun))
			die("%s: block %d has neither version %u, which was synced, nor %u",
			    path, slot - POWER_BLOCKS, slots[slot].done,
			    slots[slot].begun);
	close(fd);
}

static int verify_main(const char *state, const char *dir)
{
	struct power_slot slots[POWER_WRITERS][POWER_SLOTS];
	int fd = open_or_die(state, O_RDONLY);
	int writer, slot;

	if (read(fd, slots, sizeof(slots)) != sizeof(slots))
		die("%s: too short", state);
	close(fd);
	for (writer = 0; writer < POWER_WRITERS; writer++) {
		for (slot = 0; slot < POWER_APPENDED; slot++)
			verify_file(dir, writer, slot, &slots[writer][slot]);
		verify_appended(dir, writer, &slots[writer][POWER_APPENDED]);
		verify_blocks(dir, writer, slots[writer]);
	}
	return 0;
}

static int usage(void)
{
	fputs("usage: power_load write DM DIR SEED SECONDS\n"
	      "       power_load verify STATE DIR SEED\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 4)
		seed = strtoull(argv[4], NULL, 0);
	if (argc == 6 && !strcmp(argv[1], "write")) {
		dm_name = argv[2];
		return write_main(argv[3], strtoul(argv[5], NULL, 0));
	}
	if (argc == 5 && !strcmp(argv[1], "verify"))
		return verify_main(argv[2], argv[3]);
	return usage();
}
