# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_hf_task_global_optspecs
    string join \n key= project= actor= vault= json lock-timeout= h/help V/version
end

function __fish_hf_task_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_hf_task_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_hf_task_using_subcommand
    set -l cmd (__fish_hf_task_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c hf-task -n "__fish_hf_task_needs_command" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-task -n "__fish_hf_task_needs_command" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-task -n "__fish_hf_task_needs_command" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-task -n "__fish_hf_task_needs_command" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-task -n "__fish_hf_task_needs_command" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-task -n "__fish_hf_task_needs_command" -l json -d 'Reply with one JSON object'
complete -c hf-task -n "__fish_hf_task_needs_command" -s h -l help -d 'Print help'
complete -c hf-task -n "__fish_hf_task_needs_command" -s V -l version -d 'Print version'
complete -c hf-task -n "__fish_hf_task_needs_command" -f -a "propose" -d 'Propose a piece of work'
complete -c hf-task -n "__fish_hf_task_needs_command" -f -a "ready" -d 'Say that nothing stands in its way; this also happens by itself'
complete -c hf-task -n "__fish_hf_task_needs_command" -f -a "claim" -d 'Take a task, or the next one that is ready'
complete -c hf-task -n "__fish_hf_task_needs_command" -f -a "assign" -d 'Give a task to an agent'
complete -c hf-task -n "__fish_hf_task_needs_command" -f -a "start" -d 'Begin to work on a task that you hold'
complete -c hf-task -n "__fish_hf_task_needs_command" -f -a "heartbeat" -d 'Show that the work goes on, and keep the claim'
complete -c hf-task -n "__fish_hf_task_needs_command" -f -a "succeed" -d 'Say that it is done'
complete -c hf-task -n "__fish_hf_task_needs_command" -f -a "fail" -d 'Say that it failed'
complete -c hf-task -n "__fish_hf_task_needs_command" -f -a "abort" -d 'Give it up'
complete -c hf-task -n "__fish_hf_task_needs_command" -f -a "list" -d 'List tasks'
complete -c hf-task -n "__fish_hf_task_needs_command" -f -a "show" -d 'Show one, with its runs, artifacts and decisions'
complete -c hf-task -n "__fish_hf_task_needs_command" -f -a "explain" -d 'Say why it stands where it stands'
complete -c hf-task -n "__fish_hf_task_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c hf-task -n "__fish_hf_task_using_subcommand propose" -l requirement -d 'The requirement that it serves' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand propose" -l after -d 'A task that has to succeed first (repeatable)' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand propose" -l retries -d 'How often it is tried again; else governance.max_retries' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand propose" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand propose" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand propose" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand propose" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-task -n "__fish_hf_task_using_subcommand propose" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand propose" -l destructive -d 'It deletes or publishes something: an operator has to allow it'
complete -c hf-task -n "__fish_hf_task_using_subcommand propose" -l json -d 'Reply with one JSON object'
complete -c hf-task -n "__fish_hf_task_using_subcommand propose" -s h -l help -d 'Print help'
complete -c hf-task -n "__fish_hf_task_using_subcommand ready" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand ready" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand ready" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand ready" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-task -n "__fish_hf_task_using_subcommand ready" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand ready" -l json -d 'Reply with one JSON object'
complete -c hf-task -n "__fish_hf_task_using_subcommand ready" -s h -l help -d 'Print help'
complete -c hf-task -n "__fish_hf_task_using_subcommand claim" -l lease -d 'How long the claim holds without a heartbeat, such as 15m; else governance.lease_seconds' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand claim" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand claim" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand claim" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand claim" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-task -n "__fish_hf_task_using_subcommand claim" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand claim" -l json -d 'Reply with one JSON object'
complete -c hf-task -n "__fish_hf_task_using_subcommand claim" -s h -l help -d 'Print help'
complete -c hf-task -n "__fish_hf_task_using_subcommand assign" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand assign" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand assign" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand assign" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-task -n "__fish_hf_task_using_subcommand assign" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand assign" -l json -d 'Reply with one JSON object'
complete -c hf-task -n "__fish_hf_task_using_subcommand assign" -s h -l help -d 'Print help'
complete -c hf-task -n "__fish_hf_task_using_subcommand start" -l timeout -d 'How long the work may take' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand start" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand start" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand start" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand start" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-task -n "__fish_hf_task_using_subcommand start" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand start" -l json -d 'Reply with one JSON object'
complete -c hf-task -n "__fish_hf_task_using_subcommand start" -s h -l help -d 'Print help'
complete -c hf-task -n "__fish_hf_task_using_subcommand heartbeat" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand heartbeat" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand heartbeat" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand heartbeat" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-task -n "__fish_hf_task_using_subcommand heartbeat" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand heartbeat" -l json -d 'Reply with one JSON object'
complete -c hf-task -n "__fish_hf_task_using_subcommand heartbeat" -s h -l help -d 'Print help'
complete -c hf-task -n "__fish_hf_task_using_subcommand succeed" -l summary -d 'What came out, in one line' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand succeed" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand succeed" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand succeed" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand succeed" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-task -n "__fish_hf_task_using_subcommand succeed" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand succeed" -l json -d 'Reply with one JSON object'
complete -c hf-task -n "__fish_hf_task_using_subcommand succeed" -s h -l help -d 'Print help'
complete -c hf-task -n "__fish_hf_task_using_subcommand fail" -l class -d 'transient is tried again, permanent is given up' -r -f -a "transient\t''
permanent\t''"
complete -c hf-task -n "__fish_hf_task_using_subcommand fail" -l reason -d 'Why' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand fail" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand fail" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand fail" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand fail" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-task -n "__fish_hf_task_using_subcommand fail" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand fail" -l json -d 'Reply with one JSON object'
complete -c hf-task -n "__fish_hf_task_using_subcommand fail" -s h -l help -d 'Print help'
complete -c hf-task -n "__fish_hf_task_using_subcommand abort" -l reason -d 'Why' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand abort" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand abort" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand abort" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand abort" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-task -n "__fish_hf_task_using_subcommand abort" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand abort" -l json -d 'Reply with one JSON object'
complete -c hf-task -n "__fish_hf_task_using_subcommand abort" -s h -l help -d 'Print help'
complete -c hf-task -n "__fish_hf_task_using_subcommand list" -l status -d 'Only those in this state' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand list" -l requirement -d 'Only those of this requirement' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand list" -l limit -d 'Entries on a page, 500 at most' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand list" -l cursor -d 'Go on behind this id, the NEXT_CURSOR of the page before' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand list" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand list" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand list" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand list" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-task -n "__fish_hf_task_using_subcommand list" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand list" -l ready -d 'Only those that can be claimed'
complete -c hf-task -n "__fish_hf_task_using_subcommand list" -l json -d 'Reply with one JSON object'
complete -c hf-task -n "__fish_hf_task_using_subcommand list" -s h -l help -d 'Print help'
complete -c hf-task -n "__fish_hf_task_using_subcommand show" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand show" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand show" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand show" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-task -n "__fish_hf_task_using_subcommand show" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand show" -l json -d 'Reply with one JSON object'
complete -c hf-task -n "__fish_hf_task_using_subcommand show" -s h -l help -d 'Print help'
complete -c hf-task -n "__fish_hf_task_using_subcommand explain" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand explain" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand explain" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand explain" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-task -n "__fish_hf_task_using_subcommand explain" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-task -n "__fish_hf_task_using_subcommand explain" -l json -d 'Reply with one JSON object'
complete -c hf-task -n "__fish_hf_task_using_subcommand explain" -s h -l help -d 'Print help'
complete -c hf-task -n "__fish_hf_task_using_subcommand help; and not __fish_seen_subcommand_from propose ready claim assign start heartbeat succeed fail abort list show explain help" -f -a "propose" -d 'Propose a piece of work'
complete -c hf-task -n "__fish_hf_task_using_subcommand help; and not __fish_seen_subcommand_from propose ready claim assign start heartbeat succeed fail abort list show explain help" -f -a "ready" -d 'Say that nothing stands in its way; this also happens by itself'
complete -c hf-task -n "__fish_hf_task_using_subcommand help; and not __fish_seen_subcommand_from propose ready claim assign start heartbeat succeed fail abort list show explain help" -f -a "claim" -d 'Take a task, or the next one that is ready'
complete -c hf-task -n "__fish_hf_task_using_subcommand help; and not __fish_seen_subcommand_from propose ready claim assign start heartbeat succeed fail abort list show explain help" -f -a "assign" -d 'Give a task to an agent'
complete -c hf-task -n "__fish_hf_task_using_subcommand help; and not __fish_seen_subcommand_from propose ready claim assign start heartbeat succeed fail abort list show explain help" -f -a "start" -d 'Begin to work on a task that you hold'
complete -c hf-task -n "__fish_hf_task_using_subcommand help; and not __fish_seen_subcommand_from propose ready claim assign start heartbeat succeed fail abort list show explain help" -f -a "heartbeat" -d 'Show that the work goes on, and keep the claim'
complete -c hf-task -n "__fish_hf_task_using_subcommand help; and not __fish_seen_subcommand_from propose ready claim assign start heartbeat succeed fail abort list show explain help" -f -a "succeed" -d 'Say that it is done'
complete -c hf-task -n "__fish_hf_task_using_subcommand help; and not __fish_seen_subcommand_from propose ready claim assign start heartbeat succeed fail abort list show explain help" -f -a "fail" -d 'Say that it failed'
complete -c hf-task -n "__fish_hf_task_using_subcommand help; and not __fish_seen_subcommand_from propose ready claim assign start heartbeat succeed fail abort list show explain help" -f -a "abort" -d 'Give it up'
complete -c hf-task -n "__fish_hf_task_using_subcommand help; and not __fish_seen_subcommand_from propose ready claim assign start heartbeat succeed fail abort list show explain help" -f -a "list" -d 'List tasks'
complete -c hf-task -n "__fish_hf_task_using_subcommand help; and not __fish_seen_subcommand_from propose ready claim assign start heartbeat succeed fail abort list show explain help" -f -a "show" -d 'Show one, with its runs, artifacts and decisions'
complete -c hf-task -n "__fish_hf_task_using_subcommand help; and not __fish_seen_subcommand_from propose ready claim assign start heartbeat succeed fail abort list show explain help" -f -a "explain" -d 'Say why it stands where it stands'
complete -c hf-task -n "__fish_hf_task_using_subcommand help; and not __fish_seen_subcommand_from propose ready claim assign start heartbeat succeed fail abort list show explain help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
