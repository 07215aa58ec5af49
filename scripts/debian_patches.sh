#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# debian_patches.sh TREE OUT: the series for Debian's source package of the
# kernel, as its packagers keep patches: OUT has
#
#   debian/patches/features/all/plug-policy/  patches, for quilt; DEP-3 headers
#   series     lines for the end of debian/patches/series
#   config     lines for the end of debian/config/config
#
# debian/bin/test-patches takes the patches as its arguments.
set -eu

tree=$1 out=$2 place=features/all/plug-policy
rm -rf "$out"
git -C "$tree" format-patch -q -N --zero-commit --no-signature \
	--add-header="Origin: other" --add-header="Forwarded: no" \
	-o "$(pwd)/$out/debian/patches/$place" refs/tags/base..refs/heads/series
{
	printf '\n# Plug policy\n'
	(cd "$out/debian/patches" && printf '%s\n' $place/*.patch)
} >"$out/series"
{
	printf '\n##\n## file: block/Kconfig.plug\n##\n'
	# Debian sets what else there is itself
	grep '^CONFIG_.*PLUG' tools/block/packaging/policy.config
	echo "# CONFIG_BLK_PLUG_POLICY_DEFAULT_ADAPTIVE is not set"
} >"$out/config"
echo "$(grep -c '\.patch$' "$out/series") patches in $out/debian/patches/$place"
