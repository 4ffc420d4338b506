#!/usr/bin/env bash
# heartbeat.sh: the old heartbeat, on top of hf-watchdog --every.
#
#   heartbeat.sh [-c FILE | FILE]                  look, for ever; TERM or INT ends it
#   heartbeat.sh --print-config [-c FILE | FILE]   what the old file says, as hiveforge.config.yaml says it
#
# The old file is FILE, else heartbeat.conf in the current folder, else the one beside this script. It is
# read, never run: six keys, whole numbers; anything else is reported and skipped.
#
# The settings of the vault are the only truth: every command reads them, and an agent can look at them.
# So nothing is handed over behind their back. If they say something else than the old file, this
# script refuses to start; put in what --print-config prints, once, and the old file may go.
set -euo pipefail

# Old key, setting, its default. A test compares the defaults with those of the program.
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
  say "there is no $conf"
  exit 2
fi
if [ -n "$conf" ] && { [ ! -f "$conf" ] || [ ! -r "$conf" ]; }; then
  say "$conf cannot be read"
  exit 2
fi

# Lines "KEY VALUE" of what the old file says; the last line of a key counts, as in a shell.
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
    # Not the line itself: it may hold a secret.
    say "$conf:$number: skipped, it is not one of the six keys with a whole number from 1 to 999999999"
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

# The vault, as the commands find it; they are then told, so that both look at the same one.
vault=${HF_VAULT:-${HIVEFORGE_VAULT_PATH-}}
if [ -z "$vault" ]; then
  folder=$PWD
  while [ ! -d "$folder/Vault/Akashic" ] && [ -n "$folder" ]; do folder=${folder%/*}; done
  vault=$folder/Vault
fi
if [ ! -d "$vault/Akashic" ]; then
  say "there is no vault here or in a folder above; name it with HF_VAULT"
  exit 7
fi
vault=$(cd "$vault" && pwd -P)
settings=$vault/hiveforge.config.yaml
[ -e "$settings" ] || settings=${vault%/*}/hiveforge.config.yaml
[ -e "$settings" ] || settings=/dev/null

# What the settings say: the number, nothing if they are silent, ? if it stands there in a way that this
# script does not read (it reads what --print-config prints, in any order and indentation).
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
    say "$conf says $key=$wanted, but $setting $said in the settings of $vault: put in what heartbeat.sh --print-config prints"
    exit 3
  fi
  [ "$key" != INTERVAL_SECONDS ] || every=$now
done <<<"$table"
if [ "$every" = '?' ]; then
  say "watchdog.interval_seconds cannot be read in $settings: write it as heartbeat.sh --print-config does"
  exit 3
fi

# From here on signals are its own business, and so is a look that fails: it says so and goes on.
exec hf-watchdog --every "$every" --vault "$vault"
