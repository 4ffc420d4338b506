# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_hf_constraint_global_optspecs
    string join \n key= actor= vault= json lock-timeout= h/help V/version
end

function __fish_hf_constraint_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_hf_constraint_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_hf_constraint_using_subcommand
    set -l cmd (__fish_hf_constraint_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c hf-constraint -n "__fish_hf_constraint_needs_command" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-constraint -n "__fish_hf_constraint_needs_command" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-constraint -n "__fish_hf_constraint_needs_command" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-constraint -n "__fish_hf_constraint_needs_command" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-constraint -n "__fish_hf_constraint_needs_command" -l json -d 'Reply with one JSON object'
complete -c hf-constraint -n "__fish_hf_constraint_needs_command" -s h -l help -d 'Print help'
complete -c hf-constraint -n "__fish_hf_constraint_needs_command" -s V -l version -d 'Print version'
complete -c hf-constraint -n "__fish_hf_constraint_needs_command" -f -a "apply" -d 'Ask an operator to let a constraint hold'
complete -c hf-constraint -n "__fish_hf_constraint_needs_command" -f -a "remove" -d 'Ask an operator to lift a constraint'
complete -c hf-constraint -n "__fish_hf_constraint_needs_command" -f -a "list" -d 'List the constraints that hold'
complete -c hf-constraint -n "__fish_hf_constraint_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c hf-constraint -n "__fish_hf_constraint_using_subcommand apply" -l priority -d 'A task or requirement whose tasks are taken first while it holds' -r
complete -c hf-constraint -n "__fish_hf_constraint_using_subcommand apply" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-constraint -n "__fish_hf_constraint_using_subcommand apply" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-constraint -n "__fish_hf_constraint_using_subcommand apply" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-constraint -n "__fish_hf_constraint_using_subcommand apply" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-constraint -n "__fish_hf_constraint_using_subcommand apply" -l json -d 'Reply with one JSON object'
complete -c hf-constraint -n "__fish_hf_constraint_using_subcommand apply" -s h -l help -d 'Print help'
complete -c hf-constraint -n "__fish_hf_constraint_using_subcommand remove" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-constraint -n "__fish_hf_constraint_using_subcommand remove" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-constraint -n "__fish_hf_constraint_using_subcommand remove" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-constraint -n "__fish_hf_constraint_using_subcommand remove" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-constraint -n "__fish_hf_constraint_using_subcommand remove" -l json -d 'Reply with one JSON object'
complete -c hf-constraint -n "__fish_hf_constraint_using_subcommand remove" -s h -l help -d 'Print help'
complete -c hf-constraint -n "__fish_hf_constraint_using_subcommand list" -l limit -d 'Entries on a page, 500 at most' -r
complete -c hf-constraint -n "__fish_hf_constraint_using_subcommand list" -l cursor -d 'Go on behind this id, the NEXT_CURSOR of the page before' -r
complete -c hf-constraint -n "__fish_hf_constraint_using_subcommand list" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-constraint -n "__fish_hf_constraint_using_subcommand list" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-constraint -n "__fish_hf_constraint_using_subcommand list" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-constraint -n "__fish_hf_constraint_using_subcommand list" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-constraint -n "__fish_hf_constraint_using_subcommand list" -l all -d 'Also those that were lifted'
complete -c hf-constraint -n "__fish_hf_constraint_using_subcommand list" -l json -d 'Reply with one JSON object'
complete -c hf-constraint -n "__fish_hf_constraint_using_subcommand list" -s h -l help -d 'Print help'
complete -c hf-constraint -n "__fish_hf_constraint_using_subcommand help; and not __fish_seen_subcommand_from apply remove list help" -f -a "apply" -d 'Ask an operator to let a constraint hold'
complete -c hf-constraint -n "__fish_hf_constraint_using_subcommand help; and not __fish_seen_subcommand_from apply remove list help" -f -a "remove" -d 'Ask an operator to lift a constraint'
complete -c hf-constraint -n "__fish_hf_constraint_using_subcommand help; and not __fish_seen_subcommand_from apply remove list help" -f -a "list" -d 'List the constraints that hold'
complete -c hf-constraint -n "__fish_hf_constraint_using_subcommand help; and not __fish_seen_subcommand_from apply remove list help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
