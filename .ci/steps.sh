# What .ci/run and .ci/nightly share: steps with a summary, in copies of the checkout.
# shellcheck shell=bash
set -euo pipefail

# pytest runs one process per core; more threads would only contend.
export OMP_NUM_THREADS=1
# Compiling every module anew in every process takes longer than many a test.
unset PYTHONDONTWRITEBYTECODE
# pip would compile every module of every package, most of which nobody imports here: a minute and
# a half of a core for each environment. (pip reads "no" as: do not compile.)
export PIP_NO_COMPILE=no

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
copy=$work/checkout
first=$work/first
second=$work/second
first_python=$first/.venv/bin/python
second_python=$second/.venv/bin/python
# All extras but diffprivlib, which the newest scikit-learn does not suit.
second_extras=test,dask,ray,nn,ebm,pareto,plot,postgresql,docs
summary=()
status=0

clean_up() {
    # shellcheck disable=SC2046
    kill $(jobs -p) 2>/dev/null || true
    rm -rf "$work"
}
trap clean_up EXIT

# Runs a command under a title, whatever became of the steps before it.
step() {
    local title=$1 start=$SECONDS verdict=passed
    shift
    printf '\n===== %s\n' "$title"
    # A plain `if` would switch `set -e` off inside the step.
    set +e
    (
        set -e
        "$@"
    ) </dev/null
    if (($? != 0)); then
        verdict=FAILED
        status=1
    fi
    set -e
    summary+=("$(printf '%-7s %4d s  %s' "$verdict" $((SECONDS - start)) "$title")")
    printf -- '----- %s: %s in %d s\n' "$title" "$verdict" $((SECONDS - start))
}

# Prints what became of all steps; its status is that of the run.
print_summary() {
    printf '\n===== summary\n'
    printf '%s\n' "${summary[@]}" "        $SECONDS s  in all"
    return "$status"
}

copy_checkout() {
    mkdir -p "$copy"
    cd "$root"
    git ls-files -z --cached --others --exclude-standard |
        while IFS= read -r -d '' file; do
            # A file deleted but not yet committed is still listed.
            if [[ -e $file ]]; then printf '%s\0' "$file"; fi
        done | tar --null --files-from - --create --file - | tar -x -C "$copy" -f -
}

# A leg must be what it claims to be: the environment holds what the file pins.
require_pin() {
    local python=$1 constraints=$2 name=$3 pin
    pin=$(grep -i "^$name==" "$constraints")
    "$python" -m pip freeze --all | grep -ixF "$pin"
}

# Installs packages of Debian where that can be done, as root or by sudo.
install_packages() {
    if command -v apt-get >/dev/null; then
        local as_root=()
        if ((EUID != 0)); then as_root=(sudo -n); fi
        "${as_root[@]}" apt-get -qq update
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
            apt-get -qq install --yes --no-install-recommends "$@"
    fi
}

# A server of PostgreSQL, which the tests start by themselves; from Debian's packages if need be.
install_postgresql() {
    has_postgresql || install_packages postgresql
    if ! has_postgresql; then
        echo "Tests of ledgers on a server need PostgreSQL: apt-get install postgresql" >&2
        exit 1
    fi
}

has_postgresql() {
    compgen -G '/usr/lib/postgresql/*/bin/initdb' || command -v initdb
}

# A browser, in which the tests of the site open its pages.
install_chromium() {
    has_chromium || install_packages chromium fonts-dejavu-core
    if ! has_chromium; then
        echo "Tests of the site's pages need Chromium: apt-get install chromium" >&2
        exit 1
    fi
}

has_chromium() {
    command -v chromium || command -v chromium-browser || command -v google-chrome
}

# The built wheel with the newest scikit-learn; beside it all of the checkout but the package's
# source, so that tests and doctests can only see the wheel.
install_second_leg() {
    mkdir -p "$second"
    tar -C "$copy" --exclude=./skdptune -c -f - . | tar -x -C "$second" -f -
    cd "$copy"
    python3 -m venv "$second/.venv"
    "$second_python" -m pip wheel --quiet --no-deps --wheel-dir "$work/wheels" .
    "$second_python" -m pip install --quiet -c constraints-newest.txt \
        "skdptune[$second_extras] @ file://$(echo "$work"/wheels/skdptune-*.whl)"
    "$second_python" -m pip check
    require_pin "$second_python" constraints-newest.txt scikit-learn
    if "$second_python" -c "import diffprivlib" 2>/dev/null; then
        echo "diffprivlib must not be here." >&2
        exit 1
    fi
}
