# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_hf_state_global_optspecs
    string join \n key= actor= vault= json lock-timeout= h/help V/version
end

function __fish_hf_state_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_hf_state_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_hf_state_using_subcommand
    set -l cmd (__fish_hf_state_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c hf-state -n "__fish_hf_state_needs_command" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-state -n "__fish_hf_state_needs_command" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-state -n "__fish_hf_state_needs_command" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-state -n "__fish_hf_state_needs_command" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-state -n "__fish_hf_state_needs_command" -l json -d 'Reply with one JSON object'
complete -c hf-state -n "__fish_hf_state_needs_command" -s h -l help -d 'Print help'
complete -c hf-state -n "__fish_hf_state_needs_command" -s V -l version -d 'Print version'
complete -c hf-state -n "__fish_hf_state_needs_command" -f -a "show" -d 'Show how the mission stands, and what to do next'
complete -c hf-state -n "__fish_hf_state_needs_command" -f -a "start" -d 'Begin a mission'
complete -c hf-state -n "__fish_hf_state_needs_command" -f -a "set" -d 'Change lines: GOAL, TASK_ID, LOGREF, OPEN_K, LAST_ACTION, NEXT_ACTION or REQUIREMENT; NONE takes one away'
complete -c hf-state -n "__fish_hf_state_needs_command" -f -a "round" -d 'Begin the next round, of four'
complete -c hf-state -n "__fish_hf_state_needs_command" -f -a "done" -d 'Say that the mission is done'
complete -c hf-state -n "__fish_hf_state_needs_command" -f -a "fail" -d 'Say that the mission is given up'
complete -c hf-state -n "__fish_hf_state_needs_command" -f -a "go" -d 'Do the work: fire runner.command, wait, hand a failure to fixer.command, fire again'
complete -c hf-state -n "__fish_hf_state_needs_command" -f -a "supervise" -d 'The supervisor of a job that go fired; it is started by itself'
complete -c hf-state -n "__fish_hf_state_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c hf-state -n "__fish_hf_state_using_subcommand show" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-state -n "__fish_hf_state_using_subcommand show" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-state -n "__fish_hf_state_using_subcommand show" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-state -n "__fish_hf_state_using_subcommand show" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-state -n "__fish_hf_state_using_subcommand show" -l json -d 'Reply with one JSON object'
complete -c hf-state -n "__fish_hf_state_using_subcommand show" -s h -l help -d 'Print help'
complete -c hf-state -n "__fish_hf_state_using_subcommand start" -l constraint -d 'What holds for it, in one line (three at most)' -r
complete -c hf-state -n "__fish_hf_state_using_subcommand start" -l requirement -d 'The requirement that it is for' -r
complete -c hf-state -n "__fish_hf_state_using_subcommand start" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-state -n "__fish_hf_state_using_subcommand start" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-state -n "__fish_hf_state_using_subcommand start" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-state -n "__fish_hf_state_using_subcommand start" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-state -n "__fish_hf_state_using_subcommand start" -l json -d 'Reply with one JSON object'
complete -c hf-state -n "__fish_hf_state_using_subcommand start" -s h -l help -d 'Print help'
complete -c hf-state -n "__fish_hf_state_using_subcommand set" -l constraint -d 'The constraints, all of them anew (three at most)' -r
complete -c hf-state -n "__fish_hf_state_using_subcommand set" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-state -n "__fish_hf_state_using_subcommand set" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-state -n "__fish_hf_state_using_subcommand set" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-state -n "__fish_hf_state_using_subcommand set" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-state -n "__fish_hf_state_using_subcommand set" -l json -d 'Reply with one JSON object'
complete -c hf-state -n "__fish_hf_state_using_subcommand set" -s h -l help -d 'Print help'
complete -c hf-state -n "__fish_hf_state_using_subcommand round" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-state -n "__fish_hf_state_using_subcommand round" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-state -n "__fish_hf_state_using_subcommand round" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-state -n "__fish_hf_state_using_subcommand round" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-state -n "__fish_hf_state_using_subcommand round" -l json -d 'Reply with one JSON object'
complete -c hf-state -n "__fish_hf_state_using_subcommand round" -s h -l help -d 'Print help'
complete -c hf-state -n "__fish_hf_state_using_subcommand done" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-state -n "__fish_hf_state_using_subcommand done" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-state -n "__fish_hf_state_using_subcommand done" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-state -n "__fish_hf_state_using_subcommand done" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-state -n "__fish_hf_state_using_subcommand done" -l json -d 'Reply with one JSON object'
complete -c hf-state -n "__fish_hf_state_using_subcommand done" -s h -l help -d 'Print help'
complete -c hf-state -n "__fish_hf_state_using_subcommand fail" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-state -n "__fish_hf_state_using_subcommand fail" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-state -n "__fish_hf_state_using_subcommand fail" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-state -n "__fish_hf_state_using_subcommand fail" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-state -n "__fish_hf_state_using_subcommand fail" -l json -d 'Reply with one JSON object'
complete -c hf-state -n "__fish_hf_state_using_subcommand fail" -s h -l help -d 'Print help'
complete -c hf-state -n "__fish_hf_state_using_subcommand go" -l max -d 'Wait at most this long in one call; called again, it goes on' -r
complete -c hf-state -n "__fish_hf_state_using_subcommand go" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-state -n "__fish_hf_state_using_subcommand go" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-state -n "__fish_hf_state_using_subcommand go" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-state -n "__fish_hf_state_using_subcommand go" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-state -n "__fish_hf_state_using_subcommand go" -l json -d 'Reply with one JSON object'
complete -c hf-state -n "__fish_hf_state_using_subcommand go" -s h -l help -d 'Print help'
complete -c hf-state -n "__fish_hf_state_using_subcommand supervise" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-state -n "__fish_hf_state_using_subcommand supervise" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-state -n "__fish_hf_state_using_subcommand supervise" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-state -n "__fish_hf_state_using_subcommand supervise" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-state -n "__fish_hf_state_using_subcommand supervise" -l json -d 'Reply with one JSON object'
complete -c hf-state -n "__fish_hf_state_using_subcommand supervise" -s h -l help -d 'Print help'
complete -c hf-state -n "__fish_hf_state_using_subcommand help; and not __fish_seen_subcommand_from show start set round done fail go supervise help" -f -a "show" -d 'Show how the mission stands, and what to do next'
complete -c hf-state -n "__fish_hf_state_using_subcommand help; and not __fish_seen_subcommand_from show start set round done fail go supervise help" -f -a "start" -d 'Begin a mission'
complete -c hf-state -n "__fish_hf_state_using_subcommand help; and not __fish_seen_subcommand_from show start set round done fail go supervise help" -f -a "set" -d 'Change lines: GOAL, TASK_ID, LOGREF, OPEN_K, LAST_ACTION, NEXT_ACTION or REQUIREMENT; NONE takes one away'
complete -c hf-state -n "__fish_hf_state_using_subcommand help; and not __fish_seen_subcommand_from show start set round done fail go supervise help" -f -a "round" -d 'Begin the next round, of four'
complete -c hf-state -n "__fish_hf_state_using_subcommand help; and not __fish_seen_subcommand_from show start set round done fail go supervise help" -f -a "done" -d 'Say that the mission is done'
complete -c hf-state -n "__fish_hf_state_using_subcommand help; and not __fish_seen_subcommand_from show start set round done fail go supervise help" -f -a "fail" -d 'Say that the mission is given up'
complete -c hf-state -n "__fish_hf_state_using_subcommand help; and not __fish_seen_subcommand_from show start set round done fail go supervise help" -f -a "go" -d 'Do the work: fire runner.command, wait, hand a failure to fixer.command, fire again'
complete -c hf-state -n "__fish_hf_state_using_subcommand help; and not __fish_seen_subcommand_from show start set round done fail go supervise help" -f -a "supervise" -d 'The supervisor of a job that go fired; it is started by itself'
complete -c hf-state -n "__fish_hf_state_using_subcommand help; and not __fish_seen_subcommand_from show start set round done fail go supervise help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
