// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin for QEMU that counts what instructions do to memory while a guest
 * does a number of I/Os: loads, stores, atomics, cache lines, and accesses to
 * lines that CPUs share.
 *
 * The guest calls sync(), and the next window of PLAN begins, whose lines are
 * "NAME CPUS WARM FILL IOS BATCH".  When each of that many CPUs has done WARM
 * I/Os, accesses begin to be seen; when
 * each has done FILL more, by which it is known what they share, all that CPUs
 * do is counted until each has done IOS; the result is appended to the file
 * OUT. An I/O is an execution of the function at IO, the call that of the one
 * at SYNC.
 *
 *	-plugin lines.so,out=FILE,plan=FILE,io=ADDRESS,sync=ADDRESS
 *
 * Lines are those of physical memory, so that an alias is no line of its own.
 * *Contended* touches do not depend on how QEMU lets CPUs take turns: all
 * accesses of the window to lines that at least two CPUs access and at least
 * one of them writes.
 *
 * It expects QEMU to run one CPU at a time (-accel tcg,thread=single): nothing
 * here is locked.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <string.h>

#include "qemu-api.h"
#include "table.h"

#define EXPORT	__attribute__((visibility("default")))

enum {
	MAX_CPUS	= 16,
	LINE_SHIFT	= 6,
	MAX_INSN	= 16,
};

/* An instruction of the guest's. */
struct site {
	uint64_t pc;
	uint64_t insns, loads, stores, contended;
	bool atomic;
};

/*
 * A line; epoch says when each CPU touched it last.  Whether CPUs share it is
 * known for certain at the end only: shared is what is known so far, which is
 * for good, since a guest keeps its habits.
 */
struct line {
	uint64_t number;
	uint64_t touches;
	uint32_t readers, writers;
	uint32_t epoch[MAX_CPUS];
	bool shared;
};

/* Instructions that QEMU runs in one piece. */
struct block {
	struct block *next;
	uint64_t runs;
	size_t nr;
	struct site *sites[];
};

struct cpu {
	uint64_t ios;
	uint32_t epoch;
	uint64_t lines;
};

static enum { IDLE, WARM, SEE, FILL, COUNT } state;
/* Does code have counters? */
static bool seeing;

static struct {
	char name[200];
	unsigned int cpus;
	uint64_t warm, fill, ios, batch, done;
} window;

static qemu_plugin_id_t plugin;
static int api;
static const char *out_path;
static FILE *plan;
static uint64_t io_pc, sync_pc;
static struct cpu cpus[MAX_CPUS];
static struct table sites = { .record = sizeof(struct site) };
static struct table lines = { .record = sizeof(struct line) };
static struct block *blocks;

/* --- memory --------------------------------------------------------------- */

static bool is_contended(const struct line *line)
{
	uint32_t all = line->readers | line->writers;

	return line->writers && all & (all - 1);
}

static void count_line(unsigned int cpu, struct line *line, bool store)
{
	if (line->epoch[cpu] != cpus[cpu].epoch) {
		line->epoch[cpu] = cpus[cpu].epoch;
		cpus[cpu].lines++;
	}
	line->touches++;
	line->readers |= 1U << cpu;
	if (store)
		line->writers |= 1U << cpu;
	line->shared = line->shared || is_contended(line);
}

static void on_access(unsigned int cpu, qemu_plugin_meminfo_t info,
		      uint64_t vaddr, void *data)
{
	struct qemu_plugin_hwaddr *addr;
	struct site *site = data;
	struct line *line;
	bool store;

	if (state < FILL)
		return;
	addr = qemu_plugin_get_hwaddr(info, vaddr);
	if (!addr || qemu_plugin_hwaddr_is_io(addr))
		return;
	store = qemu_plugin_mem_is_store(info);
	line = table_get(&lines, qemu_plugin_hwaddr_phys_addr(addr) >>
			 LINE_SHIFT);
	if (store)
		site->stores++;
	else
		site->loads++;
	count_line(cpu, line, store);
	site->contended += line->shared;
}

/* --- instructions --------------------------------------------------------- */

