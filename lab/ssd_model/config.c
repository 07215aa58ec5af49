// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/config/ssd_model/NAME; ssd_model.h says what its files mean.
 */
#include <linux/blkdev.h>
#include <linux/cleanup.h>
#include <linux/configfs.h>
#include <linux/err.h>
#include <linux/kstrtox.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "ssd_model.h"

/* Room for "n16" and the end of the name */
#define SSDM_NAME_MAX	(DISK_NAME_LEN - 4)

/**
 * struct ssdm_item - a directory
 * @group: for configfs
 * @lock: protects what follows, and keeps power changes apart
 * @config: what the attributes say
 * @dev: the device, if the power is on
 */
struct ssdm_item {
	struct config_group group;
	struct mutex lock; /* of config and dev */
	struct ssd_model_config config;
	struct ssd_model_dev *dev;
};

/**
 * struct ssdm_attr - a file that sets a member of the configuration
 * @attr: for configfs
 * @offset: of the member
 * @preset: what a new directory has
 * @least: that a number may be
 * @most: that a number may be
 */
struct ssdm_attr {
	struct configfs_attribute attr;
	size_t offset;
	const char *preset;
	u64 least;
	u64 most;
};

static struct ssdm_item *ssdm_item(struct config_item *item)
{
	return container_of(to_config_group(item), struct ssdm_item, group);
}

/* The text without its line end: a copy in @text, if it fits */
static int ssdm_line(char *text, size_t size, const char *page, size_t count)
{
	if (count && page[count - 1] == '\n')
		count--;
	if (count >= size || memchr(page, '\0', count))
		return -EINVAL;
	memcpy(text, page, count);
	text[count] = '\0';
	return 0;
}

static int ssdm_parse_number(u64 *value, const char *page, size_t count,
			     u64 least, u64 most)
{
	char text[24];
	u64 n;

	/* kstrtou64() would take a sign. */
	if (ssdm_line(text, sizeof(text), page, count) || text[0] == '+' ||
	    kstrtou64(text, 10, &n) || n < least || n > most)
		return -EINVAL;
	*value = n;
	return 0;
}

static void *ssdm_field(struct ssdm_item *item, const struct ssdm_attr *attr)
{
	return (void *)&item->config + attr->offset;
}

static ssize_t ssdm_number_show(struct ssdm_item *item,
				const struct ssdm_attr *attr, char *page)
{
	const u64 *field = ssdm_field(item, attr);

	guard(mutex)(&item->lock);
	return sprintf(page, "%llu\n", *field);
}

static ssize_t ssdm_number_store(struct ssdm_item *item,
				 const struct ssdm_attr *attr,
				 const char *page, size_t count)
{
	u64 *field = ssdm_field(item, attr);
	u64 value;

	if (ssdm_parse_number(&value, page, count, attr->least, attr->most))
		return -EINVAL;
	guard(mutex)(&item->lock);
	if (item->dev)
		return -EBUSY;
	*field = value;
	return count;
}

static ssize_t ssdm_dist_show(struct ssdm_item *item,
			      const struct ssdm_attr *attr, char *page)
{
	const struct ssd_model_dist_attr *field = ssdm_field(item, attr);

	guard(mutex)(&item->lock);
	return sprintf(page, "%s\n", field->text);
}

static ssize_t ssdm_dist_store(struct ssdm_item *item,
			       const struct ssdm_attr *attr,
			       const char *page, size_t count)
{
	struct ssd_model_dist_attr *field = ssdm_field(item, attr);
	struct ssd_model_dist dist;
	char text[SSD_MODEL_DIST_TEXT];

	if (ssdm_line(text, sizeof(text), page, count) ||
	    ssd_model_dist_parse(&dist, text))
		return -EINVAL;
	guard(mutex)(&item->lock);
	if (item->dev)
		return -EBUSY;
	strscpy(field->text, text);
	field->dist = dist;
	return count;
}

/*
 * configfs does not tell these functions which attribute is meant, so that each
 * has its own.
 */
#define SSDM_ATTR(name, kind, ...)					\
static struct ssdm_attr ssdm_attr_##name;				\
									\
