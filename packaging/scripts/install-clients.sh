#!/bin/sh
# Installs the real client programs that tests/real_clients drives, pinned, and
# tmux when it is missing and we may. Nothing here is needed to run the product.
#
#   packaging/scripts/install-clients.sh          into $AGENTWORKS_CLIENTS or .clients
#
# Only the vendors' native binaries are used, so no install script of theirs runs
# and the computer's node may be older than the packages ask for.
set -eu

claude_version=2.1.332
codex_version=0.171.0
attempts=4

checkout=$(cd "$(dirname "$0")/../.." && pwd)
folder=${AGENTWORKS_CLIENTS:-$checkout/.clients}
claude=$folder/node_modules/@anthropic-ai/claude-code-linux-x64/claude
codex=$folder/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex

say() { printf '%s\n' "install-clients: $*"; }
fail() { say "$*" >&2; exit 1; }

again() {
    attempt=1
    until "$@"; do
        [ "$attempt" -lt "$attempts" ] || fail "gave up after $attempts attempts: $*"
        say "attempt $attempt failed, again in $((attempt * 5)) s: $*"
        sleep "$((attempt * 5))"
        attempt=$((attempt + 1))
    done
}

install_tmux() {
    command -v tmux >/dev/null && return
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        fail "tmux is missing; install it with your package manager, then run this again"
    fi
    again apt-get update -qq
    again env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq tmux
}

version_of() {
    [ -x "$1" ] || return 0
    env -i HOME="$folder" PATH="$PATH" "$1" --version 2>/dev/null | tr -dc '0-9.'
}

installed() {
    [ "$(version_of "$claude")" = "$claude_version" ] &&
        [ "$(version_of "$codex")" = "$codex_version" ]
}

install_programs() {
    command -v npm >/dev/null || fail "npm is missing; install Node.js, then run this again"
    mkdir -p "$folder"
    [ -f "$folder/package.json" ] || printf '{"private":true}\n' >"$folder/package.json"
    # --force: the packages name a newer node than the binaries need.
    again npm install --prefix "$folder" --ignore-scripts --no-audit --no-fund \
        --save-exact --force --loglevel=error \
        "@anthropic-ai/claude-code@$claude_version" "@openai/codex@$codex_version"
}

case "$(uname -sm)" in
"Linux x86_64") ;;
*) fail "the pinned programs are for Linux on x86-64; this is $(uname -sm)" ;;
esac
install_tmux
installed || install_programs
installed || fail "the programs below $folder are not the pinned versions"
say "Claude Code $claude_version: $claude"
say "Codex $codex_version: $codex"
say "tmux $(tmux -V | tr -dc '0-9.')"
