// SPDX-License-Identifier: GPL-2.0
/*
 * fscrypt_dir: make what an empty directory will hold encrypted
 *
 * fscrypt_dir DIR NUMBER
 *
 * NUMBER, from 0 to 255, makes a master key of its own, which is added to the
 * file system of DIR. Each file then has a key derived from it.
 *
 * Exit: 0 done, 1 refused, 2 usage, 4 the file system does not encrypt.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fscrypt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
	EXIT_USAGE	= 2,
	EXIT_UNSUPPORTED = 4,	/* the kselftest code for a skip */

	KEY_SIZE	= 64,
};

static int parse(const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (end == text || *end || n < 0 || n > 255)
		errx(EXIT_USAGE, "'%s' is no number from 0 to 255", text);
	return n;
}

static void add_key(int fd, int number, struct fscrypt_policy_v2 *policy)
{
	struct fscrypt_add_key_arg *arg = calloc(1, sizeof(*arg) + KEY_SIZE);

	if (!arg)
		err(EXIT_FAILURE, "key");
	arg->key_spec.type = FSCRYPT_KEY_SPEC_TYPE_IDENTIFIER;
	arg->raw_size = KEY_SIZE;
	memset(arg->raw, number, KEY_SIZE);
	if (ioctl(fd, FS_IOC_ADD_ENCRYPTION_KEY, arg))
		err(errno == EOPNOTSUPP || errno == ENOTTY ?
		    EXIT_UNSUPPORTED : EXIT_FAILURE, "adding a key");
	memcpy(policy->master_key_identifier, arg->key_spec.u.identifier,
	       FSCRYPT_KEY_IDENTIFIER_SIZE);
	free(arg);
}

int main(int argc, char **argv)
{
	struct fscrypt_policy_v2 policy = {
		.version = FSCRYPT_POLICY_V2,
		.contents_encryption_mode = FSCRYPT_MODE_AES_256_XTS,
		.filenames_encryption_mode = FSCRYPT_MODE_AES_256_CTS,
		.flags = FSCRYPT_POLICY_FLAGS_PAD_32,
	};
	int fd;

	if (argc != 3)
		errx(EXIT_USAGE, "usage: fscrypt_dir DIR NUMBER");
	fd = open(argv[1], O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		err(EXIT_FAILURE, "%s", argv[1]);
	add_key(fd, parse(argv[2]), &policy);
	if (ioctl(fd, FS_IOC_SET_ENCRYPTION_POLICY, &policy))
		err(EXIT_FAILURE, "encrypting %s", argv[1]);
	close(fd);
	return 0;
}
