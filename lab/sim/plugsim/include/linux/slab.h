/* SPDX-License-Identifier: GPL-2.0 */
#ifndef PLUGSIM_LINUX_SLAB_H
#define PLUGSIM_LINUX_SLAB_H

#include <errno.h>
#include <stdlib.h>

#define kvcalloc(nr, size, flags)	calloc(nr, size)
#define kvfree(what)			free(what)

#endif /* PLUGSIM_LINUX_SLAB_H */
