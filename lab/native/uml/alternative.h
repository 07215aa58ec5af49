/* SPDX-License-Identifier: GPL-2.0 */
/* Locked instructions for User Mode Linux on one CPU, as on bare metal. */
#include "../../../x86/include/asm/alternative.h"

#undef LOCK_PREFIX
#define LOCK_PREFIX "lock "
