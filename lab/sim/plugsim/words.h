/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The words of a line, besides those of the media: of the run, of a phase, of a
 * load.  Who includes this says before what becomes of them:
 *
 *	RUN(name, if not given, least, most, help), and PHASE() and LOAD()
 */
RUN(seed, 1, 0, ~0ULL, "of the random numbers");
RUN(group, 0, 0, 32, "requests a plug sends out; 32: always, 0: adaptive");
RUN(hctxs, 1, 1, MAX_HCTXS, "hardware queues");
RUN(tasks, 1, 1, MAX_TASKS, "submitters of each, on a core each");
RUN(cycles, 1, 1, 10000, "times that all phases are run through");

PHASE(stall, 0, 0, SECOND, "ns that the device pauses ...");
PHASE(stall_every, 0, 0, 10 * SECOND, "... out of so many");
PHASE(submit, 250, 0, SECOND, "ns of CPU to prepare a request");
PHASE(reap, 150, 0, SECOND, "ns of CPU to complete one");
PHASE(join, 220, 0, SECOND, "ns to prepare an I/O that joins one");
PHASE(reap_join, 130, 0, SECOND, "ns to complete an I/O that did");
PHASE(doorbell, 50, 0, SECOND, "ns of CPU of a doorbell");
PHASE(irq_core, 0, 0, IRQ_OTHER, "0: polled, 1: interrupts own core, 2: another");
PHASE(irq, 500, 0, SECOND, "ns of CPU of an interrupt");
PHASE(wake, 0, 0, SECOND, "ns to wake a submitter that sleeps");
PHASE(single, 0, 0, 1, "1: requests complete one by one");
PHASE(jitter, 0, 0, 100, "percent that CPU times vary");
PHASE(steal, 0, 0, SECOND, "ns that a core is taken away, after ...");
PHASE(steal_every, 0, 0, 10 * SECOND, "... so many on average");
PHASE(size, 4096, 512, 1 << 20, "bytes of an I/O");
PHASE(max_size, 512 << 10, 4096, 1 << 20, "bytes of a request");
PHASE(warm, SECOND, 0, 1000 * SECOND, "ns before it is measured, ...");
PHASE(warm_ios, 1ULL << 40, 0, 1ULL << 40, "... or so many I/Os");
PHASE(ios, 64000, 1, 1ULL << 40, "I/Os to measure after that");
PHASE(time, 0, 0, 1000 * SECOND, "ns to measure for at most; 0: any");

LOAD(depth, 128, 1, 65536, "I/Os in flight of a task");
LOAD(batch, 32, 1, 65536, "I/Os of a submission");
LOAD(ragged, 0, 0, 1, "1: of any number of I/Os up to that");
LOAD(complete, 32, 1, 65536, "I/Os to wait for");
LOAD(arrive, 0, 0, 10 * SECOND, "ns between batches; 0: when there is room");
LOAD(poisson, 0, 0, 1, "1: these ns are an average");
LOAD(burst, SECOND, 1, 10 * SECOND, "ns that it submits, before ...");
LOAD(pause, 0, 0, 10 * SECOND, "... a pause of so many");
LOAD(seq, 0, 0, 100, "percent of I/Os that go on with a stream");
LOAD(streams, 1, 1, MAX_STREAMS, "sequential streams, by chance");
#undef RUN
#undef PHASE
#undef LOAD