static ssize_t ssdm_##name##_show(struct config_item *item, char *page)	\
{									\
	return ssdm_##kind##_show(ssdm_item(item), &ssdm_attr_##name,	\
				  page);				\
}									\
									\
static ssize_t ssdm_##name##_store(struct config_item *item,		\
				   const char *page, size_t count)	\
{									\
	return ssdm_##kind##_store(ssdm_item(item), &ssdm_attr_##name,	\
				   page, count);			\
}									\
									\
static struct ssdm_attr ssdm_attr_##name = {				\
	.attr = {							\
		.ca_name = #name,					\
		.ca_owner = THIS_MODULE,				\
		.ca_mode = 0644,					\
		.show = ssdm_##name##_show,				\
		.store = ssdm_##name##_store,				\
	},								\
	.offset = offsetof(struct ssd_model_config, name),		\
	__VA_ARGS__							\
}

#define SSDM_NUMBER(name, at_first, from, to)				\
	SSDM_ATTR(name, number, .preset = at_first, .least = from, .most = to)

#define SSDM_DIST(name)							\
	SSDM_ATTR(name, dist, .preset = "fixed:0")

SSDM_NUMBER(size_mb, "1024", 1, 1 << 24);
SSDM_NUMBER(namespaces, "1", 1, 16);
SSDM_NUMBER(queues, "1", 1, 1024);
SSDM_NUMBER(poll_queues, "0", 0, 1024);
SSDM_NUMBER(depth, "1023", 1, BLK_MQ_MAX_DEPTH);
SSDM_NUMBER(max_kb, "512", 4, 16384);
SSDM_NUMBER(backing, "0", 0, 1);
SSDM_NUMBER(write_cache, "0", 0, 1);
SSDM_NUMBER(rotational, "0", 0, 1);
SSDM_NUMBER(seed, "1", 0, U64_MAX);
SSDM_NUMBER(time_scale, "100", 0, SSD_MODEL_SCALE_MAX);
SSDM_NUMBER(doorbell_ns, "0", 0, 1000000);
SSDM_NUMBER(shadow_doorbell, "0", 0, 1);
SSDM_NUMBER(shadow_idle_ns, "0", 0, SSD_MODEL_NS_MAX);
SSDM_NUMBER(latency_per_kb_ns, "0", 0, 1000000);
SSDM_NUMBER(units, "0", 0, SSD_MODEL_UNITS_MAX);
SSDM_NUMBER(bandwidth_mbs, "0", 0, 1000000);
SSDM_NUMBER(seek_min_ns, "0", 0, SSD_MODEL_NS_MAX);
SSDM_NUMBER(seek_max_ns, "0", 0, SSD_MODEL_NS_MAX);
SSDM_NUMBER(rotation_ns, "0", 0, SSD_MODEL_NS_MAX);
SSDM_NUMBER(irq_count, "1", 1, 1024);
SSDM_NUMBER(irq_time_ns, "0", 0, SSD_MODEL_NS_MAX);
SSDM_DIST(read_latency);
SSDM_DIST(write_latency);
SSDM_DIST(flush_latency);
SSDM_DIST(service);

static int ssdm_power_on(struct ssdm_item *item)
{
	const char *name = config_item_name(&item->group.cg_item);
	struct ssd_model_dev *dev;

	dev = ssd_model_dev_create(name, &item->config);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	item->dev = dev;
	return 0;
}

static void ssdm_power_off(struct ssdm_item *item)
{
	if (item->dev)
		ssd_model_dev_destroy(item->dev);
	item->dev = NULL;
}

static ssize_t ssdm_power_show(struct config_item *item, char *page)
{
	guard(mutex)(&ssdm_item(item)->lock);
	return sprintf(page, "%d\n", !!ssdm_item(item)->dev);
}

static ssize_t ssdm_power_store(struct config_item *item, const char *page,
				size_t count)
{
	struct ssdm_item *it = ssdm_item(item);
	int err = 0;
	u64 on;

	if (ssdm_parse_number(&on, page, count, 0, 1))
		return -EINVAL;
	guard(mutex)(&it->lock);
	if (!on)
		ssdm_power_off(it);
	else if (!it->dev)
		err = ssdm_power_on(it);
	return err ?: count;
}

CONFIGFS_ATTR(ssdm_, power);

