#!/usr/bin/env bash
# heartbeat.sh: the old heartbeat for agents that write files into ai-works/, on top of hf-watchdog. Run it in the
# directory that has ai-works/, an old heartbeat.conf if there is one, and the agent in the tmux session "agent".
#
#   heartbeat.sh [run]            send heartbeats until INT, TERM or HUP
#   heartbeat.sh start            the same in the background
#   heartbeat.sh stop             stop it, and wait until it has stopped
#   heartbeat.sh restart          stop, then start
#   heartbeat.sh status           say whether it is running
#   heartbeat.sh --print-config   show what would be taken over from heartbeat.conf; changes nothing
#
#   -c FILE                       read FILE instead of heartbeat.conf
#   HF_TMUX_TARGET                the pane of the agent (default: agent); deliver-tmux describes it
#   HF_VAULT                      the vault; default: the nearest Vault/, and ./Vault is created if there is none
#
# The old file is parsed, never executed. Its keys become settings of the vault, as far as the vault does not set them
# itself; what differs is reported and stays. In a vault with adopted settings nothing is changed. MAX_LOG_DAYS is the
# one key for this script: when it starts, it deletes ai-works/logs/heartbeat_*.log older than that (default: 30).
#
# The agent is agent:main. Its silence counts from the start of the heartbeat, and nothing is expected of it after the
# end. One heartbeat runs per tree: it holds a lock on ai-works/stats/heartbeat.lock, and that file names its process.
#
# Exit codes: 0 done, or running; 1 not running (status), or hf-watchdog ended by itself; 2 usage; 3 the process that
# holds the lock cannot be stopped; 5 running already; 6 no ai-works/ here; 7 no vault in $HF_VAULT; 111 system error.
set -euo pipefail

tree=ai-works
lock=$tree/stats/heartbeat.lock
self=$(readlink -f -- "${BASH_SOURCE[0]}")
here=${self%/*}

say() { printf 'heartbeat.sh: %s\n' "$*" >&2; }
fail() { # CODE TEXT
  say "$2"
  exit "$1"
}
usage() { fail 2 "usage: heartbeat.sh [run | start | stop | restart | status | --print-config] [-c FILE]"; }

action='' conf=''
while [ $# -gt 0 ]; do
  case $1 in
    run | start | stop | restart | status | --print-config | --detached)
      [ -z "$action" ] || usage
      action=$1
      ;;
    -c)
      [ -z "$conf" ] || usage
      conf=${2-}
      [ -n "$conf" ] || usage
      shift
      ;;
    *) usage ;;
  esac
  shift
done
action=${action:-run}
if [ -n "$conf" ] && [ ! -e "$conf" ]; then
  fail 2 "$conf not found"
elif [ -z "$conf" ] && [ -e heartbeat.conf ]; then
  conf=heartbeat.conf
fi
if [ -n "$conf" ] && { [ ! -f "$conf" ] || [ ! -r "$conf" ]; }; then
  fail 2 "$conf cannot be read"
fi

# ---- The old file -------------------------------------------------------------------------------------------------

# Old key, smallest value, settings. A test compares the settings with those of the program.
table='
INTERVAL_SECONDS 1 watchdog.interval_seconds
INACTIVITY_WARNING_THRESHOLD 1 liveness.inactive_warn_seconds liveness.never_seen_warn_seconds
INACTIVITY_STOP_THRESHOLD 1 liveness.inactive_error_seconds liveness.never_seen_seconds
INTROSPECTION_THRESHOLD 1 liveness.introspection_error_seconds
MAX_RECOVERY_ATTEMPTS 0 watchdog.max_recovery_attempts
MAX_RECOVERY_WAIT_CYCLES 0 watchdog.recovery_wait_cycles
MONITORED_DIRS - liveness.log_dirs
MAX_LOG_DAYS 0 -
'
largest=999999999
declare -A smallest=() settings_of=()
while read -r key least names; do
  [ -n "$key" ] || continue
  smallest[$key]=$least
  settings_of[$key]=$names
done <<<"$table"

# What the file says: for each key that was taken over, its value, its line and its place in the report; the report;
# and every number, for arithmetic.
declare -A value_of=() line_of=() reported_in=() numbers=()
report=()

# Sets `value` to the number that a text stands for, or `why` to the reason why it is none. Names stand for numbers of
# earlier lines. Only digits, operators and parentheses reach bash's arithmetic, and too few of them to overflow.
number() { # TEXT
  local text=$1 rest name digits
  value='' why=''
  if [[ $text =~ ^\"([^\"]*)\"$ || $text =~ ^\'([0-9]*)\'$ ]]; then text=${BASH_REMATCH[1]}; fi
  if [[ $text =~ ^0*([0-9]{1,18})$ ]]; then
    value=$((10#${BASH_REMATCH[1]}))
    return
  elif [[ $text =~ ^[0-9]+$ ]]; then
    why="the number is too large"
    return
  elif [[ $text =~ ^\$\(\((.*)\)\)$ ]]; then
    text=${BASH_REMATCH[1]}
  elif [[ ! $text =~ ^\$\{?[A-Za-z_][A-Za-z0-9_]*\}?$ ]]; then
    why="neither a number nor plain arithmetic"
    return
  fi
  rest=${text//[A-Za-z0-9_ $'\t'+*\/%()\{\}\$-]/}
  if [ -n "$rest" ] || [ "${#text}" -gt 200 ] || [[ $text =~ (^|[^A-Za-z0-9_])[0-9]+[A-Za-z_] ]]; then
    why="neither a number nor plain arithmetic"
    return
  fi
  rest=''
  while [[ $text =~ ^([^A-Za-z_\$]*)(\$\{[A-Za-z_][A-Za-z0-9_]*\}|\$?[A-Za-z_][A-Za-z0-9_]*)(.*)$ ]]; do
    rest+=${BASH_REMATCH[1]} name=${BASH_REMATCH[2]} text=${BASH_REMATCH[3]}
    name=${name//[\$\{\}]/}
    if [ -z "${numbers[$name]-}" ]; then
      why="$name is not a number of an earlier line"
      return
    fi
    rest+=${numbers[$name]}
  done
  text=$rest$text
  digits=${text//[!0-9]/}
  if [ -z "$digits" ]; then
    why="neither a number nor plain arithmetic"
  elif [ "${#digits}" -gt 18 ]; then
    why="the numbers are too large"
  elif [[ $text =~ [^0-9+*/%()\ $'\t'-] || $text =~ \*\*|\+\+|-- || $text =~ (^|[^0-9])0[0-9] ]] ||
    ! value=$( (printf '%s' "$((text))") 2>/dev/null) || [ -z "$value" ]; then
    value='' why="neither a number nor plain arithmetic"
  fi
}

