// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/module/ssd_model/parameters/device: "NAME WORD=VALUE..." makes the disks
 * /dev/NAMEn1 ..., "-NAME" removes them. Words are those of words.h and
 * media_words.h; what is not accepted is said in the log.
 */
#include <linux/err.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "ssd_model.h"

static struct ssd_model_word ssdm_words[32];
static LIST_HEAD(ssdm_devices);
/* Of the above; it keeps apart those who make and remove devices. */
static DEFINE_MUTEX(ssdm_lock);
static bool ssdm_gone;

static void ssdm_list_words(void)
{
	struct ssd_model_word *at = ssdm_words;

#define NUMBER(name, ...)						\
	(*at++ = (struct ssd_model_word){				\
		#name, offsetof(struct ssd_model_config, name), __VA_ARGS__ })
#include "words.h"
#define NUMBER(name, ...)						\
	(*at++ = (struct ssd_model_word){				\
		#name, offsetof(struct ssd_model_config, media.name),	\
		__VA_ARGS__ })
#define DIST(name, help)	NUMBER(name, 0, 0, 0, help)
#include "media_words.h"
}

static int ssdm_parse_word(struct ssd_model_config *c, char *key)
{
	const struct ssd_model_word *word;
	char *value = key;

	strsep(&value, "=");
	word = ssd_model_word_find(ssdm_words, key);
	if (word && value && !ssd_model_word_set(word, c, value))
		return 0;
	if (!word)
		pr_err("ssd_model: no word is named '%s'\n", key);
	else if (word->most)
		pr_err("ssd_model: %s=%s; accepted: %llu to %llu\n", key,
		       value, word->least, word->most);
	else
		pr_err("ssd_model: %s=%s; accepted: " SSD_MODEL_DIST_SYNTAX
		       "\n", key, value);
	return -EINVAL;
}

static struct ssd_model_dev *ssdm_find(const char *name)
{
	struct ssd_model_dev *dev;

	list_for_each_entry(dev, &ssdm_devices, list) {
		if (!strcmp(dev->name, name))
			return dev;
	}
	return NULL;
}

static void ssdm_remove(struct ssd_model_dev *dev)
{
	list_del(&dev->list);
	ssd_model_dev_destroy(dev);
}

static int ssdm_add(const char *name, char *words)
{
	struct ssd_model_config *c;
	struct ssd_model_dev *dev;
	char *word;
	int err = 0;

	if (!*name || strchr(name, '/') || strlen(name) >= sizeof(dev->name))
		return -EINVAL;
	if (ssdm_gone || ssdm_find(name))
		return -EEXIST;
	c = kzalloc_obj(*c);
	if (!c)
		return -ENOMEM;
	ssd_model_words_preset(ssdm_words, c);
	while (!err && (word = strsep(&words, " "))) {
		if (*word)
			err = ssdm_parse_word(c, word);
	}
	if (!err) {
		dev = ssd_model_dev_create(name, c);
		err = PTR_ERR_OR_ZERO(dev);
		if (!err)
			list_add_tail(&dev->list, &ssdm_devices);
	}
	kfree(c);
	return err;
}

static int ssdm_device_set(const char *text, const struct kernel_param *kp)
{
	char *copy = kstrdup(text, GFP_KERNEL), *words, *name;
	struct ssd_model_dev *dev;
	int err = 0;

	if (!copy)
		return -ENOMEM;
	words = strim(copy);
	name = strsep(&words, " ");
	mutex_lock(&ssdm_lock);
	if (*name != '-') {
		err = ssdm_add(name, words);
	} else {
		dev = ssdm_find(name + 1);
		if (dev)
			ssdm_remove(dev);
		else
			err = -ENOENT;
	}
	mutex_unlock(&ssdm_lock);
	kfree(copy);
	return err;
}

static const struct kernel_param_ops ssdm_device_ops = {
	.set = ssdm_device_set,
};

module_param_cb(device, &ssdm_device_ops, NULL, 0200);
MODULE_PARM_DESC(device, "NAME WORD=VALUE... makes one, -NAME removes it");

static int __init ssdm_init(void)
{
	ssdm_list_words();
	ssd_model_stats_init();
	return 0;
}

static void __exit ssdm_exit(void)
{
	struct ssd_model_dev *dev, *next;

	mutex_lock(&ssdm_lock);
	ssdm_gone = true;
	list_for_each_entry_safe(dev, next, &ssdm_devices, list)
		ssdm_remove(dev);
	mutex_unlock(&ssdm_lock);
	ssd_model_stats_exit();
}

module_init(ssdm_init);
module_exit(ssdm_exit);

MODULE_DESCRIPTION("Block device that models an SSD");
MODULE_LICENSE("GPL");
