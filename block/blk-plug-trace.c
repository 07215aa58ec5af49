// SPDX-License-Identifier: GPL-2.0
/*
 * The plug policy's trace events.
 */
#include "blk-plug-adaptive.h"

#define CREATE_TRACE_POINTS
#include <trace/events/blk_plug_policy.h>
