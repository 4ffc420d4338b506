# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_hf_job_global_optspecs
    string join \n key= project= actor= vault= json lock-timeout= h/help V/version
end

function __fish_hf_job_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_hf_job_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_hf_job_using_subcommand
    set -l cmd (__fish_hf_job_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c hf-job -n "__fish_hf_job_needs_command" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-job -n "__fish_hf_job_needs_command" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-job -n "__fish_hf_job_needs_command" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-job -n "__fish_hf_job_needs_command" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-job -n "__fish_hf_job_needs_command" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-job -n "__fish_hf_job_needs_command" -l json -d 'Reply with one JSON object'
complete -c hf-job -n "__fish_hf_job_needs_command" -s h -l help -d 'Print help'
complete -c hf-job -n "__fish_hf_job_needs_command" -s V -l version -d 'Print version'
complete -c hf-job -n "__fish_hf_job_needs_command" -f -a "fire" -d 'Fire a command and return at once'
complete -c hf-job -n "__fish_hf_job_needs_command" -f -a "check" -d 'Say how a job stands'
complete -c hf-job -n "__fish_hf_job_needs_command" -f -a "list" -d 'List jobs, newest first'
complete -c hf-job -n "__fish_hf_job_needs_command" -f -a "log" -d 'Write what a job printed to standard output'
complete -c hf-job -n "__fish_hf_job_needs_command" -f -a "cancel" -d 'End a job'
complete -c hf-job -n "__fish_hf_job_needs_command" -f -a "wait" -d 'Wait for jobs'
complete -c hf-job -n "__fish_hf_job_needs_command" -f -a "supervise" -d 'The supervisor of a job; hf-job starts it by itself'
complete -c hf-job -n "__fish_hf_job_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c hf-job -n "__fish_hf_job_using_subcommand fire" -l title -d 'What it is, in one line; else the command itself' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand fire" -l task -d 'A task that it does; else one is made' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand fire" -l requirement -d 'The requirement that it is for' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand fire" -l after -d 'A job or task that has to succeed first (repeatable)' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand fire" -l timeout -d 'End it after this time, such as 90s or 2h; else it runs to its end' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand fire" -l retries -d 'How often it is tried again after a failure that may pass' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand fire" -l cwd -d 'Run it in this folder; else in the current one' -r -F
complete -c hf-job -n "__fish_hf_job_using_subcommand fire" -l env -d 'A variable of its environment (repeatable)' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand fire" -l heartbeat -d 'What shows that it is alive: that it runs (timer), or that it prints (output)' -r -f -a "timer\t''
output\t''"
complete -c hf-job -n "__fish_hf_job_using_subcommand fire" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand fire" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand fire" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand fire" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-job -n "__fish_hf_job_using_subcommand fire" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand fire" -l destructive -d 'It deletes or publishes something: an operator has to allow it'
complete -c hf-job -n "__fish_hf_job_using_subcommand fire" -l json -d 'Reply with one JSON object'
complete -c hf-job -n "__fish_hf_job_using_subcommand fire" -s h -l help -d 'Print help'
complete -c hf-job -n "__fish_hf_job_using_subcommand check" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand check" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand check" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand check" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-job -n "__fish_hf_job_using_subcommand check" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand check" -l json -d 'Reply with one JSON object'
complete -c hf-job -n "__fish_hf_job_using_subcommand check" -s h -l help -d 'Print help'
complete -c hf-job -n "__fish_hf_job_using_subcommand list" -l limit -d 'How many, 500 at most' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand list" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand list" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand list" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand list" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-job -n "__fish_hf_job_using_subcommand list" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand list" -l running -d 'Only those that are not over'
complete -c hf-job -n "__fish_hf_job_using_subcommand list" -l json -d 'Reply with one JSON object'
complete -c hf-job -n "__fish_hf_job_using_subcommand list" -s h -l help -d 'Print help'
complete -c hf-job -n "__fish_hf_job_using_subcommand log" -l tail -d 'Only the last lines' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand log" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand log" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand log" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand log" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-job -n "__fish_hf_job_using_subcommand log" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand log" -l follow -d 'Go on as it prints, until it ends'
complete -c hf-job -n "__fish_hf_job_using_subcommand log" -l json -d 'Reply with one JSON object'
complete -c hf-job -n "__fish_hf_job_using_subcommand log" -s h -l help -d 'Print help'
complete -c hf-job -n "__fish_hf_job_using_subcommand cancel" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand cancel" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand cancel" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand cancel" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-job -n "__fish_hf_job_using_subcommand cancel" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand cancel" -l json -d 'Reply with one JSON object'
complete -c hf-job -n "__fish_hf_job_using_subcommand cancel" -s h -l help -d 'Print help'
complete -c hf-job -n "__fish_hf_job_using_subcommand wait" -l max -d 'At most this long' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand wait" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand wait" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand wait" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand wait" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-job -n "__fish_hf_job_using_subcommand wait" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand wait" -l any -d 'Until one of them is over'
complete -c hf-job -n "__fish_hf_job_using_subcommand wait" -l all -d 'Until all of them are over; so it is if nothing is said'
complete -c hf-job -n "__fish_hf_job_using_subcommand wait" -l json -d 'Reply with one JSON object'
complete -c hf-job -n "__fish_hf_job_using_subcommand wait" -s h -l help -d 'Print help'
complete -c hf-job -n "__fish_hf_job_using_subcommand supervise" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand supervise" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand supervise" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand supervise" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-job -n "__fish_hf_job_using_subcommand supervise" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-job -n "__fish_hf_job_using_subcommand supervise" -l json -d 'Reply with one JSON object'
complete -c hf-job -n "__fish_hf_job_using_subcommand supervise" -s h -l help -d 'Print help'
complete -c hf-job -n "__fish_hf_job_using_subcommand help; and not __fish_seen_subcommand_from fire check list log cancel wait supervise help" -f -a "fire" -d 'Fire a command and return at once'
complete -c hf-job -n "__fish_hf_job_using_subcommand help; and not __fish_seen_subcommand_from fire check list log cancel wait supervise help" -f -a "check" -d 'Say how a job stands'
complete -c hf-job -n "__fish_hf_job_using_subcommand help; and not __fish_seen_subcommand_from fire check list log cancel wait supervise help" -f -a "list" -d 'List jobs, newest first'
complete -c hf-job -n "__fish_hf_job_using_subcommand help; and not __fish_seen_subcommand_from fire check list log cancel wait supervise help" -f -a "log" -d 'Write what a job printed to standard output'
complete -c hf-job -n "__fish_hf_job_using_subcommand help; and not __fish_seen_subcommand_from fire check list log cancel wait supervise help" -f -a "cancel" -d 'End a job'
complete -c hf-job -n "__fish_hf_job_using_subcommand help; and not __fish_seen_subcommand_from fire check list log cancel wait supervise help" -f -a "wait" -d 'Wait for jobs'
complete -c hf-job -n "__fish_hf_job_using_subcommand help; and not __fish_seen_subcommand_from fire check list log cancel wait supervise help" -f -a "supervise" -d 'The supervisor of a job; hf-job starts it by itself'
complete -c hf-job -n "__fish_hf_job_using_subcommand help; and not __fish_seen_subcommand_from fire check list log cancel wait supervise help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
