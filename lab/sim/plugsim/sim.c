// SPDX-License-Identifier: GPL-2.0
/*
 * Tasks are taken in order of their next event, so that the device sees the
 * commands of all of them in order of time.  An event is a doorbell, a batch
 * of completions, or the wait for either.
 *
 * A load consists of I/Os, which is what is scored.  In the plug they become
 * requests, by the rules of blk-mq and of blk-plug-policy.c; these are what the
 * device and the controller see.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <math.h>

#include <linux/minmax.h>

#include "blk-plug-adaptive.h"
#include "sim.h"

/* Where an I/O is that no other one goes on from. */
#define NOWHERE		(1ULL << 63)

enum {
	/* BLK_MAX_REQUEST_COUNT, BLK_PLUG_FLUSH_SIZE */
	PLUG_MAX	= 32,
	PLUG_FLUSH_SIZE	= 128 * 1024,
	/* Requests that the kernel completes together. */
	BATCH		= 32,
	/* How far apart hardware queues begin, as in blk-plug-policy.c. */
	DELAYS		= 8,
	DELAY		= 5,
	/* The histogram of latencies: so many bins per factor of two. */
	BINS		= 64,
	MAX_BIN		= 48 * BINS,
};

/* A command in the device; the clock when its load came. */
struct io {
	u64 ready;
	u64 origin;
	u32 ios;
};

/* What a submission holds; all zero at its begin */
struct plug {
	u32 nr;				/* requests */
	u32 ios[PLUG_MAX];		/* I/Os of each */
	u64 end;			/* where the newest ends */
	/*
	 * requests that leave at a time: when the next one comes, which might
	 * have joined one of them
	 */
	u32 group;
};

enum state {
	NEXT,		/* is it time for a submission? */
	SEND,		/* a doorbell rings */
	REAP,		/* until as many as wanted have completed */
};

/* A submitter, on its own core */
struct task {
	u64 now;	/* of its next event */
	enum state state;	/* what that is */
	struct hctx *hctx;	/* the queue it submits to */
	struct io *due;	/* commands that it waits for, as a heap */
	u32 nr_due;	/* how many */
	u32 load;	/* number of its load */
	u64 rng;	/* of what its load draws */
	u32 inflight;	/* I/Os that it has submitted and not seen complete */
	u32 size;	/* I/Os of its next submission */
	u32 left;	/* I/Os of this submission that are not prepared yet */
	/* the next one is a request that waits for room in the plug */
	bool prepared;
	u64 stream[MAX_STREAMS];	/* where each of its streams goes on */
	u64 pos;	/* where its next I/O is */
	struct plug plug;	/* what its plug holds */
	u64 done;	/* I/Os that have completed since all is counted */
	u64 shift;	/* of its bursts */
	u64 origin;	/* when the load came that is being submitted */
	u64 arrival;	/* when the next one does */
	u32 want;	/* completions to wait for */
	bool asleep;	/* waits for an interrupt */
	u64 irq_end;	/* when the core that takes its interrupts is free */
	u32 unseen;	/* I/Os which that core completes at irq_end */
	u64 steal_at;	/* when the core will be taken away */
};

struct hctx {
	struct blk_plug_adaptive adaptive;
	struct blk_plug_adaptive_sample since;
	u64 sampled;
	u32 in_flight;
};

/* Requests that complete together. */
struct batch {
	u32 nr;
	u32 nr_ios;
	struct io ios[BATCH];
};

struct mark {
	u64 now;
	u64 done;
	u64 requests;
	u64 flushes;
};

/* Latencies. */
struct spread {
	u64 sum;
	u64 nr;
	u64 bins[MAX_BIN];
};

/* A phase: its beginning, the rest of its first part, two halves to measure. */
enum stage {
	UNTIL_50,
	UNTIL_200,
	WARM,
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
	struct ssd_model_media media;
	u64 device_seed;
	u64 commands;
	u64 done;
	u64 requests;
	u64 flushes;
	u64 cycle;
	enum stage stage;
	struct mark marks[NR_STAGES];
	u64 stage_done;
	u64 stage_end;
	bool counted;
	bool over;
	bool failed;
	struct mark begin;
	struct spread first[NR_FIRST];
	struct spread late;
	struct spread all;
};

static const struct load *load_of(const struct sim *sim,
				  const struct task *task)
{
	return &sim->phase->loads[task->load % sim->phase->nr_loads];
}

