#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Print what puts a working python3 into a guest: SRC:DST, one pair per line,
# for initramfs.sh:
#
#	initramfs.sh OUT.cpio $(guest_python.sh)
#
# PYTHON names the interpreter [/usr/bin/python3]. Of the standard library comes
# what a command-line tool needs: no tests, GUI, installers, nor extensions that
# need large libraries (TLS, sqlite, curses). Compiled files stay behind, since
# the archive's timestamps would make them stale.
set -eu

PYTHON=${PYTHON:-/usr/bin/python3}

die()
{
	echo "guest_python.sh: $*" >&2
	exit 1
}

# ask EXPRESSION: what the interpreter says of itself
ask()
{
	"$PYTHON" -c "import os, sys, sysconfig; print($1)"
}

library()
{
	find "$1" \( -name __pycache__ -o -name test -o -name tests -o \
		-name idlelib -o -name tkinter -o -name turtledemo -o \
		-name ensurepip -o -name venv -o -name lib2to3 -o \
		-name distutils -o -name pydoc_data -o -name asyncio -o \
		-name site-packages -o -name dist-packages -o \
		-name 'config-*' \) -prune -o -type f -name '*.py' -print
}

extensions()
{
	find "$1" -type f -name '*.so' ! -name '_ssl.*' ! -name '_hashlib.*' \
		! -name '_sqlite3.*' ! -name '_tkinter.*' ! -name '_curses*' \
		! -name 'readline.*' ! -name '_dbm.*' ! -name '_gdbm.*' \
		! -name 'nis.*' ! -name '_codecs_*' ! -name '_test*' ! -name '*xx*'
}

# The shared libraries of files, those of the loader included.
libraries()
{
	ldd "$@" | grep -o '/[^ :]* (' | sed 's/ ($//' | sort -u
}

pairs()
{
	while read -r file; do
		echo "$file:$file"
	done
}

command -v "$PYTHON" >/dev/null ||
	die "no $PYTHON (Debian: apt install python3); PYTHON names another"
real=$(ask 'os.path.realpath(sys.executable)')
stdlib=$(ask 'sysconfig.get_path("stdlib")')
dynload=$(ask 'sysconfig.get_config_var("DESTSHARED") or ""')
[ -f "$stdlib/argparse.py" ] ||
	die "$stdlib is incomplete (Debian: apt install libpython3-stdlib)"

# Not at its own path, too: for the library it knows where it was built for.
echo "$real:/bin/python3"
[ -d "$dynload" ] || dynload=$stdlib/lib-dynload
library "$stdlib" | pairs
extensions "$dynload" | pairs
# shellcheck disable=SC2046 # one word for each file
libraries "$real" $(extensions "$dynload") | pairs
