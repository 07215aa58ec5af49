/* SPDX-License-Identifier: GPL-2.0 */
#ifndef PLUGSIM_KUNIT_VISIBILITY_H
#define PLUGSIM_KUNIT_VISIBILITY_H

/* As without CONFIG_KUNIT. */
#define VISIBLE_IF_KUNIT static
#define EXPORT_SYMBOL_IF_KUNIT(symbol)

#endif /* PLUGSIM_KUNIT_VISIBILITY_H */