/* --- random numbers: splitmix64, as the device's --- */

static u64 rng_next(u64 *state)
{
	u64 random = ssd_model_draw(*state, 0, 0);

	*state += SSD_MODEL_STEP;
	return random;
}

/* From 0 to below n; n of up to 32 bits. */
static u64 rng_below(u64 *state, u64 n)
{
	return ((rng_next(state) >> 32) * n) >> 32;
}

static u64 exponential(u64 *rng, u64 mean)
{
	double part = ((rng_next(rng) >> 11) + 1.0) / (1ULL << 53);

	return -log(part) * mean;
}

/* --- heap of commands --- */

/* Up from the hole i, to where a command belongs. */
static void due_up(struct io *heap, u32 i, const struct io *io)
{
	while (i && heap[(i - 1) / 2].ready > io->ready) {
		heap[i] = heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap[i] = *io;
}

/* The hole goes down to a leaf, where the last one most likely belongs. */
static void due_pop(struct task *task, struct io *io)
{
	struct io *heap = task->due, last = heap[--task->nr_due];
	u32 nr = task->nr_due, i = 0, child;

	*io = heap[0];
	while ((child = 2 * i + 1) < nr) {
		child += child + 1 < nr &&
			 heap[child + 1].ready < heap[child].ready;
		heap[i] = heap[child];
		i = child;
	}
	due_up(heap, i, &last);
}

/* --- the device --- */

/* Its own time stands still while it pauses. */
static u64 own_time(const struct phase *phase, u64 now)
{
	u64 stall = phase->stall, every = phase->stall_every, rest;

	if (!stall)
		return now;
	rest = now % every;
	return now / every * (every - stall) +
	       (rest > stall ? rest - stall : 0);
}

static u64 real_time(const struct phase *phase, u64 own)
{
	u64 stall = phase->stall, awake = phase->stall_every - stall;

	if (!stall)
		return own;
	return own / awake * phase->stall_every + stall + own % awake;
}

/* Commands that the device has already seen stay as they are. */
static void device_setup(struct sim *sim, const struct phase *before)
{
	const struct phase *phase = sim->phase;

	if (before && before->stall == phase->stall &&
	    before->stall_every == phase->stall_every &&
	    !memcmp(&before->media, &phase->media, sizeof(phase->media)))
		return;
	ssd_model_media_exit(&sim->media);
	sim->failed |= !!ssd_model_media_init(&sim->media, &phase->media);
	sim->over |= sim->failed;
}

/* When it will have completed a command that it sees now. */
static u64 device_ready(struct sim *sim, u64 now, u32 ios)
{
	const struct phase *phase = sim->phase;
	struct ssd_model_access access = {
		.op = SSD_MODEL_READ,
		.bytes = ios * phase->size,
		.seed = sim->device_seed,
		.number = sim->commands++,
	};

	return real_time(phase, ssd_model_media_admit(&sim->media, &access,
						      own_time(phase, now)));
}

/* --- what is measured --- */

static u32 bin_of(u64 ns)
{
	int shift = ns < BINS ? 0 : 57 - __builtin_clzll(ns);

	return min(shift * BINS + (ns >> shift), MAX_BIN - 1);
}

static u64 bin_ns(u32 bin)
{
	u32 shift = bin < 2 * BINS ? 0 : bin / BINS - 1;

	return ((u64)(bin - shift * BINS) << shift) + ((1ULL << shift) >> 1);
}

static void spread_add(struct spread *spread, u64 latency, u32 ios)
{
	spread->sum += latency * ios;
	spread->nr += ios;
	spread->bins[bin_of(latency)] += ios;
}

static u64 percentile(const struct spread *spread, double part)
{
	u64 left = spread->nr * (1 - part);
	u32 bin = MAX_BIN - 1;

	while (bin && spread->bins[bin] <= left)
		left -= spread->bins[bin--];
	return bin_ns(bin);
}

static struct mark mark(const struct sim *sim, u64 now)
{
	return (struct mark){ now, sim->done, sim->requests, sim->flushes };
}

static double per_second(const struct mark *from, const struct mark *to)
{
	if (to->now <= from->now)
		return 0;
	return (to->done - from->done) * 1e9 / (to->now - from->now);
}

/* Of a time, and of the latencies that were seen in it. */
static struct outcome outcome(const struct mark *from, const struct mark *to,
			      const struct spread *spread)
{
	double nr = to->done - from->done ?: 1;

	return (struct outcome){
		.iops = per_second(from, to),
		.ios = to->done - from->done,
		.ns = to->now - from->now,
		.mean = spread->nr ? (double)spread->sum / spread->nr : 0,
		.p99 = percentile(spread, 0.99),
		.doorbells = (to->flushes - from->flushes) / nr,
		.requests = (to->requests - from->requests) / nr,
	};
}

static void phase_result(struct sim *sim, const struct mark *end)
{
	const struct mark *marks = sim->marks;
	struct phase_outcome *one =
		&sim->result->phases[sim->phase - sim->config->phases];

	for (u32 i = 0; i < NR_FIRST; i++)
		one->first[i] = outcome(&marks[UNTIL_50],
					&marks[UNTIL_50 + i + 1],
					&sim->first[i]);
	one->rest = outcome(&marks[FIRST_HALF], end, &sim->late);
	one->late = per_second(&marks[SECOND_HALF], end);
}

/* I/Os that all tasks have in flight. */
static u64 in_flight(const struct sim *sim)
{
	u64 nr = 0;

	for (u32 i = 0; i < sim->nr_tasks; i++)
		nr += load_of(sim, &sim->tasks[i])->depth;
	return nr;
}

/* Until when, or until how many I/Os, since the phase began. */
static void first_part_begin(struct sim *sim)
{
	static const u64 ms[] = { [UNTIL_50] = 50, [UNTIL_200] = 200 };
	const struct mark *begin = &sim->marks[UNTIL_50];
	u64 warm = sim->phase->warm;

	if (sim->stage < WARM)
		warm = min(warm, ms[sim->stage] * 1000000);
	sim->stage_done = begin->done + sim->phase->warm_ios;
	sim->stage_end = begin->now + warm;
}

static void stage_begin(struct sim *sim, enum stage stage, u64 now)
{
	const struct phase *phase = sim->phase;
	u64 nr = phase->ios / 2 + 1, cycle;

	sim->stage = stage;
	sim->marks[stage] = mark(sim, now);
	if (stage < FIRST_HALF) {
		first_part_begin(sim);
		return;
	}
	/*
	 * Batches may return in lockstep: only over whole cycles is the rate
	 * not a matter of where one begins.
	 */
	cycle = phase->loads[0].arrive ? 1 : in_flight(sim);
	sim->stage_done = sim->done + (nr + cycle - 1) / cycle * cycle;
	sim->stage_end = phase->time ? now + phase->time / 2 : ~0ULL;
}

static void phase_begin(struct sim *sim, const struct phase *phase, u64 now)
{
	const struct phase *before = sim->phase;

	sim->phase = phase;
	device_setup(sim, before);
	for (u32 i = 0; i < sim->nr_tasks; i++)
		sim->tasks[i].arrival = fmax(now, sim->tasks[i].now);
	memset(sim->first, 0, sizeof(sim->first));
	stage_begin(sim, UNTIL_50, now);
}

static void phase_end(struct sim *sim, u64 now)
{
	const struct config *config = sim->config;
	struct mark end = mark(sim, now);

	phase_result(sim, &end);
	if (sim->phase + 1 < config->phases + config->nr_phases) {
		phase_begin(sim, sim->phase + 1, now);
	} else if (++sim->cycle < config->cycles) {
		phase_begin(sim, config->phases, now);
	} else {
		sim->result->all = outcome(&sim->begin, &end, &sim->all);
		sim->over = true;
	}
}

static void stage_end(struct sim *sim, u64 now)
{
	if (sim->stage == SECOND_HALF) {
		phase_end(sim, now);
		return;
	}
	if (sim->stage == WARM)
		sim->late = (struct spread){};
	if (sim->stage == WARM && !sim->counted) {
		sim->counted = true;
		sim->begin = mark(sim, now);
	}
	stage_begin(sim, sim->stage + 1, now);
}

/* Of the first part's stages some may last for no time. */
static void stage_check(struct sim *sim, u64 now)
{
	bool first_part;

	do {
		first_part = sim->stage < WARM;
		if (sim->done < sim->stage_done && now < sim->stage_end)
			return;
		stage_end(sim, now);
	} while (first_part);
}

static void measure(struct sim *sim, struct task *task, u64 latency, u32 ios)
{
	for (u32 i = sim->stage; i < NR_FIRST; i++)
		spread_add(&sim->first[i], latency, ios);
	if (sim->stage >= FIRST_HALF)
		spread_add(&sim->late, latency, ios);
	if (!sim->counted)
		return;
	spread_add(&sim->all, latency, ios);
	task->done += ios;
}

/* --- the controller --- */

static void trace_sample(const struct sim *sim, const struct hctx *hctx,
			 u64 now)
{
	const struct blk_plug_adaptive *a = &hctx->adaptive;
	const struct blk_plug_adaptive_sample *s = &hctx->since;

	printf("sample\t%llu\t%ld\t%u\t%.0f\t%u\t",
	       (unsigned long long)now, (long)(hctx - sim->hctxs), a->group,
	       s->nr * 1e9 / s->ns, a->epoch);
	printf("%llu\t%u\t%u\t%u\t%u\n", (unsigned long long)s->ns, s->nr,
	       s->flushes, s->in_flight, a->trial);
}

static void hctx_sample(struct sim *sim, struct hctx *hctx, u64 now)
{
	u8 group = hctx->adaptive.group;

	if (hctx->since.nr < hctx->adaptive.epoch || now <= hctx->sampled)
		return;
	hctx->since.ns = now - hctx->sampled;
	hctx->since.in_flight = hctx->in_flight;
	blk_plug_adaptive_decide(&hctx->adaptive, &hctx->since);
	sim->result->changes += hctx->adaptive.group != group;
	if (sim->trace)
		trace_sample(sim, hctx, now);
	hctx->since = (struct blk_plug_adaptive_sample){};
	hctx->sampled = now;
}

/* The last one completed just now; so did the others, unless single. */
static void complete(struct sim *sim, struct task *task,
		     const struct batch *batch, u64 now)
{
	bool single = sim->phase->single;
	u64 apart = single ? sim->phase->reap : 0;

	for (u32 i = 0; i < batch->nr; i++) {
		const struct io *io = &batch->ios[i];
		u64 clock = now - apart * (batch->nr - 1 - i);

		measure(sim, task, clock - io->origin, io->ios);
	}
	task->hctx->in_flight -= batch->nr;
	sim->done += batch->nr_ios;
	stage_check(sim, now);
}

/* --- the plug, by the rules of blk_add_rq_to_plug(), blk-plug-policy.c --- */

/* Is what is held sent out first?  Only "always" looks at its size. */
static bool plug_full(const struct sim *sim, const struct plug *plug, u32 size)
{
	if (!plug->nr || plug->nr >= PLUG_MAX || plug->nr >= plug->group)
		return plug->nr;
	return sim->config->group == PLUG_MAX &&
		plug->ios[plug->nr - 1] * size >= PLUG_FLUSH_SIZE;
}

static bool plug_join(struct plug *plug, const struct phase *phase, u64 pos)
{
	u32 *newest = plug->nr ? &plug->ios[plug->nr - 1] : NULL;

	if (!newest || pos == NOWHERE || pos != plug->end ||
	    (*newest + 1) * phase->size > phase->max_size)
		return false;
	++*newest;
	plug->end++;
	return true;
}

static void plug_add(struct plug *plug, u32 group, u64 pos)
{
	if (!plug->nr)
		plug->group = group;
	plug->ios[plug->nr++] = 1;
	plug->end = pos == NOWHERE ? pos : pos + 1;
}

/* --- submission --- */

static u64 cpu(struct sim *sim, u64 ns)
{
	u64 jitter = sim->phase->jitter;

	if (!jitter)
		return ns;
	return ns * (100 - jitter + rng_below(&sim->rng, 2 * jitter + 1)) / 100;
}

/* Where the task's next I/O is, in I/Os. */
static void draw_pos(const struct sim *sim, struct task *task)
{
	const struct load *load = load_of(sim, task);

	if (load->seq && rng_below(&task->rng, 100) < load->seq)
		task->pos = task->stream[rng_below(&task->rng,
						   load->streams)]++;
	else
		task->pos = NOWHERE;
}

/* Until the plug is to be sent out, or all I/Os are in it. */
static void prepare(struct sim *sim, struct task *task)
{
	const struct phase *phase = sim->phase;
	u32 group = sim->config->group ?: task->hctx->adaptive.group;
	struct plug *plug = &task->plug;
	u64 ns = 0;

	for (; task->left; task->left--) {
		bool joins = plug_join(plug, phase, task->pos);

		if (!task->prepared)
			ns += joins ? phase->join : phase->submit;
		task->prepared = !joins && plug_full(sim, plug, phase->size);
		if (task->prepared)
			break;
		if (!joins)
			plug_add(plug, group, task->pos);
		draw_pos(sim, task);
	}
	task->now += cpu(sim, ns) + phase->doorbell;
	task->state = SEND;
}

static void submit(struct sim *sim, struct task *task, u32 nr, u64 origin)
{
	const struct load *load = load_of(sim, task);

	task->left = nr;
	task->size = load->ragged ? 1 + rng_below(&task->rng, load->batch) :
				    load->batch;
	task->origin = origin;
	task->plug = (struct plug){};
	prepare(sim, task);
}

static void count_flush(struct sim *sim, struct task *task)
{
	struct blk_plug_adaptive_sample *since = &task->hctx->since;

	sim->flushes++;
	sim->requests += task->plug.nr;
	since->flushes++;
	since->nr += task->plug.nr;
	task->hctx->in_flight += task->plug.nr;
}

static void await(struct sim *sim, struct task *task)
{
	const struct load *load = load_of(sim, task);

	task->state = REAP;
	task->want = min(load->complete, task->inflight);
	if (load->arrive || task->inflight + task->size <= load->depth)
		task->want = 0;
}

static void send(struct sim *sim, struct task *task)
{
	struct plug *plug = &task->plug;
	struct io io = { .origin = task->origin };

	for (u32 i = 0; i < plug->nr; i++) {
		io.ios = plug->ios[i];
		io.ready = device_ready(sim, task->now, io.ios);
		due_up(task->due, task->nr_due++, &io);
		task->inflight += io.ios;
	}
	count_flush(sim, task);
	hctx_sample(sim, task->hctx, task->now);
	plug->nr = 0;
	if (task->left)
		prepare(sim, task);
	else
		await(sim, task);
}

/* --- completion --- */

static void seen(struct task *task, u32 nr)
{
	task->inflight -= nr;
	task->want -= min(nr, task->want);
}

/* When something may have completed; with nothing in flight, never. */
static u64 next_completion(const struct task *task)
{
	u64 ready = task->nr_due ? task->due[0].ready : ~0ULL;

	return task->unseen ? task->irq_end : ready;
}

/* What is ready by then, up to a batch: what that takes the CPU. */
static u64 take_ready(const struct sim *sim, struct task *task, u64 at,
		      struct batch *batch)
{
	u64 took = 0;

	batch->nr = 0;
	batch->nr_ios = 0;
	while (batch->nr < BATCH && task->nr_due && task->due[0].ready <= at) {
		struct io *io = &batch->ios[batch->nr++];

		due_pop(task, io);
		batch->nr_ios += io->ios;
		took += sim->phase->reap +
			(io->ios - 1) * sim->phase->reap_join;
	}
	return took;
}

static void poll(struct sim *sim, struct task *task)
{
	struct batch batch;

	task->now += take_ready(sim, task, task->now, &batch);
	seen(task, batch.nr_ios);
	complete(sim, task, &batch, task->now);
}

/* Whatever is ready when the interrupt is taken shares it. */
static void interrupt(struct sim *sim, struct task *task, u64 at)
{
	struct batch batch;
	u64 end = at + sim->phase->irq + take_ready(sim, task, at, &batch);

	task->irq_end = end;
	if (sim->phase->irq_core == IRQ_OWN) {
		task->now += end - at;
		seen(task, batch.nr_ios);
	} else {
		task->unseen = batch.nr_ios;
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
		at = max(task->due[0].ready, task->irq_end);
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
		task->now = max(task->now, at);
	} else {
		task->now += task->asleep ? sim->phase->wake : 0;
		task->asleep = false;
		task->state = NEXT;
	}
}

/* --- the load --- */

static void steal(struct sim *sim, struct task *task)
{
	const struct phase *phase = sim->phase;

	if (!phase->steal || task->now < task->steal_at)
		return;
	if (task->steal_at)
		task->now += phase->steal;
	task->steal_at = task->now + exponential(&sim->rng, phase->steal_every);
}

/* From when a task is not in a pause. */
static u64 awake(const struct task *task, const struct load *load, u64 when)
{
	u64 cycle = load->burst + load->pause;
	u64 part = (when + task->shift) % cycle;

	return load->pause && part >= load->burst ? when + cycle - part : when;
}

/* Nothing to submit until then. */
static void idle(struct sim *sim, struct task *task, u64 until)
{
	u64 at = min(next_completion(task), until);

	if (at > task->now) {
		task->asleep = sim->phase->irq_core != POLLED;
		task->now = at;
	}
	task->state = REAP;
}

/* Open loop: the load comes when it comes. */
static void next_arrival(struct sim *sim, struct task *task, u32 size)
{
	const struct load *load = load_of(sim, task);
	u64 arrival = awake(task, load, task->arrival);

	if (task->inflight + size > load->depth) {
		idle(sim, task, ~0ULL);
	} else if (arrival > task->now) {
		idle(sim, task, arrival);
	} else {
		task->arrival = arrival + (load->poisson ?
			exponential(&sim->arrivals, load->arrive) :
			load->arrive);
		submit(sim, task, size, arrival);
	}
}

static void next(struct sim *sim, struct task *task)
{
	const struct load *load = load_of(sim, task);
	/* With a phase, the depth may have become less. */
	u32 size = min(task->size, load->depth);
	u64 at;

	steal(sim, task);
	if (load->arrive) {
		next_arrival(sim, task, size);
		return;
	}
	at = awake(task, load, task->now);
	if (at > task->now) {
		idle(sim, task, at);
		return;
	}
	if (task->inflight >= load->depth) {
		await(sim, task);
		return;
	}
	submit(sim, task, min(size, load->depth - task->inflight), task->now);
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
		for (u32 k = 0; k < config->phases[i].nr_loads; k++)
			depth = max(depth, config->phases[i].loads[k].depth);
	return depth;
}

/* The tasks begin one by one, so that they do not all do the same at once. */
static void init_tasks(struct sim *sim, u64 depth)
{
	u64 begin = 0;

	for (u32 s = 0; s < sim->nr_tasks * MAX_STREAMS; s++)
		sim->tasks[s / MAX_STREAMS].stream[s % MAX_STREAMS] =
			(s % MAX_STREAMS) * (NOWHERE / MAX_STREAMS);
	for (u32 i = 0; i < sim->nr_tasks; i++) {
		struct task *task = &sim->tasks[i];

		task->hctx = &sim->hctxs[i % sim->config->hctxs];
		task->due = &sim->ios[i * depth];
		task->load = i % sim->config->hctxs;
		task->rng = rng_next(&sim->rng);
		task->size = load_of(sim, task)->batch;
		task->shift = rng_next(&sim->rng) >> 32;
		draw_pos(sim, task);
		task->now = begin;
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
	sim->device_seed = rng_next(&sim->rng);
	sim->arrivals = rng_next(&sim->rng);
	sim->phase = config->phases;
	device_setup(sim, NULL);
	init_tasks(sim, depth);
	phase_begin(sim, config->phases, 0);
	for (u32 i = 0; i < config->hctxs; i++)
		blk_plug_adaptive_init(&sim->hctxs[i].adaptive,
				       i % DELAYS * DELAY);
	return true;
}

static void sim_exit(struct sim *sim)
{
	free(sim->tasks);
	free(sim->queue);
	free(sim->hctxs);
	free(sim->ios);
	ssd_model_media_exit(&sim->media);
	free(sim);
}

static void finish(const struct sim *sim)
{
	u64 hctxs = sim->config->hctxs, sum = 0;

	for (u64 i = 0; i < hctxs; i++)
		sum += sim->config->group ?: sim->hctxs[i].adaptive.group;
	sim->result->group = (double)sum / hctxs;
	sim->result->nr_tasks = sim->nr_tasks;
	for (u32 i = 0; i < sim->nr_tasks; i++)
		sim->result->ios[i] = sim->tasks[i].done;
}

/* With trace, a line per sample on stdout. False if memory ran out. */
bool sim_run(const struct config *config, bool trace, struct result *result)
{
	struct sim *sim = calloc(1, sizeof(*sim));
	bool good = sim;

	*result = (struct result){};
	if (!sim)
		return false;
	sim->result = result;
	sim->trace = trace;
	good = sim_init(sim, config);
	while (good && !sim->over) {
		step(sim, sim->queue[0]);
		queue_down(sim->queue, sim->nr_tasks);
	}
	good = good && !sim->failed;
	if (good)
		finish(sim);
	sim_exit(sim);
	return good;
}
