/* SPDX-License-Identifier: GPL-2.0 */
/* What describes a device of ssd_model, besides its media */
NUMBER(size_mb, 1024, 1, 1 << 24, "of each namespace, MiB");
NUMBER(namespaces, 1, 1, 16, "disks; all share the queues and the tags");
NUMBER(queues, 1, 1, 1024, "that interrupt; one per CPU is made at most");
NUMBER(poll_queues, 0, 0, 1024, "that are polled; likewise");
NUMBER(depth, 1023, 1, BLK_MQ_MAX_DEPTH, "commands per queue");
NUMBER(max_kb, 512, 4, 16384, "largest request, KiB");
NUMBER(backing, 0, 0, 1, "1: keeps the data; 0: reads leave buffers alone");
NUMBER(write_cache, 0, 0, 1, "1: says that there is a volatile one, and FUA");
NUMBER(seed, 1, 0, U64_MAX, "of all random draws");
NUMBER(doorbell_ns, 0, 0, 1000000, "that a doorbell keeps the CPU");
#undef NUMBER
