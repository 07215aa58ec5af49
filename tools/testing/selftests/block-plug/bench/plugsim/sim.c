// SPDX-License-Identifier: GPL-2.0
/*
 * Tasks are taken in order of their next event, so that the device sees the
 * commands of all of them in order of time.  An event is a doorbell, a batch
 * of completions, or the wait for either.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <math.h>

#include "blk-plug-adaptive.h"
#include "rng.h"
#include "sim.h"

enum {
	/* Requests that the kernel completes, or takes a start time for. */
	BATCH		= 32,
	/* Without a batch, it looks at the clock for one in so many. */
	SINGLE_CLOCK	= 16,
	/* While the controller is parked, of one batch in so many. */
	PARKED_CLOCK	= 8,
	/* The histogram of latencies: so many bins per factor of two. */
	BINS		= 64,
	MAX_BIN		= 48 * BINS,
};

/* A command in the device; the clock when its plug and its load came. */
struct io {
	u64 ready;
	u64 start;
	u64 origin;
};

enum state {
	NEXT,		/* is it time for a submission? */
	SEND,		/* a doorbell rings */
	REAP,		/* until as many as wanted have completed */
};

/**
 * struct task - a submitter, on its own core
 * @now:	of its next event
 * @state:	what that is
 * @hctx:	the queue it submits to
 * @due:	commands that it waits for, as a heap
 * @nr_due:	how many
 * @inflight:	what it has submitted and not seen complete
 * @left:	requests of this submission that are not sent yet
 * @held:	those in the plug
 * @fresh:	has the plug been empty since it was opened?
 * @start:	clock that the plug caches
 * @sent:	requests since that was read
 * @origin:	when the load came that is being submitted
 * @arrival:	when the next one does
 * @want:	completions to wait for
 * @asleep:	waits for an interrupt
 * @irq_end:	when the core that takes its interrupts is free
 * @unseen:	requests which that core completes at @irq_end
 * @steal_at:	when the core will be taken away
 */
struct task {
	u64 now;
	enum state state;
	struct hctx *hctx;
	struct io *due;
	u32 nr_due;
	u32 inflight;
	u32 left;
	u32 held;
	bool fresh;
	u64 start;
	u32 sent;
	u64 origin;
	u64 arrival;
	u32 want;
	bool asleep;
	u64 irq_end;
	u32 unseen;
	u64 steal_at;
};

struct hctx {
	struct blk_plug_adaptive adaptive;
	struct blk_plug_adaptive_sample since;
	u64 sampled;
	u32 singles;
	u32 skips;
};

/* Requests that complete together. */
struct batch {
	u32 nr;
	struct io ios[BATCH];
};

struct mark {
	u64 now;
	u64 done;
	u64 flushes;
};

/* A phase: its first part, two halves to measure. */
enum stage {
	EARLY,
	FIRST_HALF,
	SECOND_HALF,
	NR_STAGES,
};

struct sim {
	const struct config *config;
	const struct phase *phase;
	struct result *result;
	bool trace;
	u64 rng;
	u64 arrivals;
	u32 nr_tasks;
	struct task *tasks;
	struct task **queue;
	struct hctx *hctxs;
	struct io *ios;
	struct device device;
	u64 done;
	u64 flushes;
	enum stage stage;
	struct mark marks[NR_STAGES];
	u64 stage_done;
	u64 stage_end;
	bool over;
	u64 latency;
	u64 bins[MAX_BIN];
};

/* --- heap of commands --- */

