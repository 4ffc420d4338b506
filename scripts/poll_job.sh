#!/usr/bin/env bash
# poll_job.sh TASK_ID [POLL_INTERVAL] [MAX_SECONDS]: the old name of hf-poll.
#
# Prints the same four blocks, with this script in the ACTION line, and always exits 0. Signals go to hf-poll
# itself, which then prints the RUNNING block.
HF_POLL_AS=./poll_job.sh exec hf-poll "$@"