/* Does it lock the line?  With LOCK it does, and XCHG needs none. */
static bool is_atomic(const uint8_t *bytes, size_t size)
{
	size_t i;

	for (i = 0; i + 1 < size; i++) {
		if (bytes[i] == 0xf0)
			return true;
		if (bytes[i] == 0x86 || bytes[i] == 0x87)
			return bytes[i + 1] >> 6 != 3;
		/* other prefixes go on */
		if (!strchr("\x26\x2e\x36\x3e\x64\x65\x66\x67\xf2\xf3",
			    bytes[i]) && bytes[i] >> 4 != 4)
			return false;
	}
	return false;
}

static size_t insn_bytes(struct qemu_plugin_insn *insn, uint8_t *to)
{
	size_t size = qemu_plugin_insn_size(insn);
	const void *(*data)(const struct qemu_plugin_insn *insn) =
		(void *)qemu_plugin_insn_data;

	if (size > MAX_INSN)
		size = MAX_INSN;
	if (api >= 3)
		return qemu_plugin_insn_data(insn, to, size);
	memcpy(to, data(insn), size);
	return size;
}

static void on_block(unsigned int cpu, void *data)
{
	struct block *block = data;

	(void)cpu;
	block->runs++;
}

static struct site *site_of(struct qemu_plugin_insn *insn)
{
	struct site *site = table_get(&sites, qemu_plugin_insn_vaddr(insn));
	uint8_t bytes[MAX_INSN];

	site->atomic = is_atomic(bytes, insn_bytes(insn, bytes));
	return site;
}

/* Counts all that a block does. */
static void see_block(struct qemu_plugin_tb *tb)
{
	size_t nr = qemu_plugin_tb_n_insns(tb), i;
	struct block *block = table_alloc(1, sizeof(*block) +
					  nr * sizeof(*block->sites));

	block->next = blocks;
	blocks = block;
	block->nr = nr;
	for (i = 0; i < nr; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		block->sites[i] = site_of(insn);
		qemu_plugin_register_vcpu_mem_cb(insn, on_access,
						 QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_RW,
						 block->sites[i]);
	}
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block,
					     QEMU_PLUGIN_CB_NO_REGS, block);
}

/* --- the result ----------------------------------------------------------- */

static void sum_blocks(void)
{
	const struct block *block;
	size_t i;

	for (block = blocks; block; block = block->next)
		for (i = 0; i < block->nr; i++)
			block->sites[i]->insns += block->runs;
}

static void print_sites(FILE *out)
{
	size_t i;

	for (i = 0; i < sites.size; i++) {
		const struct site *s = (void *)sites.slots[i];

		if (s && s->insns)
			fprintf(out, "site %" PRIx64 " %" PRIu64 " %" PRIu64
				" %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
				s->pc, s->insns, s->loads, s->stores,
				s->atomic ? s->insns : 0, s->contended);
	}
}

static uint64_t contended(void)
{
	uint64_t touches = 0;
	size_t i;

	for (i = 0; i < lines.size; i++) {
		const struct line *l = (void *)lines.slots[i];

		if (l && is_contended(l))
			touches += l->touches;
	}
	return touches;
}

static void print_window(void)
{
	FILE *out = fopen(out_path, "a");
	uint64_t distinct = 0;
	unsigned int i;

	if (!out) {
		perror(out_path);
		exit(1);
	}
	for (i = 0; i < MAX_CPUS; i++)
		distinct += cpus[i].lines;
	sum_blocks();
	fprintf(out, "window %s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
		window.name, window.done, distinct, contended());
	print_sites(out);
	fprintf(out, "end %s\n", window.name);
	fclose(out);
}

/* --- the window ----------------------------------------------------------- */

/* From here on, I/Os of each CPU are counted anew. */
static void begin(int new)
{
	unsigned int i;

	for (i = 0; i < MAX_CPUS; i++)
		cpus[i].ios = 0;
	window.done = 0;
	state = new;
}

static void forget_lines(bool keep_shared)
{
	size_t i;

	for (i = 0; i < lines.size; i++) {
		struct line *l = (void *)lines.slots[i];

		if (l)
			*l = (struct line){
				.number = l->number,
				.shared = keep_shared && l->shared,
			};
	}
}

