#!/usr/bin/env bash
# heartbeat.sh: the old heartbeat, on top of hf-watchdog --every.
#
#   heartbeat.sh [-c FILE | FILE]                  run the watchdog until TERM or INT
#   heartbeat.sh --print-config [-c FILE | FILE]   print the old file as settings for hiveforge.config.yaml
#
# The old file is FILE, or heartbeat.conf in the current directory, or the one next to this script. It is
# parsed, never executed: six keys with whole numbers; anything else is reported and skipped.
#
# The vault's settings are authoritative: every command reads them, and agents can inspect them. So this
# script does not override them. If they differ from the old file, it refuses to start; copy the output of
# --print-config into the settings once, and the old file can be deleted.
set -euo pipefail

# Old key, setting, default. A test compares the defaults with those of the program.
table='
INTERVAL_SECONDS watchdog.interval_seconds 60
INACTIVITY_WARNING_THRESHOLD liveness.inactive_warn_seconds 300
INACTIVITY_STOP_THRESHOLD liveness.inactive_error_seconds 600
INTROSPECTION_THRESHOLD liveness.introspection_error_seconds 1800
MAX_RECOVERY_ATTEMPTS watchdog.max_recovery_attempts 3
MAX_RECOVERY_WAIT_CYCLES watchdog.recovery_wait_cycles 5
'

say() { printf 'heartbeat.sh: %s\n' "$*" >&2; }
usage() {
  say "usage: heartbeat.sh [--print-config] [-c FILE | FILE]"
  exit 2
}

print=no conf=
while [ $# -gt 0 ]; do
  case $1 in
    --print-config) print=yes ;;
    -c)
      [ $# -ge 2 ] && [ -z "$conf" ] && [ -n "$2" ] || usage
      conf=$2
      shift
      ;;
    -* | '') usage ;;
    *)
      [ -z "$conf" ] || usage
      conf=$1
      ;;
  esac
  shift
done
if [ -z "$conf" ]; then
  for conf in ./heartbeat.conf "$(dirname "$0")/heartbeat.conf" ''; do
    [ -z "$conf" ] || [ ! -e "$conf" ] || break
  done
elif [ ! -e "$conf" ]; then
  say "$conf not found"
  exit 2
fi
if [ -n "$conf" ] && { [ ! -f "$conf" ] || [ ! -r "$conf" ]; }; then
  say "$conf cannot be read"
  exit 2
fi

# Prints the old file as lines of "KEY VALUE". If a key occurs twice, the last line counts, as in a shell.
old() {
  [ -n "$conf" ] || return 0
  local number=0 line key value
  while IFS= read -r line || [ -n "$line" ]; do
    number=$((number + 1))
    line=${line%$'\r'}
    [[ ! $line =~ ^[[:space:]]*(#.*)?$ ]] || continue
    if [[ $line =~ ^[[:space:]]*(export[[:space:]]+)?([A-Z_]+)=([\"\']?)([0-9]{1,9})([\"\']?)[[:space:]]*(#.*)?$ ]] &&
      [ "${BASH_REMATCH[3]}" = "${BASH_REMATCH[5]}" ]; then
      key=${BASH_REMATCH[2]} value=$((10#${BASH_REMATCH[4]}))
      case $table in
        *$'\n'"$key "*)
          if [ "$value" -gt 0 ]; then
            echo "$key $value"
            continue
          fi
          ;;
      esac
    fi
    # Do not print the line itself: it may contain a secret.
    say "$conf:$number: skipped: must be one of the six keys with a whole number from 1 to 999999999"
  done <"$conf"
}

old=$(old)
wanted() { awk -v key="$1" '$1 == key { value = $2 } END { print value }' <<<"$old"; }

if [ "$print" = yes ]; then
  for section in liveness watchdog; do
    heading="$section:"$'\n'
    while read -r key setting _; do
      case $setting in "$section".*) value=$(wanted "$key") ;; *) value= ;; esac
      if [ -n "$value" ]; then
        printf '%s  %s: %s\n' "$heading" "${setting#*.}" "$value"
        heading=
      fi
    done <<<"$table"
  done
  exit 0
fi

# Find the vault as the commands do, then pass it to hf-watchdog, so that both use the same one.
vault=${HF_VAULT:-${HIVEFORGE_VAULT_PATH-}}
if [ -z "$vault" ]; then
  directory=$PWD
  while [ ! -d "$directory/Vault/Akashic" ] && [ -n "$directory" ]; do directory=${directory%/*}; done
  vault=$directory/Vault
fi
if [ ! -d "$vault/Akashic" ]; then
  say "no vault in this directory or above; set HF_VAULT"
  exit 7
fi
vault=$(cd "$vault" && pwd -P)
settings=$vault/hiveforge.config.yaml
[ -e "$settings" ] || settings=${vault%/*}/hiveforge.config.yaml
[ -e "$settings" ] || settings=/dev/null

# Prints the value of a setting: a number, nothing if it is not set, or ? if this script cannot parse it (it parses
# what --print-config prints, in any order and indentation).
given() { # SECTION.NAME
  awk -v section="${1%%.*}" -v name="${1#*.}" '
    /^[ \t]*(#|$)/ { next }
    { sub(/\r$/, "") }
    /^[^ \t]/ { here = $0; sub(/[ \t]*(#.*)?$/, "", here) }
    here == "agents:" { next }
    { text = $0; sub(/[ \t]#.*$/, "", text) }
    index(text, name) {
      plain = here == section ":" && text ~ ("^[ \t]+" name ":[ \t]+[0-9]+[ \t]*$")
      split(text, part, ":")
      value = plain && value == "" ? part[2] + 0 : "?"
    }
    END { print value }' "$settings"
}

every=
while read -r key setting default; do
  [ -n "$key" ] || continue
  wanted=$(wanted "$key") given=$(given "$setting")
  now=${given:-$default}
  if [ -n "$wanted" ] && [ "$now" != "$wanted" ]; then
    said="is $now"
    [ "$now" != '?' ] || said="cannot be read here"
    say "$conf says $key=$wanted, but $setting $said in the settings of $vault; add the output of heartbeat.sh --print-config to them"
    exit 3
  fi
  [ "$key" != INTERVAL_SECONDS ] || every=$now
done <<<"$table"
if [ "$every" = '?' ]; then
  say "watchdog.interval_seconds cannot be read in $settings; write it as heartbeat.sh --print-config prints it"
  exit 3
fi

# From here on hf-watchdog handles signals, and failed ticks too: it reports them and continues.
exec hf-watchdog --every "$every" --vault "$vault"
