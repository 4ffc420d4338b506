#!/usr/bin/env bash
# exec.sh: the old interface to jobs, on top of hf-job.
#
#   exec.sh --fire COMMAND [ARGUMENT]…   fires a job and prints the reply of hf-job (old callers read
#                                        TASK_ID); a single argument is run by sh -c
#   exec.sh --check TASK_ID              prints done, failed, processing, pending or not found
#
# Options of hf-job fire may come before the command, followed by --: exec.sh --fire --retries 2 -- make
set -uo pipefail

usage() {
  printf 'EXIT:64\nSTATUS:USAGE\nNEXT:NONE\nSUM:%s\n' "usage: exec.sh --fire COMMAND… | --check TASK_ID"
  exit 64
}

case ${1-} in
  --fire)
    shift
    [ $# -gt 0 ] || usage
    for word in "$@"; do
      # There is a --, so these are options and a command for hf-job.
      [ "$word" = -- ] && exec hf-job fire "$@"
    done
    [ $# -eq 1 ] && exec hf-job fire -- sh -c "$1"
    exec hf-job fire -- "$@"
    ;;
  --check)
    [ $# -eq 2 ] || usage
    reply=$(hf-job check "$2")
    case $(sed -n 's/^STATUS://p' <<<"$reply") in
      DONE) echo 'done' ;;
      FAIL | LOST)
        echo failed
        sed -n '/^LAST5:$/,/^LOGREF:/p' <<<"$reply" | sed '1d;/^LOGREF:/d' >&2
        ;;
      RUNNING | ORPHANED) echo processing ;;
      QUEUED) echo pending ;;
      NOT_FOUND) echo 'not found' ;;
      *)
        printf '%s\n' "$reply" >&2
        exit 1
        ;;
    esac
    ;;
  *) usage ;;
esac
