#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Makes sure that build/cache/loads holds what "make bench SUITE=loads" runs and
# the machine need not have installed:
#
#	bin/io_uring	fio's t/io_uring, built from Debian's source of fio
#	root/		RocksDB's db_bench and PostgreSQL, of Debian's packages
#	pgdata.tar	a cluster of that PostgreSQL with pgbench's tables
#
# Unpacked, not installed: PostgreSQL's package would start a server.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../../scripts/say.sh
. "$here/../../scripts/say.sh"
# shellcheck source-path=SCRIPTDIR source=../../scripts/apt.sh
. "$here/../../scripts/apt.sh"

root=${PLUG_POLICY_ROOT:-$(cd "$here/../.." && pwd)}
loads=${PLUG_POLICY_BUILD:-$root/build}/cache/loads
log=$loads/log
apt=$loads/apt
# only read, for what need not be fetched
status=/var/lib/dpkg/status

# --reinstall: what is installed is fetched, too.
fetch_packages() {
	postgres=$(private_apt apt-cache depends postgresql |
		sed -n 's/^ *Depends: \(postgresql-[0-9]*\)$/\1/p')
	step "fetch rocksdb-tools and $postgres"
	quiet "download" private_apt apt-get install --reinstall \
		--download-only -y --allow-downgrades --no-install-recommends \
		"$postgres" rocksdb-tools
	for deb in "$apt"/archives/*.deb; do
		quiet "unpacking ${deb##*/}" dpkg-deb -x "$deb" "$loads/root"
	done
	find "$loads/root" -type f \( -name '*.so*' -o -perm -100 \) \
		-exec strip --strip-unneeded {} + 2>/dev/null || :
}

# Without what this processor has and an emulated one has not, and without
# libraries that a guest would need.
build_io_uring() {
	step "fetch fio's source and build t/io_uring"
	(cd "$apt" && quiet "download of fio" private_apt apt-get source fio)
	cd "$apt"/fio-*/
	quiet "configure of fio" ./configure --disable-native --build-static
	quiet "build of t/io_uring" make -j"$(nproc)" t/io_uring
	mkdir -p "$loads/bin"
	strip -o "$loads/bin/io_uring" t/io_uring
	cd "$loads"
}

# as_nobody PROGRAM...: PostgreSQL refuses to be root's
as_nobody() {
	program=$1
	shift
	quiet "$program" setpriv --reuid=nobody --clear-groups env LC_ALL=C \
		LD_LIBRARY_PATH="$work/usr/lib/$(gcc -print-multiarch)" \
		"$(echo "$work"/usr/lib/postgresql/*/bin/"$program")" "$@"
}

# What it has is small, so that a guest reads it from the disk and not from
# memory of its own; nothing happens by the clock.
configure_cluster() {
	cat >>"$work/pgdata/postgresql.conf" <<-END
		listen_addresses = ''
		unix_socket_directories = '/tmp'
		shared_buffers = 1MB
		wal_level = minimal
		max_wal_senders = 0
		min_wal_size = 2MB
		max_wal_size = 4MB
		dynamic_shared_memory_type = mmap
		max_parallel_workers_per_gather = 0
		jit = off
		autovacuum = off
		timezone = GMT
		log_timezone = GMT
	END
}

# Where nobody can enter, which is not so below everybody's home.
make_cluster() {
	step "make PostgreSQL's cluster, with pgbench's tables"
	work=$(mktemp -d)
	cp -R "$loads/root/usr" "$work/usr"
	mkdir "$work/pgdata"
	chmod 755 "$work"
	chown nobody "$work" "$work/pgdata"
	as_nobody initdb -D "$work/pgdata" -U postgres -A trust --no-sync \
		--wal-segsize=1
	configure_cluster
	as_nobody pg_ctl -s -w -D "$work/pgdata" -l "$work/log" \
		-o "-k $work" start
	as_nobody pgbench -h "$work" -U postgres -q -i -s 1 postgres
	as_nobody pg_ctl -s -w -D "$work/pgdata" -m fast stop
	tar -C "$work" -cf "$loads/pgdata.tar" pgdata
	rm -rf "$work"
}

version=$(sha256sum <"$0")
[ "$(cat "$loads/done" 2>/dev/null)" != "$version" ] || exit 0
rm -rf "$loads"
make_apt
mkdir -p "$loads/root"
write_own_sources "deb deb-src"
step "look for fio, rocksdb-tools and PostgreSQL"
quiet "apt-get update" private_apt apt-get --error-on=any update
fetch_packages
build_io_uring
make_cluster
rm -rf "$apt"
echo "$version" >"$loads/done"
step "have $loads"
