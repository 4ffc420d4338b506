#!/usr/bin/env bash
# poll_job.sh TASK_ID [POLL_INTERVAL] [MAX_SECONDS]: the old name of hf-poll.
#
# Prints the same four blocks, with the name that this script was called by in the ACTION line, and always exits 0.
# Signals go to hf-poll itself, which then prints the RUNNING block.
name=$0
# `bash poll_job.sh` finds it here, where its bare name is no command.
case $name in
  */*) ;;
  *) [ -e "$name" ] && name=./$name ;;
esac
HF_POLL_AS=$name exec hf-poll "$@"