static void forget_sites(void)
{
	struct block *block;
	size_t i;

	for (block = blocks; block; block = block->next)
		block->runs = 0;
	for (i = 0; i < sites.size; i++) {
		struct site *s = (void *)sites.slots[i];

		if (s)
			*s = (struct site){ .pc = s->pc, .atomic = s->atomic };
	}
}

/* What was there before does not count. */
static void begin_count(void)
{
	unsigned int i;

	forget_sites();
	forget_lines(true);
	for (i = 0; i < MAX_CPUS; i++)
		cpus[i].lines = 0;
	begin(COUNT);
}

static bool all_have(uint64_t ios)
{
	unsigned int i, have = 0;

	for (i = 0; i < MAX_CPUS; i++)
		have += cpus[i].ios >= ios;
	return have >= window.cpus;
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);

/* All code is gone, and will be translated anew: with counters from now on. */
static void on_reset(qemu_plugin_id_t id)
{
	seeing = true;
	begin(FILL);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
}

/*
 * QEMU 7.2 reads memory that it has freed when code loses its counters again.
 * So they stay, once a guest has come to its first window.
 */
static void see(void)
{
	if (seeing) {
		forget_lines(false);
		begin(FILL);
		return;
	}
	begin(SEE);
	qemu_plugin_reset(plugin, on_reset);
}

static void on_io(unsigned int cpu, void *data)
{
	(void)data;
	if (cpu >= MAX_CPUS) {
		fprintf(stderr, "lines: more than %d CPUs\n", MAX_CPUS);
		exit(1);
	}
	if (state == IDLE)
		return;
	if (++cpus[cpu].ios % window.batch == 0)
		cpus[cpu].epoch++;
	window.done++;
	if (state == COUNT && all_have(window.ios)) {
		print_window();
		state = IDLE;
	} else if (state == FILL && all_have(window.fill)) {
		begin_count();
	} else if (state == WARM && all_have(window.warm)) {
		see();
	}
}

static void on_sync(unsigned int cpu, void *data)
{
	(void)cpu;
	(void)data;
	if (fscanf(plan, "%199s %u %" SCNu64 " %" SCNu64 " %" SCNu64
		   " %" SCNu64, window.name, &window.cpus, &window.warm,
		   &window.fill, &window.ios, &window.batch) != 6)
		return;
	if (!window.batch || window.cpus > MAX_CPUS) {
		fprintf(stderr, "lines: no such window: %s\n", window.name);
		exit(1);
	}
	begin(WARM);
}

/* --- QEMU ----------------------------------------------------------------- */

static void see_call(struct qemu_plugin_insn *insn, uint64_t pc,
		     qemu_exec_cb call)
{
	if (qemu_plugin_insn_vaddr(insn) == pc)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, call,
						       QEMU_PLUGIN_CB_NO_REGS,
						       NULL);
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t nr = qemu_plugin_tb_n_insns(tb), i;

	(void)id;
	for (i = 0; i < nr; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		see_call(insn, io_pc, on_io);
		see_call(insn, sync_pc, on_sync);
	}
	if (seeing)
		see_block(tb);
}

/* The version that is asked for must be one that this QEMU knows. */
EXPORT int qemu_plugin_version = 1;

__attribute__((constructor)) static void choose_version(void)
{
	if (dlsym(RTLD_DEFAULT, "qemu_plugin_scoreboard_new"))
		qemu_plugin_version = 2;
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
			       int argc, char **argv)
{
	int i;

	for (i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "out=", 4))
			out_path = strdup(argv[i] + 4);
		else if (!strncmp(argv[i], "plan=", 5))
			plan = fopen(argv[i] + 5, "r");
		else if (!strncmp(argv[i], "io=", 3))
			io_pc = strtoull(argv[i] + 3, NULL, 16);
		else if (!strncmp(argv[i], "sync=", 5))
			sync_pc = strtoull(argv[i] + 5, NULL, 16);
	}
	if (!out_path || !plan || !io_pc || !sync_pc ||
	    strcmp(info->target_name, "x86_64")) {
		fprintf(stderr, "lines: needs out=, plan=, io=, sync=, and an x86-64 guest\n");
		return -1;
	}
	plugin = id;
	api = info->version.cur;
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	return 0;
}
