#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A compiler behind ccache, which takes the compiler's own list of what was
# included: a miss costs 5% instead of 25%. What .incbin takes is not on that
# list, so whatever may have one is preprocessed by ccache first.
case " $* " in
*.S\ *|*/configs.c\ *|*/kheaders.c\ *) ;;
*) export CCACHE_DEPEND=1 ;;
esac
exec ccache "$@"