# Sets `value` to a JSON list of directories inside the tree, or `why`.
directories() { # TEXT, the words of the array
  local text=$1 word list='' bare='^([^][:space:]"'\''()$`\\;&|<>*?#~{}![]+)(.*)$'
  value='' why=''
  while :; do
    if [[ $text =~ ^[[:space:]]+(.*)$ ]]; then text=${BASH_REMATCH[1]}; fi
    [ -n "$text" ] || break
    if [[ $text =~ ^\"([^\"\$\`\\]*)\"(.*)$ || $text =~ ^\'([^\']*)\'(.*)$ || $text =~ $bare ]]; then
      word=${BASH_REMATCH[1]} text=${BASH_REMATCH[2]}
    else
      text='?' word=''
    fi
    if [ -n "$text" ] && [[ ! $text =~ ^[[:space:]] ]]; then
      why="not a plain list of directories"
      return
    fi
    while [[ $word == ./* || $word == */ ]]; do word=${word#./} word=${word%/}; done
    word=${word#"$tree/"}
    case /$word/ in
      // | //* | */../* | */./* | /"$tree"/ | *[[:cntrl:]]*)
        why="a directory must be inside $tree"
        return
        ;;
    esac
    word=${word//\\/\\\\}
    list+=${list:+,}\"${word//\"/\\\"}\"
  done
  [ -n "$list" ] || why="no directory in the list"
  value="[$list]"
}

# Takes one assignment.
assign() { # LINE KEY TEXT
  local at=$1 key=$2 text=$3 into
  unset "numbers[$key]"
  if [ "$key" = MONITORED_DIRS ]; then
    if [[ $text =~ ^\((.*)\)$ ]]; then directories "${BASH_REMATCH[1]}"; else directories "$text"; fi
  else
    number "$text"
    [ -z "$value" ] || [ "$value" -lt 0 ] || numbers[$key]=$value
  fi
  # The value of an unknown key is never shown: it may be a secret.
  if [ -z "${settings_of[$key]-}" ]; then
    report+=("line $at: not taken over: $key is unknown")
    return
  elif [ -z "$why" ] && [ "$key" != MONITORED_DIRS ] &&
    { [ "$value" -lt "${smallest[$key]}" ] || [ "$value" -gt $largest ]; }; then
    why="must be from ${smallest[$key]} to $largest"
  fi
  if [ -n "$why" ]; then
    report+=("line $at: not taken over: $key: $why")
    return
  fi
  if [ -n "${line_of[$key]-}" ]; then
    report[${reported_in[$key]}]="line ${line_of[$key]}: $key=${value_of[$key]}, replaced in line $at"
  fi
  value_of[$key]=$value line_of[$key]=$at reported_in[$key]=${#report[@]}
  into=''
  for name in ${settings_of[$key]}; do into+="${into:+, }$name: $value"; done
  [ "$key" != MAX_LOG_DAYS ] || into="heartbeat.sh deletes its logs after that many days"
  report+=("line $at: $key=$value => $into")
}

# Reads the file. If a key occurs twice, the last line counts, as in a shell.
read_conf() {
  local LC_ALL=C
  local at=0 first line key text open='' name value why
  local assignment='^[[:space:]]*((export|readonly)[[:space:]]+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$'
  local plain='^("[^"]*"|'\''[^'\'']*'\''|\$\(\([^"'\''`#;]*\)\)|[^[:space:]"'\''`#;()]*)([[:space:]]+#.*|[[:space:]]*)$'
  local comment='^(([^"'\''#]|"[^"]*"|'\''[^'\'']*'\'')*[[:space:]])?#'
  [ -n "$conf" ] || return 0
  while IFS= read -r line || [ -n "$line" ]; do
    at=$((at + 1))
    line=${line%$'\r'}
    if [ -n "$open" ]; then
      # The next line of an array.
      if [[ $line =~ $comment ]]; then line=${BASH_REMATCH[1]}; fi
      text+=" $line"
    elif [[ $line =~ ^[[:space:]]*(#.*)?$ ]]; then
      continue
    elif [[ $line =~ $assignment ]]; then
      first=$at key=${BASH_REMATCH[3]} text=${BASH_REMATCH[4]}
      if [[ $text == \(* ]]; then
        if [[ $text =~ $comment ]]; then text=${BASH_REMATCH[1]}; fi
        open=yes
      elif [[ $text =~ $plain ]]; then
        assign "$at" "$key" "${BASH_REMATCH[1]}"
        continue
      else
        # Not printed, because it may contain a secret; read as a value that is none.
        assign "$at" "$key" '?'
        continue
      fi
    else
      report+=("line $at: not taken over: not an assignment")
      continue
    fi
    if [[ $text =~ ^(\([^\)]*\))[[:space:]]*$ ]]; then
      open=''
      assign "$first" "$key" "${BASH_REMATCH[1]}"
    elif [[ $text == *\)* ]] || [ $((at - first)) -ge 100 ]; then
      open=''
      assign "$first" "$key" '?'
    fi
  done <"$conf"
  [ -z "$open" ] || assign "$first" "$key" '?'
}

# ---- Settings -----------------------------------------------------------------------------------------------------

# A path as one word for sh.
word() { printf "'%s'" "${1//\'/\'\\\'\'}"; }

# A hook script: next to this one, or where scripts/install puts it.
hook_script() { # NAME
  local command place
  command=$(command -v hf-watchdog) || command=$here/none
  for place in "$here" "$(dirname -- "$(readlink -f -- "$command")")/../share/hiveforge"; do
    [ -x "$place/$1" ] || continue
    (cd "$place" && printf '%s/%s' "$(pwd -P)" "$1")
    return
  done
}

# Sets `names` and `wanted` to the settings that this heartbeat needs, and `origin` to what each comes from.
names=() wanted=() origin=()
want() { # NAME VALUE ORIGIN
  names+=("$1") wanted+=("$2") origin+=("$3")
}
collect() {
  local key name hook path
  while read -r key _; do
    if [ -z "$key" ] || [ -z "${value_of[$key]-}" ] || [ "$key" = MAX_LOG_DAYS ]; then continue; fi
    for name in ${settings_of[$key]}; do
      want "$name" "${value_of[$key]}" "$conf:${line_of[$key]}: $key=${value_of[$key]}"
    done
  done <<<"$table"
  want liveness.works_dir "$PWD/$tree" "$tree"
  want liveness.timezone local "ids of $tree are in local time"
  for hook in on_beat:deliver-tmux on_anomaly:kick-tmux on_giving_up:kick-tmux; do
    path=$(hook_script "${hook#*:}")
    if [ -z "$path" ]; then
      say "${hook#*:} not found next to this script; watchdog.hooks.${hook%%:*} is not set"
      continue
    fi
    # shellcheck disable=SC2016 # expanded by the shell of the hook
    want "watchdog.hooks.${hook%%:*}" 'HF_TMUX_AGENT=main HF_TMUX_TARGET="${HF_TMUX_TARGET:-agent}" '"$(word "$path")" hook
  done
}

# A value for YAML: numbers and lists as they are, anything else in double quotes.
yaml() { # VALUE
  local text=$1
  if [[ $text =~ ^[0-9]+$ || $text == \[* ]]; then
    printf '%s' "$text"
  else
    text=${text//\\/\\\\} text=${text//\"/\\\"} text=${text//$'\t'/\\t} text=${text//$'\n'/\\n}
    printf '"%s"' "$text"
  fi
}

print_config() {
  local section i name heading hooks line
  printf '# %s\n' "${conf:-heartbeat.conf not found; all values are the defaults}"
  for line in "${report[@]}"; do printf '# %s\n' "$line"; done
  for section in liveness watchdog; do
    heading=$section: hooks='  hooks:'
    for i in "${!names[@]}"; do
      name=${names[i]}
      [[ $name == "$section".* ]] || continue
      [ -z "$heading" ] || printf '%s\n' "$heading"
      heading=''
      name=${name#*.}
      if [[ $name == hooks.* ]]; then
        [ -z "$hooks" ] || printf '%s\n' "$hooks"
        hooks='' name="  ${name#*.}"
      fi
      printf '  %s: %s\n' "$name" "$(yaml "${wanted[i]}")"
    done
  done
}

# Reads the settings in force. Fails if they cannot be read.
declare -A in_force=() source_of=()
strict=no
read_settings() {
  local line key value
  settings=$(hf-config show 9>&-) || return 1
  while IFS= read -r line; do
    key=${line%%:*} value=${line#*:}
    case $key in
      SETTINGS) [ "$value" != ADOPTED ] || strict=yes ;;
      SETTING)
        line=${value#* }
        source_of[${value%% *}]=${line%% *}
        in_force[${value%% *}]=${line#* }
        ;;
    esac
  done <<<"$settings"
}

# The SUM of a reply.
sum() { sed -n 's/^SUM://p' <<<"$1"; }

# Whether a path in the settings is the tree.
is_tree() { # PATH, relative to the vault
  [ -n "$vault" ] && (cd "$vault" && [ "$1" -ef "$folder/$tree" ])
}

# Puts into the vault's settings what they do not set themselves.
take_over() {
  local i name value shown now count=0 reply
  if ! read_settings; then
    log WARNING "the settings cannot be read, so nothing is taken over: $(sum "$settings")"
    return
  fi
  for i in "${!names[@]}"; do
    name=${names[i]} value=${wanted[i]} now=${in_force[${names[i]}]-}
    # A reply escapes backslashes.
    shown=${value//\\/\\\\}
    if [ -z "${source_of[$name]-}" ]; then
      log WARNING "this version has no setting $name; not taken over (${origin[i]})"
    elif [ "$now" = "$shown" ] && { [ $strict = yes ] || [ "${source_of[$name]}" != default ]; }; then
      continue
    elif [ "${source_of[$name]}" = default ] && [ $strict = no ]; then
      if reply=$(hf-config set "$name" "$value" 2>/dev/null 9>&-); then
        count=$((count + 1))
        in_force[$name]=$value
      else
        log WARNING "$name could not be set (${origin[i]}): $(sum "$reply")"
      fi
    elif [ "${origin[i]}" = hook ]; then
      [ "${source_of[$name]}" != default ] || log WARNING "settings are adopted, and $name is not set in them"
    elif [ "$name" = liveness.works_dir ] && is_tree "$now"; then
      continue
    else
      log WARNING "$name is $now in the settings of the vault, and stays so (${origin[i]})"
    fi
  done
  [ $count = 0 ] || log NOTICE "settings added to the vault: $count (hf-config show lists all)"
}

# ---- One heartbeat per tree -----------------------------------------------------------------------------------------

folder=$(pwd -P)
cd "$folder"

# When a process was started: field 22 of its stat, after the name in parentheses, which may contain anything.
started_at() { # PID
  local stat
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  read -r -a stat <<<"${stat##*) }"
  echo "${stat[19]}"
}

# Whether a heartbeat is running: the lock is held.
is_running() {
  local rc=0
  [ -f "$lock" ] || return 1
  flock -n -E 75 "$lock" true || rc=$?
  [ $rc = 75 ]
}

# A line of the lock file, which others may have written to.
told() { sed -n "s/^$1://p" "$lock" 2>/dev/null | head -n 1 | tr -d '\000-\037\177'; }

# Sets `pid` to the process that holds the lock. The file may be old or made up, so this checks that the process was
# started when the file says, and has the lock file open.
find_holder() {
  local file
  for _ in {1..50}; do
    pid=$(told PID)
    if [[ $pid =~ ^[0-9]{1,9}$ ]] && [ "$(started_at "$pid")" = "$(told STARTED)" ]; then
      for file in "/proc/$pid/fd/"*; do
        [ ! "$file" -ef "$lock" ] || return 0
      done
    fi
    # It has just taken the lock, or is about to release it.
    is_running || return 1
    sleep 0.02
  done
  return 1
}

take_lock() {
  [ -d "$tree" ] || fail 6 "no $tree here; run it in the directory that has $tree"
  mkdir -p "$tree/stats" "$tree/logs"
  for file in "$lock" "$tree/stats" "$tree/logs"; do
    [ ! -L "$file" ] || fail 3 "$file is a symbolic link"
  done
  exec 9<>"$lock"
  # A status that looks at the lock holds it for a moment.
  if ! flock -w 1 9; then
    pid=$(told PID)
    fail 5 "running already${pid:+ (pid $pid, since $(told SINCE))}"
  fi
  : >"$lock"
  printf 'PID:%s\nSTARTED:%s\nSINCE:%(%F %T)T\n' "$$" "$(started_at "$$")" -1 >"$lock"
}

# ---- The log --------------------------------------------------------------------------------------------------------

log() { # LEVEL TEXT
  local line
  printf -v line '[%(%F %T)T] [%s] %s' -1 "$1" "$2"
  printf '%s\n' "$line" >>"$log_file" || :
  printf '%s\n' "$line" || :
}

# What the previous and the current report say: a finding as "CODE subject", with the file or hook that it is about if
# there is one, and its level. Agents to which no heartbeats are sent, because a recovery is waited for or was given up,
# and the number of attempts.
declare -A before=() found=() text_of=() held=() tries=()
code='' id='' status=''

level_of() { # LEVEL OF A FINDING
  case $1 in
    error) echo ERROR ;;
    warn) echo WARNING ;;
    *) echo NOTICE ;;
  esac
}

# Writes the log of a tick that is complete.
log_tick() {
  local finding subject
  for finding in "${!before[@]}"; do
    if [ -z "${found[$finding]-}" ]; then log NOTICE "$finding is over"; fi
  done
  for subject in "${!held[@]}"; do
    for finding in "${!found[@]}"; do
      # Only an error is recovered from.
      [[ "${found[$finding]} $finding " != "error "*" $subject "* ]] || continue 2
    done
    unset "held[$subject]" "tries[$subject]"
  done
  for finding in "${order[@]}"; do
    [ "${before[$finding]-}" = "${found[$finding]}" ] || log "$(level_of "${found[$finding]}")" "${text_of[$finding]}"
  done
  before=()
  for finding in "${!found[@]}"; do before[$finding]=${found[$finding]}; done
}

# Takes one line of the watchdog's reports. Sets `code` to - when a report is complete.
take() { # LINE
  local key=${1%%:*} value=${1#*:} rest subject level seconds finding
  case $key in
    EXIT) code=$value id='' status='' found=() text_of=() order=() did=() ;;
    STATUS) status=$value ;;
    SUM)
      # The answers 0 and 1 are reports; anything else is an error of the tick.
      if [[ $code != [01] ]]; then
        log ERROR "the watchdog could not check: $value ($status)"
        code=-
      fi
      ;;
    HEARTBEAT_ID) id=$value ;;
    ANOMALY)
      read -r rest subject level seconds value <<<"$value"
      finding="$rest $subject${value:+ ${value%%:*}}"
      found[$finding]=$level order+=("$finding")
      case $rest:$seconds in
        *:0) rest+=" $subject" ;;
        RUNAWAY:*) rest+=" $subject, $seconds events" ;;
        *) rest+=" $subject for $seconds s" ;;
      esac
      text_of[$finding]="$rest${value:+: $value}"
      ;;
    DID) did+=("$value") ;;
    TICK_MS)
      log_tick
      for rest in "${did[@]}"; do
        subject=${rest#* }
        case $rest in
          RecoveryAttempted\ *)
            held[$subject]=waits
            tries[$subject]=$((${tries[$subject]-0} + 1))
            log WARNING "recovery of $subject, try ${tries[$subject]} of ${in_force[watchdog.max_recovery_attempts]-?}; heartbeats are held back"
            ;;
          EscalationRequired\ agent:*)
            held[$subject]=gave-up
            log ERROR "gave up on $subject; escalated to an operator (hf-status)"
            ;;
        esac
      done
      rest="${!held[*]}"
      log HEARTBEAT "Heartbeat: $id $status${rest:+, held back for $rest}"
      code=-
      ;;
    NEXT | ADVICE) ;;
    # Warnings of the watchdog, on its standard error.
    *) [ -z "$1" ] || [[ $key =~ ^[A-Z][A-Z0-9_]*$ ]] || log WARNING "$1" ;;
  esac
}

