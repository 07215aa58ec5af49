// SPDX-License-Identifier: GPL-2.0
/*
 * knob_fuzz: many tasks write anything to the knobs of the series, and read
 *
 *	knob_fuzz SEED SECONDS [goes:]DISK...
 *
 * Each write is predicted: what is documented is taken, anything else refused.
 * Each read must have the file's form. The files of a disk that goes may give
 * ENOENT, ENODEV, or, in debugfs, EIO. Kselftests, which are alone, see that a
 * value is the one written, the kernel's watchdogs that each task comes back.
 * Says "did KEY N" and "found TEXT". Exit: 0, 1 if something was found, 2 usage
 */
#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TASKS = 12, HCTXS = 4, MAX_KNOBS = 256 };
enum { MAX_FOUND = 3, MAX_TEXT = 1 << 20 };

#define MODES	"always|never|seq-small|adaptive"
#define BLOCK	"/sys/kernel/debug/block/%s/"
#define UINT	"^[+]?(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)\n?$"
#define TO_32	"([1-9]|[12][0-9]|3[0-2])"

/* In a path, %s is a disk, %d a hardware queue. Base 10 is
 * sysfs, which looks at a page of a write; debugfs looks at 34 bytes. */
static struct kind {
	const char *path, *takes, *says;
	unsigned long long most;	/* number that it takes, of a base */
	int base, wrong;		/* error of a refusal */
	regex_t is_taken, is_said;
} kinds[] = {
	{ "/sys/block/%s/queue/plug_policy", "^(" MODES ")\n?$",
	  "^[^][]*\\[(" MODES ")\\][^][]*\n$", 0, 10, EINVAL },
	{ "/sys/block/%s/queue/nomerges", "^[+]?[0-9]+\n?$", "^[0-2]\n$",
	  0xffffffff, 10, EINVAL },
	{ BLOCK "plug_stats_enabled", UINT, "^[01]\n$", 1, 0, EINVAL },
	{ BLOCK "hctx%d/plug_adaptive", UINT, "^(group " TO_32 "\npinned [01]\nfrom "
	  TO_32 "\ntrial (0|" TO_32 ")\n([a-z_]+ [0-9]+\n)*)?$", 32, 0, EINVAL },
	/* this can only be read */
	{ BLOCK "hctx%d/plug_stats", "^only read$", "^([^ ]+ [0-9]+\n)*$", 1, 0, EPERM },
};
enum { POLICY, NOMERGES, STATS_ENABLED, ADAPTIVE, NR_KINDS = 5 };

static struct knob { int kind; bool goes; char path[128]; } knobs[MAX_KNOBS];
static int nr_knobs;
static unsigned long writes, reads, refused, gone, faults; /* of one task */
static char text[MAX_TEXT + 256], said[1 << 16]; /* written, read */

#define found(fmt, ...)							\
	(faults++ < MAX_FOUND ? printf("found %s: " fmt "\n", __VA_ARGS__) : 0)
#define rnd(below) (random() % (below))

/* Most often what is taken, or just not; then perhaps changed. */
static size_t make_text(int kind)
{
	static const char *const form[] = {
		"%u", "%u\n", "+%u", "00%u", "0x%x", "0%o", "-%u", "%u ", " %u",
		"%u.5", "%u,", "++%u", "%u\n\n", "%u999999999",
		"always", "never\n", "seq-small", "adaptive\n", "always\n", "adaptive" };
	size_t size = sprintf(text, form[kind == POLICY && rnd(8) ?
			14 + rnd(6) : rnd(rnd(2) ? 4 : 14)],
			rnd(rnd(8) ? kinds[kind].most % 40 + 3 : 1u << 31));
	size_t at = rnd(size + 1), more = rnd(64);

	switch (rnd(12)) {
	case 0:					/* a prefix, or nothing */
		return at;
	case 1 ... 2:				/* another byte, or one more */
		text[at] = rnd(2) ? rnd(256) : "\0 \n\t_-[]Aa0\r"[rnd(12)];
		return size + (at == size);
	case 3 ... 4: /* anything, alone or behind it */
		for (size *= rnd(2); more; more--)
			text[size++] = rnd(256);
		return size;
	case 5: /* few of the largest, which take as long as 1000 others */
		more = more ? (1u << (5 + rnd(12))) - rnd(3) : MAX_TEXT;
		memset(text + size, "a0 \n\0"[rnd(5)], more);
		return more;
	}
	return size;
}