static struct configfs_attribute *ssdm_attrs[] = {
	&ssdm_attr_power,	/* the first: it has no preset */
	&ssdm_attr_size_mb.attr,
	&ssdm_attr_namespaces.attr,
	&ssdm_attr_queues.attr,
	&ssdm_attr_poll_queues.attr,
	&ssdm_attr_depth.attr,
	&ssdm_attr_max_kb.attr,
	&ssdm_attr_backing.attr,
	&ssdm_attr_write_cache.attr,
	&ssdm_attr_rotational.attr,
	&ssdm_attr_seed.attr,
	&ssdm_attr_time_scale.attr,
	&ssdm_attr_doorbell_ns.attr,
	&ssdm_attr_shadow_doorbell.attr,
	&ssdm_attr_shadow_idle_ns.attr,
	&ssdm_attr_latency_per_kb_ns.attr,
	&ssdm_attr_units.attr,
	&ssdm_attr_bandwidth_mbs.attr,
	&ssdm_attr_seek_min_ns.attr,
	&ssdm_attr_seek_max_ns.attr,
	&ssdm_attr_rotation_ns.attr,
	&ssdm_attr_irq_count.attr,
	&ssdm_attr_irq_time_ns.attr,
	&ssdm_attr_read_latency.attr,
	&ssdm_attr_write_latency.attr,
	&ssdm_attr_flush_latency.attr,
	&ssdm_attr_service.attr,
	NULL,
};

static void ssdm_release(struct config_item *item)
{
	mutex_destroy(&ssdm_item(item)->lock);
	kfree(ssdm_item(item));
}

static const struct configfs_item_operations ssdm_item_ops = {
	.release	= ssdm_release,
};

static const struct config_item_type ssdm_item_type = {
	.ct_item_ops	= (void *)&ssdm_item_ops, /* Linux 6.12: not const */
	.ct_attrs	= ssdm_attrs,
	.ct_owner	= THIS_MODULE,
};

/* Writes to all attributes, but for power, what they are at first. */
static void ssdm_preset(struct config_item *item)
{
	struct configfs_attribute **at;
	const char *text;

	for (at = ssdm_attrs + 1; *at; at++) {
		text = container_of(*at, struct ssdm_attr, attr)->preset;
		(*at)->store(item, text, strlen(text));
	}
}

static struct config_group *ssdm_make(struct config_group *group,
				      const char *name)
{
	struct ssdm_item *item;

	if (strlen(name) > SSDM_NAME_MAX)
		return ERR_PTR(-ENAMETOOLONG);
	item = kzalloc_obj(*item);
	if (!item)
		return ERR_PTR(-ENOMEM);
	mutex_init(&item->lock);
	config_group_init_type_name(&item->group, name, &ssdm_item_type);
	ssdm_preset(&item->group.cg_item);
	return &item->group;
}

/* The attributes may still be open, so that the item stays. */
static void ssdm_drop(struct config_group *group, struct config_item *item)
{
	scoped_guard(mutex, &ssdm_item(item)->lock)
		ssdm_power_off(ssdm_item(item));
	config_item_put(item);
}

static const struct configfs_group_operations ssdm_group_ops = {
	.make_group	= ssdm_make,
	.drop_item	= ssdm_drop,
};

static const struct config_item_type ssdm_group_type = {
	.ct_group_ops	= (void *)&ssdm_group_ops,
	.ct_owner	= THIS_MODULE,
};

static struct configfs_subsystem ssdm_subsys = {
	.su_group = {
		.cg_item = {
			.ci_namebuf = "ssd_model",
			.ci_type = &ssdm_group_type,
		},
	},
};

/**
 * ssd_model_config_init - make /sys/kernel/config/ssd_model
 *
 * Return: 0 or an error.
 */
int ssd_model_config_init(void)
{
	config_group_init(&ssdm_subsys.su_group);
	mutex_init(&ssdm_subsys.su_mutex);
	return configfs_register_subsystem(&ssdm_subsys);
}

/**
 * ssd_model_config_exit - remove it; its directories keep the module loaded
 */
void ssd_model_config_exit(void)
{
	configfs_unregister_subsystem(&ssdm_subsys);
}
