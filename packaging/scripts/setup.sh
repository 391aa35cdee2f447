#!/bin/sh
# Makes .venv with the bridge in it. Usage: setup.sh [run|dev]
# Says in one sentence what to install when something is missing.
set -eu
cd "$(dirname "$0")/../.."
kind=${1:-run}
venv=.venv

find_python() {
    for name in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
        if command -v "$name" >/dev/null 2>&1 &&
            "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    found=$(command -v "${PYTHON:-python3}" >/dev/null 2>&1 && "${PYTHON:-python3}" --version 2>&1 || echo "no python3")
    echo "Error: this needs Python 3.11 or newer and found $found. Install it (Debian: apt-get install python3 python3-venv; macOS: brew install python) and run make again." >&2
    exit 1
}

# Plain Debian ships Python without ensurepip: then virtualenv, uv or an
# outside pip that can install into another environment does the same.
make_venv() {
    "$python" -m venv "$venv" >/dev/null 2>&1 && return
    rm -rf "$venv"
    "$python" -m virtualenv -q "$venv" 2>/dev/null && return
    command -v uv >/dev/null 2>&1 && uv venv -q --seed --python "$python" "$venv" && return
    if "$python" -m pip --version >/dev/null 2>&1 && "$python" -m venv --without-pip "$venv" >/dev/null 2>&1 &&
        "$python" -m pip -q --python "$venv/bin/python" install pip 2>/dev/null; then
        return
    fi
    rm -rf "$venv"
    echo "Error: $python cannot make a virtual environment because its ensurepip is missing. Install the package that has it (Debian: apt-get install python3-venv) and run make again." >&2
    exit 1
}

stamp=$venv/.setup-$kind
if [ -e "$stamp" ] && [ "$stamp" -nt pyproject.toml ] && [ "$stamp" -nt packaging/constraints.txt ] &&
    "$venv/bin/python" -c '' 2>/dev/null; then
    exit 0
fi
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    python=$(find_python)
    make_venv
fi
echo "Setting up .venv (once; a minute or two) ..."
pip() { "$venv/bin/python" -m pip --disable-pip-version-check -q "$@"; }
pip install -c packaging/constraints.txt --upgrade pip
if [ "$kind" = dev ]; then
    pip install -c packaging/constraints.txt --group test --group lint --group cov -e .
else
    pip install -c packaging/constraints.txt -e .
fi
touch "$stamp"