/* Whether an answer is no more than that the disk has gone */
static bool is_gone(const struct knob *knob, ssize_t got)
{
	return got < 0 && knob->goes && (errno == ENOENT || errno == ENODEV ||
		(errno == EIO && knob->kind > NOMERGES)) && ++gone;
}

/* All of it, or some part, of which nothing is expected but an answer. */
static void read_knob(struct knob *knob, int fd)
{
	bool all = rnd(2);
	ssize_t got = pread(fd, said, all ? sizeof(said) - 1 : rnd(100),
			    all ? 0 : rnd(1 << rnd(20)));

	reads++;
	if (is_gone(knob, got))
		return;
	said[got < 0 ? 0 : got] = '\0';
	if (got < 0 || (all && (strlen(said) != (size_t)got ||
			regexec(&kinds[knob->kind].is_said, said, 0, NULL, 0))))
		found("reads %zd bytes, '%s'", knob->path, got, said);
}

static void write_knob(struct knob *knob, int fd)
{
	const struct kind *kind = &kinds[knob->kind];
	size_t size = make_text(knob->kind), most = kind->base ? 4096 : 34;
	ssize_t got = write(fd, text, size);
	int error = got < 0 ? errno : 0, wrong = kind->wrong;
	char seen[4096 + 1] = "";

	writes++;
	if (is_gone(knob, got) || !size) /* which sysfs is not even asked */
		return;
	memcpy(seen, text, size < most ? size : most);
	if (!regexec(&kind->is_taken, seen, 0, NULL, 0) &&
	    strtoull(seen, NULL, kind->base) <= kind->most)
		wrong = 0;
	refused += got < 0;
	/* debugfs tells an overflow apart; with an elevator none can pin */
	if (error != wrong && !(wrong && error == ERANGE && !kind->base) && !(
	    knob->kind == ADAPTIVE && error == EOPNOTSUPP))
		found("'%.40s' (%zu bytes): %s, expected: %s", knob->path, text,
		      size, strerror(error), strerror(wrong));
	else if (!error &&
		 (size_t)got != (kind->base && size > most ? most : size))
		found("takes %zd of %zu bytes", knob->path, got, size);
}

static int task_main(time_t end)
{
	while (time(NULL) < end && faults < MAX_FOUND) {
		struct knob *knob = &knobs[rnd(nr_knobs)];
		int fd, n = 1 + rnd(16);

		/* half of the time at plug_policy, the first of each disk's */
		while (n & 1 && knob->kind != POLICY)
			knob--;
		fd = open(knob->path, O_RDWR | (rnd(4) ? 0 : O_APPEND));
		if (fd < 0 && !is_gone(knob, fd))
			found("open: %s", knob->path, strerror(errno));
		/* an open file outlives its device: keep it for a while */
		while (fd >= 0 && n--)
			(rnd(3) ? write_knob : read_knob)(knob, fd);
		close(fd);
	}
	printf("did knob_writes %lu\ndid knob_reads %lu\ndid refused %lu\n"
	       "did knob_gone %lu\n", writes, reads, refused, gone);
	return faults ? 1 : 0;
}

static void add_disk(const char *disk)
{
	bool goes = !strncmp(disk, "goes:", 5);

	for (int i = 0; i < NR_KINDS * HCTXS && nr_knobs < MAX_KNOBS; i++) {
		struct knob *knob = &knobs[nr_knobs];
		const char *path = kinds[i / HCTXS].path;

		*knob = (struct knob){ .kind = i / HCTXS, .goes = goes };
		sprintf(knob->path, path, disk + 5 * goes, i % HCTXS);
		/* a queue more or less depends on the number of CPUs */
		nr_knobs += (goes || !access(knob->path, F_OK)) &&
			(i % HCTXS == 0 || strstr(path, "%d"));
	}
}

int main(int argc, char **argv)
{
	int i, status, rc = 0;

	for (struct kind *one = kinds; one < kinds + NR_KINDS; one++)
		rc |= regcomp(&one->is_taken, one->takes, REG_EXTENDED) |
		      regcomp(&one->is_said, one->says, REG_EXTENDED);
	for (i = 3; i < argc; i++)
		add_disk(argv[i]);
	if (rc || !nr_knobs || nice(10) < 0)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; i < TASKS; i++) {
		srandom(atoi(argv[1]) * TASKS + i);
		if (!fork())
			return task_main(time(NULL) + atoi(argv[2]));
	}
	while (wait(&status) > 0)
		rc |= status != 0;
	return rc;
}