# ---- Running --------------------------------------------------------------------------------------------------------

# Records that the agent started or stopped. A refusal, such as that of an emergency stop, does not end the heartbeat.
record() { # EVENT REASON
  local reply
  if ! reply=$(hf-append "$1" --subject agent:main --payload "{\"reason\":\"$2\"}" 2>/dev/null 9>&-); then
    log WARNING "$1 of agent:main was not recorded: $(sum "$reply")"
  fi
}

need() { # COMMAND
  command -v "$1" >/dev/null || fail 111 "$1 not found"
}

# The vault, as the commands find it; empty if only they can tell.
find_vault() {
  local directory=$PWD
  vault=${HF_VAULT:-${HIVEFORGE_VAULT_PATH-}}
  if [ -n "$vault" ]; then
    [ -d "$vault/Akashic" ] || fail 7 "no vault in $vault; create it with hf-init"
    vault=$(cd "$vault" && pwd -P)
  else
    while [ ! -d "$directory/Vault/Akashic" ] && [ -n "$directory" ]; do directory=${directory%/*}; done
    [ ! -d "$directory/Vault/Akashic" ] || vault=$directory/Vault
  fi
}

ending='' watchdog=''
end() { # SIGNAL
  ending=$1
  [ -z "$watchdog" ] || kill -TERM "$watchdog" 2>/dev/null || :
}

run() {
  local start rc=0 reply='' every under=() line first=yes part='' days
  need flock
  need hf-watchdog
  take_lock
  trap 'end INT' INT
  trap 'end TERM' TERM
  trap 'end HUP' HUP
  printf -v start '%(%Y%m%d%H%M%S)T' -1
  log_file=$tree/logs/heartbeat_$start.log
  [ ! -L "$log_file" ] || fail 3 "$log_file is a symbolic link"
  days=${value_of[MAX_LOG_DAYS]-30}
  find "$tree/logs" -maxdepth 1 -type f -name 'heartbeat_*.log' -mmin "+$((days * 1440))" -delete 9>&- || :
  find_vault
  [ -n "$vault" ] || reply=$(hf-config show 2>/dev/null 9>&-) || :
  if [ "${reply%%$'\n'*}" = EXIT:7 ]; then
    reply=$(hf-init "$PWD/Vault" 9>&-) || fail 111 "the vault could not be created: $(sum "$reply")"
    vault=$PWD/Vault
    log NOTICE "created the vault $vault"
  fi
  printf 'VAULT:%s\nLOG:%s\n' "${vault:-named in hiveforge.config.yaml}" "$log_file" >>"$lock"
  for line in "${report[@]}"; do
    case $line in *'not taken over'*) log WARNING "$conf, $line" ;; esac
  done
  take_over
  every=${in_force[watchdog.interval_seconds]-${value_of[INTERVAL_SECONDS]-60}}
  log NOTICE "heartbeat started: pid $$, every $every s, $PWD/$tree, vault ${vault:-named in hiveforge.config.yaml}"
  # If the agent was watched before, its silence counts from here on.
  case $(hf-append AgentStopped --subject agent:main --dry-run 2>/dev/null 9>&- || :) in
    *$'\n'STATUS:VALID$'\n'*) record AgentStopped "the heartbeat starts again" ;;
  esac
  record AgentStarted "the heartbeat starts"
  if [ -z "$ending" ]; then
    # If this script is killed, the watchdog ends as well. It must not hold the lock: its hooks would inherit it.
    ! setpriv --pdeathsig TERM true 2>/dev/null || under=(setpriv --pdeathsig TERM)
    exec 8< <(exec "${under[@]}" hf-watchdog --every "$every" --works "$PWD/$tree" 2>&1 9>&-)
    watchdog=$!
    [ -z "$ending" ] || end "$ending"
    while :; do
      # A signal that comes just before read blocks is noticed when read returns, so it returns every second.
      if IFS= read -r -t 1 line <&8; then
        take "$part$line"
        part=''
      elif [ $? -gt 128 ]; then
        part+=$line
      else
        break
      fi
      if [ "$code$first" = -yes ]; then
        first=no
        [ "$action" != --detached ] || detach
      fi
    done
    wait "$watchdog" || rc=$?
  fi
  if [ -n "$ending" ]; then
    record AgentStopped "the heartbeat stopped"
    log NOTICE "heartbeat stopped"
    : >"$lock"
    exit 0
  fi
  log ERROR "hf-watchdog ended with exit code $rc"
  : >"$lock"
  exit 1
}

# The background process is up: from here on only the log is written.
detach() {
  echo READY
  exec >/dev/null 2>&1
}

start() {
  local line ready=no code=0 args=()
  need setsid
  [ -z "$conf" ] || args=(-c "$conf")
  exec 8< <(exec setsid "$BASH" "$self" --detached "${args[@]}" </dev/null 2>&1)
  while IFS= read -r line <&8; do
    case $line in
      READY)
        ready=yes
        break
        ;;
      'heartbeat.sh: '*) printf '%s\n' "$line" >&2 ;;
      *) printf '%s\n' "$line" ;;
    esac
  done
  if [ $ready = no ]; then
    wait $! || code=$?
    [ $code != 0 ] || code=1
    exit $code
  fi
}

stop() {
  if ! is_running; then
    echo "not running"
    return
  fi
  find_holder || fail 3 "$lock is held, but by another process than it names; nothing was stopped"
  kill -TERM "$pid"
  # The last tick may still wait for its hooks.
  flock -w 120 "$lock" true || fail 3 "pid $pid did not stop within 120 s"
  echo "stopped (pid $pid)"
}

status() {
  local last
  if ! is_running; then
    echo "not running"
    exit 1
  fi
  last=$(head -c 14 "$tree/stats/current_heartbeat_id.txt" 2>/dev/null | tr -cd 0-9) || last=''
  echo "running since $(told SINCE), pid $(told PID)"
  echo "vault: $(told VAULT)"
  echo "log: $(told LOG)"
  echo "last heartbeat: ${last:-none}"
}

# The commands may be installed next to share/hiveforge, and not in the PATH.
if ! command -v hf-watchdog >/dev/null && [ -x "$here/../../bin/hf-watchdog" ]; then
  PATH=$PATH:$(cd "$here/../../bin" && pwd -P)
fi
case $action in
  run | --detached | --print-config)
    read_conf
    collect
    ;;
esac
case $action in
  --print-config) print_config ;;
  run | --detached) run ;;
  start) start ;;
  stop | restart | status)
    [ -d "$tree" ] || fail 6 "no $tree here; run it in the directory that has $tree"
    need flock
    ${action/restart/stop}
    [ "$action" != restart ] || start
    ;;
esac
