# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# apt with sources and state of its own, below $apt: the machine's are neither
# read nor changed. Signatures are checked against Debian's keyring. Sourced
# after say.sh, never run.
# shellcheck disable=SC2154 # $apt and $log are set by the scripts

mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
# What counts as installed: nothing, unless a script says otherwise
status=/dev/null
# Of the packages: this machine's, unless a script says otherwise
architecture=$(dpkg --print-architecture)

# make_apt [OTHERWISE]: $apt, with what was fetched before; what else would do
# shellcheck disable=SC2120 # an argument that may be missing
make_apt() {
	[ -r "$keyring" ] || die "$keyring is missing: install" \
		"debian-archive-keyring${1:+, $1}"
	mkdir -p "$apt/lists/partial" "$apt/archives/partial"
}

# write_sources TYPES URI SUITE
write_sources() {
	cat >"$apt/src.sources" <<-END
		Types: $1
		URIs: $2
		Suites: $3
		Components: main
		Signed-By: $keyring
	END
}

# write_own_sources TYPES: those of this machine's Debian
write_own_sources() {
	write_sources "$1" "$mirror" \
		"$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)"
}

# private_apt PROGRAM ARGUMENT... Sandbox: apt's own user cannot write below a
# home directory. NoLocking: where $status is the machine's, the lock is, too.
private_apt() {
	program=$1
	shift
	"$program" \
		-o Dir::Etc::sourcelist="$apt/src.sources" \
		-o Dir::Etc::sourceparts=- \
		-o Dir::State="$apt" \
		-o Dir::State::Lists="$apt/lists" \
		-o Dir::State::status="$status" \
		-o Dir::Cache="$apt" \
		-o APT::Architecture="$architecture" \
		-o APT::Architectures="$architecture" \
		-o Debug::NoLocking=true \
		-o APT::Sandbox::User=root \
		-o APT::Get::AllowUnauthenticated=false \
		-o Acquire::AllowInsecureRepositories=false \
		-o Acquire::Languages=none \
		-o Acquire::Retries=3 "$@"
}

# quiet WHAT COMMAND...: its output, in $log, is shown only if it fails
quiet() {
	what=$1
	shift
	"$@" >"$log" 2>&1 || {
		tail -n 20 "$log" >&2
		die "$what failed"
	}
}
