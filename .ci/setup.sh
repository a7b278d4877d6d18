# Sourced by `run`, `test` and `.ci/run`: makes .venv and installs this project into it.

# Images of containers often forbid Python to keep what it compiled. The tests start hundreds of processes, and each would
# compile all the sources once more.
unset PYTHONDONTWRITEBYTECODE

say() { printf '%s\n' "$*" >&2; }

usable_pythons() { # The paths of all from 3.11 on, the newest first. $1: what they can import; $2: below which minor version
    for name in python3.14 python3.13 python3.12 python3.11 python3; do
        (
            IFS=:
            for folder in $PATH; do
                [ -x "$folder/$name" ] || continue
                "$folder/$name" -c "import sys, $1
(3, 11) <= sys.version_info < (3, $2) and print(sys.executable)" 2>/dev/null || true
            done
        )
    done | awk '!known[$0]++'
}

find_python() { # the one in PYTHON, or the fastest on the path
    if [ -n "${PYTHON:-}" ] && "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        printf '%s\n' "$PYTHON"
        return
    fi
    found=$(usable_pythons "venv, ensurepip" 14)
    [ -n "$found" ] || found=$(usable_pythons "venv, ensurepip" 99) # not all libraries may be there for so new a one
    [ -n "$found" ] || found=$(usable_pythons os 99)                # its part for environments will be installed
    if [ -z "$found" ]; then
        say "This needs Python 3.11 or later; none was found. Set PYTHON to its path if it is not on PATH."
        exit 2
    fi
    first=$(printf '%s\n' "$found" | head -n 1)
    [ "$first" != "$found" ] || { printf '%s\n' "$first"; return; }
    (
        IFS='
'
        set -f
        # shellcheck disable=SC2086 # a path on each line
        "$first" .ci/fastest.py $found 2>/dev/null || printf '%s\n' "$first"
    )
}

make_venv() { # a bare Debian or Ubuntu has python3 without the part of it that puts pip into environments
    "$1" -m venv .venv >/dev/null 2>&1 && return
    rm -rf .venv
    if "$1" -m venv --without-pip .venv >/dev/null 2>&1; then # a pip that is there already may install another
        "$1" -m pip --python .venv/bin/python install --quiet pip >/dev/null 2>&1 && return
        rm -rf .venv
    fi
    for maker in "$1 -m virtualenv" virtualenv "uv venv --quiet --seed"; do
        # shellcheck disable=SC2086 # a program and its options
        $maker --python "$1" .venv >/dev/null 2>&1 && [ -x .venv/bin/python ] && return
        rm -rf .venv
    done
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        say "python3-venv is missing; installing it ..."
        version=$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        { apt-get update -qq && apt-get install -qq -y "python$version-venv"; } >/dev/null 2>&1 \
            || apt-get install -qq -y python3-venv >/dev/null 2>&1 || true
        "$1" -m venv .venv >/dev/null 2>&1 && return
        rm -rf .venv
    fi
    say "$1 cannot make a virtual environment: it has no venv with ensurepip, and there is no pip, virtualenv or uv. On" \
        "Debian and Ubuntu: sudo apt-get install python3-venv"
    exit 2
}

why_not_installed() { # What pip says, in a line; it calls a package missing whenever it gets no answer about it
    if grep -qi 'CERTIFICATE_VERIFY_FAILED\|SSLCertVerificationError\|certificate verify failed' .venv/pip.log; then
        printf '%s' "the certificate of the package index is not trusted here; PIP_CERT=FILE names a file with the one that signs it"
    elif grep -qi 'NewConnectionError\|ConnectTimeoutError\|ReadTimeoutError\|NameResolutionError\|ProxyError' .venv/pip.log; then
        printf '%s' "the package index cannot be reached; PIP_INDEX_URL=URL names another, HTTPS_PROXY=URL a proxy"
    else
        said=$(grep '^ *ERROR' .venv/pip.log | tail -n 1) # pip indents what its own pip says
        printf '%s' "${said:-$(tail -n 1 .venv/pip.log)}" | sed 's/^ *//' | cut -c 1-200
    fi
}

set_up() { # $1: what to install, "." with or without extras
    if [ ! -w . ] && [ ! -x .venv/bin/kspec ]; then
        say "Cannot write into $PWD, where .venv is made: copy the repository to a folder of yours, or install it with pip"
        exit 2
    fi
    stamp=.venv/.installed-$(printf '%s' "$1" | tr -c 'a-z\n' '_')
    if [ ! -x .venv/bin/python ]; then
        python=$(find_python) || exit 2
        say "Setting up .venv with $("$python" --version) ..."
        make_venv "$python"
    fi
    if [ ! -f "$stamp" ] || [ pyproject.toml -nt "$stamp" ]; then
        say "Installing $1 ..."
        if ! .venv/bin/python -m pip install --quiet --disable-pip-version-check --editable "$1" >.venv/pip.log 2>&1; then
            say "Cannot install $1: $(why_not_installed) (all that pip says is in .venv/pip.log)"
            exit 2
        fi
        touch "$stamp"
    fi
}
