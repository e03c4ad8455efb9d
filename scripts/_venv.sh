# Sourced by scripts/demo and scripts/test: finds a Python, makes .venv in the clone, installs flyllvm into it.
#
#   flyllvm_venv run    the package and what it needs
#   flyllvm_venv dev    the same with the test tools
#
# Sets `root` (the clone) and `python` (the interpreter in .venv).  Reuses .venv while pyproject.toml, the place of the
# clone and the interpreter are unchanged.  PYTHON=/path/to/python overrides the search.

die() {
    printf '%s\n' "error: $*" >&2
    exit 2
}

# True if $1 is a Python that can run flyllvm and make an environment.  It is run, not only looked up: the shims of
# version managers are on PATH for versions that they refuse to start.
usable_python() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        usable_python "$PYTHON" || die "PYTHON=$PYTHON is not a Python 3.11 or newer with the venv module."
        base_python=$PYTHON
        return
    fi
    for base_python in python3 python3.13 python3.12 python3.11 python3.14 python; do
        if usable_python "$base_python"; then return; fi
    done
    die "flyllvm needs Python 3.11 or newer with its venv module, and none is on PATH." \
        "Install one (Debian and Ubuntu: python3 and python3-venv), or set PYTHON=/path/to/python3.11."
}

# Runs a command in silence; shows all it said if it fails.
quietly() {
    if ! quiet_output=$("$@" 2>&1); then
        printf '%s\n' "$quiet_output" >&2
        die "this command failed: $*"
    fi
}

# What .venv depends on, as one hash.
venv_stamp() {
    "$base_python" -c '
import hashlib, sys
text = open(sys.argv[1], "rb").read() + repr((sys.argv[1], sys.version, sys.base_prefix)).encode()
print(hashlib.sha256(text).hexdigest())' "$root/pyproject.toml"
}

# True if .venv was made from what is here now.  The test environment serves the demo too.
venv_is_current() {
    if [ "$1" = run ]; then kinds="run dev"; else kinds=$1; fi
    for kind in $kinds; do
        if [ "$(cat "$root/.venv/flyllvm-$kind" 2>/dev/null)" = "$stamp" ] && usable_python "$python"; then return 0; fi
    done
    return 1
}

flyllvm_venv() {
    root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P) || die "cannot find the clone from $0"
    python=$root/.venv/bin/python
    find_python
    stamp=$(venv_stamp) || die "cannot read $root/pyproject.toml"
    if ! venv_is_current "$1"; then renew_venv "$1"; fi
    # Where PYTHONDONTWRITEBYTECODE is set, every start would compile all of flyllvm again.
    "$python" -m compileall -q "$root/flyllvm" >/dev/null 2>&1 || true
}

renew_venv() {
    [ -w "$root" ] || die "$root is not writable, and .venv must be made there."
    # Two scripts started together would install into the same directory at once.
    if command -v flock >/dev/null 2>&1; then
        exec 9>"$root/.venv.lock"
        flock 9
    fi
    if ! venv_is_current "$1"; then
        printf '%s\n' "Making $root/.venv (first time, or pyproject.toml changed; a minute or so)" >&2
        make_venv "$1"
    fi
    exec 9>&-
}

make_venv() {
    if ! usable_python "$python" || ! "$python" -c 'import pip' >/dev/null 2>&1; then
        quietly "$base_python" -m venv --clear "$root/.venv"
    fi
    rm -f "$root/.venv/flyllvm-run" "$root/.venv/flyllvm-dev"
    if [ "$1" = dev ]; then package="$root[dev]"; else package=$root; fi
    # compat: the clone on the import path. The default is an import hook that costs every start of Python 15 ms.
    quietly "$python" -m pip install --quiet --disable-pip-version-check --no-input \
        --config-settings editable_mode=compat -e "$package"
    printf '%s\n' "$stamp" >"$root/.venv/flyllvm-$1"
}
