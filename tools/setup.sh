#!/bin/sh
# Brings a machine to where `make` works: Debian packages, then a virtual environment with pinned versions.
# Says what it does, does nothing when all is there.  SETUP=no never installs: what is missing is an error.
#   tools/setup.sh [PACKAGE …]     Debian packages that are needed beside those listed here (tests of report.html: chromium; of Verilog: iverilog)
set -eu
cd "$(dirname "$0")/.."

packages="python3-venv g++ cmake ninja-build mold libmlir-19-dev mlir-19-tools libclang-19-dev libisl-dev libcjson-dev coinor-libcbc-dev libcmocka-dev clang-format-19 libxrt-dev uuid-dev pkg-config $*"
torch_index=https://download.pytorch.org/whl/cpu
venv=.venv
stamp=$venv/requirements.stamp
setup=${SETUP:-yes}

fail()
{
	echo "setup: error: $1" >&2
	exit 1
}

missing_packages()
{
	for package in $packages; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || printf ' %s' "$package"
	done
}

as_root()
{
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		sudo -n "$@"
	fi
}

can_be_root()
{
	[ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null
}

install_packages()
{
	command -v dpkg-query >/dev/null || fail "no dpkg on this machine: install by hand the equivalents of: $packages"
	missing=$(missing_packages)
	[ -n "$missing" ] || return 0
	line="apt-get install -y --no-install-recommends$missing"
	echo "setup: Debian packages are missing; the line that installs them is"
	echo "    $line"
	[ "$setup" != no ] || fail "SETUP=no, so nothing is installed: run the line above as root"
	can_be_root || fail "neither root nor password-less sudo: run the line above as root"
	echo "setup: installing them"
	# The lists of a fresh machine are empty or old; of one without a network they are what they are.
	as_root apt-get -qq update || echo "setup: apt-get update failed, going on with the lists that are there"
	as_root env DEBIAN_FRONTEND=noninteractive $line || fail "apt-get could not install:$missing"
}

find_python()
{
	for python in python3 /usr/bin/python3; do
		if "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
			echo "$python"
			return
		fi
	done
	fail "no Python 3.11 or newer with venv found (looked at python3 in PATH and /usr/bin/python3)"
}

pip_install()
{
	"$venv/bin/python" -m pip --disable-pip-version-check --no-input install -qq "$@"
}

# Configured indexes first (a mirror may serve the CPU build), then PyTorch's own.  The pin says "+cpu", so no
# order of indexes can bring a CUDA build.
install_torch()
{
	torch=$(grep '^torch==' requirements.txt)
	pip_install "$torch" 2>/dev/null || pip_install --index-url "$torch_index" "$torch" || fail "pip could not install $torch"
}

# The package is used from the tree, not copied: a path file, a command of the same name as the wheel's, and the
# metadata by which torch.compile finds its backend.
link_package()
{
	site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
	version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
	echo "$PWD/python" >"$site/streamtensor-tree.pth"
	rm -rf "$site"/streamtensor-*.dist-info
	mkdir "$site/streamtensor-$version.dist-info"
	printf 'Metadata-Version: 2.1\nName: streamtensor\nVersion: %s\n' "$version" >"$site/streamtensor-$version.dist-info/METADATA"
	sed -n 's/^\[project.entry-points.\(.*\)\]/[\1]/p; s/^streamtensor = "\(streamtensor.dynamo:.*\)"/streamtensor = \1/p' pyproject.toml \
		>"$site/streamtensor-$version.dist-info/entry_points.txt"
	printf '#!/bin/sh\nexec "%s/%s/bin/python" -m streamtensor "$@"\n' "$PWD" "$venv" >"$venv/bin/streamtensor"
	chmod +x "$venv/bin/streamtensor"
}

make_venv()
{
	wanted=$(cat requirements.txt requirements-test.txt requirements-files.txt; echo "# at $PWD")
	[ ! -f "$stamp" ] || [ "$wanted" != "$(cat "$stamp")" ] || return 0
	[ "$setup" != no ] || fail "SETUP=no, and $venv is missing or does not match requirements.txt: run tools/setup.sh"
	python=$(find_python)
	echo "setup: making $venv with $($python --version) and the versions pinned in requirements.txt (a few minutes)"
	rm -rf "$venv"
	"$python" -m venv "$venv"
	install_torch
	pip_install -r requirements.txt -r requirements-test.txt || fail "pip could not install what requirements.txt pins"
	pip_install --no-deps -r requirements-files.txt || fail "pip could not install what requirements-files.txt pins"
	printf '%s\n' "$wanted" >"$stamp"
}

install_packages
make_venv
[ "$setup" = no ] || link_package