static void due_push(struct task *task, const struct io *io)
{
	struct io *heap = task->due;
	u32 i = task->nr_due++;

	while (i && heap[(i - 1) / 2].ready > io->ready) {
		heap[i] = heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap[i] = *io;
}

/* The hole goes down to a leaf, where the last one most likely belongs. */
static void due_pop(struct task *task, struct io *io)
{
	struct io *heap = task->due, last;
	u32 nr = --task->nr_due, i = 0, child;

	*io = heap[0];
	last = heap[nr];
	while ((child = 2 * i + 1) < nr) {
		child += child + 1 < nr &&
			 heap[child + 1].ready < heap[child].ready;
		heap[i] = heap[child];
		i = child;
	}
	while (i && heap[(i - 1) / 2].ready > last.ready) {
		heap[i] = heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap[i] = last;
}

/* --- what is measured --- */

static u32 bin_of(u64 ns)
{
	int shift = ns < BINS ? 0 : 57 - __builtin_clzll(ns);
	u64 bin = shift * BINS + (ns >> shift);

	return bin < MAX_BIN ? bin : MAX_BIN - 1;
}

static u64 bin_ns(u32 bin)
{
	u32 shift = bin < 2 * BINS ? 0 : bin / BINS - 1;

	return ((u64)(bin - shift * BINS) << shift) + ((1ULL << shift) >> 1);
}

static u64 percentile(const struct sim *sim, u64 nr, double part)
{
	u64 left = nr * (1 - part);
	u32 bin = MAX_BIN - 1;

	while (bin && sim->bins[bin] <= left)
		left -= sim->bins[bin--];
	return bin_ns(bin);
}

static double per_second(const struct mark *from, const struct mark *to)
{
	if (to->now <= from->now)
		return 0;
	return (to->done - from->done) * 1e9 / (to->now - from->now);
}

static void phase_result(struct sim *sim, const struct mark *end)
{
	const struct mark *marks = sim->marks;
	u64 nr = end->done - marks[FIRST_HALF].done;

	sim->result->phases[sim->phase - sim->config->phases] =
		(struct outcome){
		.early = per_second(&marks[EARLY], &marks[FIRST_HALF]),
		.early_ios = marks[FIRST_HALF].done - marks[EARLY].done,
		.iops = per_second(&marks[FIRST_HALF], end),
		.late = per_second(&marks[SECOND_HALF], end),
		.ns = end->now - marks[FIRST_HALF].now,
		.mean = (double)sim->latency / nr,
		.p99 = percentile(sim, nr, 0.99),
		.doorbells = (double)(end->flushes -
				      marks[FIRST_HALF].flushes) / nr,
	};
}

static void stage_begin(struct sim *sim, enum stage stage, u64 now)
{
	const struct phase *phase = sim->phase;
	u64 nr = phase->ios / 2 + 1, cycle;

	sim->stage = stage;
	sim->marks[stage] = (struct mark){ now, sim->done, sim->flushes };
	if (stage == EARLY) {
		sim->stage_done = sim->done + phase->warm_ios;
		sim->stage_end = now + phase->warm;
		return;
	}
	/*
	 * Batches may return in lockstep: only over whole cycles is the rate
	 * not a matter of where one begins.
	 */
	cycle = phase->arrive ? 1 : phase->depth * sim->nr_tasks;
	sim->stage_done = sim->done + (nr + cycle - 1) / cycle * cycle;
	sim->stage_end = phase->time ? now + phase->time / 2 : ~0ULL;
}

static void phase_begin(struct sim *sim, const struct phase *phase, u64 now)
{
	sim->phase = phase;
	device_setup(&sim->device, &phase->device);
	for (u32 i = 0; i < sim->nr_tasks; i++)
		sim->tasks[i].arrival = now;
	stage_begin(sim, EARLY, now);
}

static void phase_end(struct sim *sim, u64 now)
{
	struct mark end = { now, sim->done, sim->flushes };

	phase_result(sim, &end);
	if (sim->phase + 1 == sim->config->phases + sim->config->nr_phases)
		sim->over = true;
	else
		phase_begin(sim, sim->phase + 1, now);
}

static void stage_end(struct sim *sim, u64 now)
{
	if (sim->stage == SECOND_HALF) {
		phase_end(sim, now);
		return;
	}
	if (sim->stage == EARLY) {
		sim->latency = 0;
		memset(sim->bins, 0, sizeof(sim->bins));
	}
	stage_begin(sim, sim->stage + 1, now);
}

static void measure(struct sim *sim, u64 latency)
{
	sim->latency += latency;
	sim->bins[bin_of(latency)]++;
}

/* --- the controller --- */

static void trace_sample(const struct sim *sim, const struct hctx *hctx,
			 u64 now)
{
	const struct blk_plug_adaptive *a = &hctx->adaptive;
	const struct blk_plug_adaptive_sample *s = &hctx->since;

	printf("sample\t%llu\t%ld\t%u\t%.0f\t%.0f\t%d\t%d\t%u\t",
	       (unsigned long long)now, (long)(hctx - sim->hctxs), a->group,
	       s->nr * 1e9 / s->ns,
	       s->waits ? (double)s->wait_ns / s->waits : 0,
	       a->first, a->merge, a->epoch);
	printf("%llu\t%llu\t%u\t%u\t%u\t%u\n", (unsigned long long)s->ns,
	       (unsigned long long)s->wait_ns, s->nr, s->waits, s->flushes,
	       s->merged);
}

static void hctx_sample(struct sim *sim, struct hctx *hctx, u64 now)
{
	u8 group = hctx->adaptive.group;

	if (hctx->since.nr < hctx->adaptive.epoch || now <= hctx->sampled)
		return;
	hctx->since.ns = now - hctx->sampled;
	blk_plug_adaptive_decide(&hctx->adaptive, &hctx->since);
	sim->result->changes += hctx->adaptive.group != group;
	if (sim->trace)
		trace_sample(sim, hctx, now);
	hctx->since = (struct blk_plug_adaptive_sample){};
	hctx->sampled = now;
}

static void count_wait(struct sim *sim, struct hctx *hctx, u64 ns)
{
	if (sim->phase->single && hctx->singles++ % SINGLE_CLOCK)
		return;
	if (hctx->skips)
		return;
	hctx->since.wait_ns += ns;
	hctx->since.waits++;
}

/* The last one completed just now; so did the others, unless single. */
static void complete(struct sim *sim, struct task *task,
		     const struct batch *batch, u64 now)
{
	struct hctx *hctx = task->hctx;
	u64 apart = sim->phase->single ? sim->phase->reap : 0;

	hctx->skips = (hctx->skips + 1) % PARKED_CLOCK;
	if (hctx->adaptive.state != BLK_PLUG_ADAPTIVE_PARKED)
		hctx->skips = 0;
	for (u32 i = 0; i < batch->nr; i++) {
		u64 clock = now - apart * (batch->nr - 1 - i);

		count_wait(sim, hctx, clock - batch->ios[i].start);
		measure(sim, clock - batch->ios[i].origin);
	}
	sim->done += batch->nr;
	if (sim->done >= sim->stage_done || now >= sim->stage_end)
		stage_end(sim, now);
}

/* --- submission --- */

static u64 cpu(struct sim *sim, u64 ns)
{
	u64 jitter = sim->phase->jitter;

	if (!jitter)
		return ns;
	return ns * (100 - jitter + rng_below(&sim->rng, 2 * jitter + 1)) / 100;
}

/* What the plug will send out at a time. */
static u32 plug_limit(const struct sim *sim, const struct task *task)
{
	const struct blk_plug_adaptive *a = &task->hctx->adaptive;

	if (sim->config->group)
		return sim->config->group;
	if (task->fresh && a->first)
		return 1;
	if (task->fresh && a->pair)
		return 2;
	return a->group;
}

static void prepare(struct sim *sim, struct task *task)
{
	const struct phase *phase = sim->phase;
	u32 limit = plug_limit(sim, task);

	if (task->sent >= BATCH) {
		task->start = task->now;
		task->sent = 0;
	}
	task->fresh = false;
	task->held = limit < task->left ? limit : task->left;
	task->now += cpu(sim, task->held * phase->submit) + phase->doorbell +
		     phase->flush;
	task->state = SEND;
}

static void submit(struct sim *sim, struct task *task, u32 nr, u64 origin)
{
	task->left = nr;
	task->origin = origin;
	task->start = task->now;
	task->sent = 0;
	task->fresh = true;
	prepare(sim, task);
}

static void count_flush(struct sim *sim, struct hctx *hctx, u32 nr)
{
	u64 merge = sim->phase->merge;

	sim->flushes++;
	hctx->since.flushes++;
	hctx->since.nr += nr;
	if (merge && rng_below(&sim->rng, 100) < merge)
		hctx->since.merged++;
}

static void await(struct sim *sim, struct task *task)
{
	const struct phase *phase = sim->phase;
	u32 all = task->inflight;

	task->state = REAP;
	task->want = phase->complete < all ? phase->complete : all;
	if (phase->arrive || all + phase->batch <= phase->depth)
		task->want = 0;
}

static void send(struct sim *sim, struct task *task)
{
	struct io io = { .start = task->start, .origin = task->origin };

	for (u32 i = 0; i < task->held; i++) {
		io.ready = device_ready(&sim->device, task->now);
		due_push(task, &io);
	}
	count_flush(sim, task->hctx, task->held);
	if (!sim->config->group)
		hctx_sample(sim, task->hctx, task->now);
	task->inflight += task->held;
	task->left -= task->held;
	task->sent += task->held;
	if (task->left)
		prepare(sim, task);
	else
		await(sim, task);
}

/* --- completion --- */

static void seen(struct task *task, u32 nr)
{
	task->inflight -= nr;
	task->want -= nr < task->want ? nr : task->want;
}

/* When something may have completed; with nothing in flight, never. */
static u64 next_completion(const struct task *task)
{
	u64 ready = task->nr_due ? task->due[0].ready : ~0ULL;

	return task->unseen ? task->irq_end : ready;
}

static void poll(struct sim *sim, struct task *task)
{
	struct batch batch = {};

	while (batch.nr < BATCH && task->nr_due &&
	       task->due[0].ready <= task->now) {
		due_pop(task, &batch.ios[batch.nr++]);
		task->now += sim->phase->reap;
	}
	seen(task, batch.nr);
	complete(sim, task, &batch, task->now);
}

/* Whatever is ready when the interrupt is taken shares it. */
static void interrupt(struct sim *sim, struct task *task, u64 at)
{
	struct batch batch = {};
	u64 end = at + sim->phase->irq;

	while (batch.nr < BATCH && task->nr_due && task->due[0].ready <= at) {
		due_pop(task, &batch.ios[batch.nr++]);
		end += sim->phase->reap;
	}
	task->irq_end = end;
	if (sim->phase->irq_core == IRQ_OWN) {
		task->now += end - at;
		seen(task, batch.nr);
	} else {
		task->unseen = batch.nr;
	}
	complete(sim, task, &batch, end);
}

/* True: it took the submitter's time. */
static bool interrupts(struct sim *sim, struct task *task)
{
	u64 before = task->now, at;

	for (;;) {
		if (task->unseen && task->irq_end <= task->now) {
			seen(task, task->unseen);
			task->unseen = 0;
		}
		if (task->unseen || !task->nr_due)
			break;
		at = task->due[0].ready;
		if (at < task->irq_end)
			at = task->irq_end;
		if (at > task->now)
			break;
		interrupt(sim, task, at);
	}
	return task->now != before;
}

static void reap(struct sim *sim, struct task *task)
{
	u64 at = next_completion(task);

	if (sim->phase->irq_core == POLLED && at <= task->now) {
		poll(sim, task);
	} else if (task->want) {
		task->asleep = sim->phase->irq_core != POLLED;
		if (at > task->now)
			task->now = at;
	} else {
		task->now += task->asleep ? sim->phase->wake : 0;
		task->asleep = false;
		task->state = NEXT;
	}
}

/* --- the load --- */

static u64 exponential(u64 *rng, u64 mean)
{
	return -log(rng_part(rng)) * mean;
}

static void steal(struct sim *sim, struct task *task)
{
	const struct phase *phase = sim->phase;

	if (!phase->steal || task->now < task->steal_at)
		return;
	if (task->steal_at)
		task->now += phase->steal;
	task->steal_at = task->now + exponential(&sim->rng, phase->steal_every);
}

/* Open loop: the load comes when it comes. */
static void next_arrival(struct sim *sim, struct task *task)
{
	const struct phase *phase = sim->phase;
	bool room = task->inflight + phase->batch <= phase->depth;
	u64 arrival = task->arrival, at = next_completion(task);

	if (room && arrival <= task->now) {
		task->arrival += phase->poisson ?
				 exponential(&sim->arrivals, phase->arrive) :
				 phase->arrive;
		submit(sim, task, phase->batch, arrival);
		return;
	}
	if (room && arrival < at)
		at = arrival;
	if (at > task->now) {
		task->asleep = phase->irq_core != POLLED;
		task->now = at;
	}
	task->state = REAP;
}

static void next(struct sim *sim, struct task *task)
{
	const struct phase *phase = sim->phase;
	u64 room;

	steal(sim, task);
	if (phase->arrive) {
		next_arrival(sim, task);
		return;
	}
	/* With a phase, the depth may have become less. */
	if (task->inflight >= phase->depth) {
		await(sim, task);
		return;
	}
	room = phase->depth - task->inflight;
	submit(sim, task, room < phase->batch ? room : phase->batch, task->now);
}

static void step(struct sim *sim, struct task *task)
{
	if (sim->phase->irq_core != POLLED && interrupts(sim, task))
		return;
	switch (task->state) {
	case NEXT:
		next(sim, task);
		break;
	case SEND:
		send(sim, task);
		break;
	case REAP:
		reap(sim, task);
		break;
	}
}

/* --- a run --- */

/* The first task has moved: where does it belong? */
static void queue_down(struct task **queue, u32 nr)
{
	struct task *task = queue[0];
	u32 i = 0, child;

	while ((child = 2 * i + 1) < nr) {
		if (child + 1 < nr && queue[child + 1]->now < queue[child]->now)
			child++;
		if (queue[child]->now >= task->now)
			break;
		queue[i] = queue[child];
		i = child;
	}
	queue[i] = task;
}

static u64 max_depth(const struct config *config)
{
	u64 depth = 0;

	for (u32 i = 0; i < config->nr_phases; i++)
		if (config->phases[i].depth > depth)
			depth = config->phases[i].depth;
	return depth;
}

/* The tasks begin one by one, so that they do not all do the same at once. */
static void init_tasks(struct sim *sim, u64 depth)
{
	u64 begin = 0;

	for (u32 i = 0; i < sim->nr_tasks; i++) {
		struct task *task = &sim->tasks[i];

		task->hctx = &sim->hctxs[i % sim->config->hctxs];
		task->due = &sim->ios[i * depth];
		task->now = begin;
		task->arrival = begin;
		sim->queue[i] = task;
		begin += 1 + rng_below(&sim->rng, 10000);
	}
}

static bool sim_init(struct sim *sim, const struct config *config)
{
	u64 depth = max_depth(config);
	u32 nr = config->hctxs * config->tasks;

	sim->config = config;
	sim->nr_tasks = nr;
	sim->tasks = calloc(nr, sizeof(*sim->tasks));
	sim->queue = calloc(nr, sizeof(*sim->queue));
	sim->hctxs = calloc(config->hctxs, sizeof(*sim->hctxs));
	sim->ios = malloc(nr * depth * sizeof(*sim->ios));
	if (!sim->tasks || !sim->queue || !sim->hctxs || !sim->ios)
		return false;
	sim->rng = config->seed;
	/* Whatever the group, the same commands and arrivals are drawn. */
	device_init(&sim->device, rng_next(&sim->rng));
	sim->arrivals = rng_next(&sim->rng);
	phase_begin(sim, config->phases, 0);
	init_tasks(sim, depth);
	for (u32 i = 0; i < config->hctxs; i++)
		blk_plug_adaptive_init(&sim->hctxs[i].adaptive);
	return true;
}

static void sim_exit(struct sim *sim)
{
	free(sim->tasks);
	free(sim->queue);
	free(sim->hctxs);
	free(sim->ios);
	free(sim);
}

static double mean_group(const struct sim *sim)
{
	u64 hctxs = sim->config->hctxs;
	double sum = 0;

	for (u64 i = 0; i < hctxs; i++)
		sum += sim->config->group ?: sim->hctxs[i].adaptive.group;
	return sum / hctxs;
}

/**
 * sim_run - simulate
 * @config: what
 * @trace: a line per sample on stdout
 * @result: what came of it
 *
 * Return: false if memory ran out.
 */
bool sim_run(const struct config *config, bool trace, struct result *result)
{
	struct sim *sim = calloc(1, sizeof(*sim));
	bool good = sim;

	*result = (struct result){};
	if (!sim)
		return false;
	sim->result = result;
	sim->trace = trace && !config->group;
	good = sim_init(sim, config);
	while (good && !sim->over) {
		step(sim, sim->queue[0]);
		queue_down(sim->queue, sim->nr_tasks);
	}
	if (good)
		result->group = mean_group(sim);
	sim_exit(sim);
	return good;
}
