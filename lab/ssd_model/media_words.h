/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What describes the media: words of ssd_model and of plugsim. Times are in ns.
 * Who includes this says before what becomes of them:
 *
 *	NUMBER(name, at first, least, most, help)
 *	DIST(name, help)
 */
NUMBER(units, 0, 0, SSD_MODEL_UNITS_MAX, "that work at a time; 0: any number");
NUMBER(bandwidth_mbs, 0, 0, 1000000, "of its link, 10^6 bytes/s; 0: any");
NUMBER(time_scale, 100, 0, SSD_MODEL_SCALE_MAX, "percent of all these times");
DIST(read_latency, "what a read takes after a unit has served it");
DIST(write_latency, "likewise, a write");
DIST(service, "time that a command occupies a unit");
#undef NUMBER
#undef DIST
