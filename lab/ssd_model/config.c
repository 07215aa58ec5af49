// SPDX-License-Identifier: GPL-2.0
/* /sys/kernel/config/ssd_model/NAME, as words.h and media_words.h have it */
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
 * @most: that a number may be; 0 of a distribution
 */
struct ssdm_attr {
	struct configfs_attribute attr;
	size_t offset;
	u64 preset;
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
	const struct ssd_model_dist *field = ssdm_field(item, attr);

	guard(mutex)(&item->lock);
	return sprintf(page, "%s\n", field->text);
}

static ssize_t ssdm_dist_store(struct ssdm_item *item,
			       const struct ssdm_attr *attr,
			       const char *page, size_t count)
{
	struct ssd_model_dist *field = ssdm_field(item, attr);
	char text[SSD_MODEL_DIST_TEXT];

	if (ssdm_line(text, sizeof(text), page, count))
		return -EINVAL;
	guard(mutex)(&item->lock);
	if (item->dev)
		return -EBUSY;
	return ssd_model_dist_parse(field, text) ?: count;
}

/*
 * configfs does not tell these functions which attribute is meant, so that each
 * has its own.
 */
#define SSDM_ATTR(name, where, kind, ...)				\
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
	.offset = SSDM_##where(name),					\
	__VA_ARGS__							\
}

#define SSDM_OWN(name)		offsetof(struct ssd_model_config, name)
#define SSDM_MEDIA(name)	offsetof(struct ssd_model_config, media.name)

#define NUMBER(name, at_first, from, to, ...)				\
	SSDM_ATTR(name, OWN, number, .preset = at_first, .least = from,	\
		  .most = to)
#include "words.h"

#define NUMBER(name, at_first, from, to, ...)				\
	SSDM_ATTR(name, MEDIA, number, .preset = at_first, .least = from, \
		  .most = to)
#define DIST(name, ...)	SSDM_ATTR(name, MEDIA, dist)
#include "media_words.h"

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

/* power, which has no preset, all others, and NULL */
static struct configfs_attribute *ssdm_attrs[32] = { &ssdm_attr_power };

static void ssdm_list_attrs(void)
{
	struct configfs_attribute **at = ssdm_attrs + 1;

#define NUMBER(name, ...)	(*at++ = &ssdm_attr_##name.attr)
#include "words.h"
#define NUMBER(name, ...)	(*at++ = &ssdm_attr_##name.attr)
#define DIST(name, ...)		(*at++ = &ssdm_attr_##name.attr)
#include "media_words.h"
}

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

static void ssdm_preset(struct ssdm_item *item)
{
	struct configfs_attribute **at;

	for (at = ssdm_attrs + 1; *at; at++) {
		struct ssdm_attr *attr = container_of(*at, struct ssdm_attr,
						      attr);

		if (attr->most)
			*(u64 *)ssdm_field(item, attr) = attr->preset;
		else
			ssd_model_dist_parse(ssdm_field(item, attr), "fixed:0");
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
	ssdm_preset(item);
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
	ssdm_list_attrs();
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
