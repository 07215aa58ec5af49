/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The media of a model SSD: units that serve commands in order of arrival, a
 * link, latencies that are drawn. The module ssd_model and the simulator
 * plugsim are both built around it.
 */
#ifndef SSD_MODEL_MEDIA_H
#define SSD_MODEL_MEDIA_H

#include <linux/types.h>

/* The longest time that may be set, before time_scale: 10 s */
#define SSD_MODEL_NS_MAX	10000000000ULL
#define SSD_MODEL_SCALE_MAX	10000
#define SSD_MODEL_UNITS_MAX	65536
#define SSD_MODEL_POINTS_MAX	16

/* 2^64 divided by the golden ratio: the step of splitmix64 */
#define SSD_MODEL_STEP		0x9e3779b97f4a7c15ULL

#define SSD_MODEL_DIST_SYNTAX						\
	"fixed:NS, uniform:LOW-HIGH, or percentiles, linear in between: " \
	"table:0=NS,...,100=NS; up to 10 s"

enum ssd_model_op {
	SSD_MODEL_READ,
	SSD_MODEL_WRITE,
	SSD_MODEL_FLUSH,
	SSD_MODEL_OPS,
};

/*
 * What a command draws. Setting one leaves the other's draws alone; there is
 * room for a third, so that seeds keep what they meant when there was one.
 */
enum ssd_model_draw {
	SSD_MODEL_DRAW_LATENCY,
	SSD_MODEL_DRAW_SERVICE,
	SSD_MODEL_DRAWS = 3,
};

/* A point of a quantile function */
struct ssd_model_point {
	u64 below;	/* share of the draws that lie below ns, times 2^32 */
	u64 ns;		/* the time */
};

/* A distribution of times */
struct ssd_model_dist {
	/* number of points; with one, each draw is that */
	unsigned int nr;
	/* the quantile function, linear in between */
	struct ssd_model_point points[SSD_MODEL_POINTS_MAX];
};

/* A word, key=value, that describes something */
struct ssd_model_word {
	const char *key;	/* NULL ends a table */
	/* of a u64 or of a struct ssd_model_dist in what it describes */
	size_t offset;
	/* a number, if it is not given; of a distribution, fixed */
	u64 preset;
	u64 least;	/* that a number may be */
	u64 most;	/* that a number may be; 0: it is a distribution */
	const char *help;	/* what it is */
};

/* What media_words.h says, by these names */
struct ssd_model_profile {
#define NUMBER(name, ...)	u64 name
#define DIST(name, ...)		struct ssd_model_dist name
#include "media_words.h"
};

/* The media at work */
struct ssd_model_media {
	struct ssd_model_profile profile;	/* with all times scaled */
	bool instant;	/* every command completes at once */
	/* admission changes what follows in here, so calls need a lock */
	bool shared;
	u32 link_cost;	/* transfer of a byte, in ns times bandwidth_mbs */
	u64 link_free;	/* time from which the link is free */
	/* fraction of a ns beyond link_free, times bandwidth_mbs */
	u64 link_rest;
	/* times from which the units are free, as a heap: earliest first */
	u64 *unit_free;
};

/* A command as the media sees it */
struct ssd_model_access {
	enum ssd_model_op op;		/* what it does */
	u32 bytes;			/* length */
	u64 seed;			/* of the stream of draws */
	u64 number;			/* of the command, in this stream */
};

u64 ssd_model_draw(u64 seed, u64 number, enum ssd_model_draw which);
void ssd_model_words_preset(const struct ssd_model_word *words, void *what);
const struct ssd_model_word *
ssd_model_word_find(const struct ssd_model_word *words, const char *key);
int ssd_model_word_set(const struct ssd_model_word *word, void *what,
		       const char *value);
int ssd_model_media_init(struct ssd_model_media *media,
			 const struct ssd_model_profile *profile);
void ssd_model_media_exit(struct ssd_model_media *media);
u64 ssd_model_media_admit(struct ssd_model_media *media,
			  const struct ssd_model_access *access, u64 now);
u64 ssd_model_scale(u64 ns, u32 percent);

#endif /* SSD_MODEL_MEDIA_H */
