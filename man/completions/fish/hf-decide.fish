# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_hf_decide_global_optspecs
    string join \n key= actor= vault= json lock-timeout= h/help V/version
end

function __fish_hf_decide_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_hf_decide_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_hf_decide_using_subcommand
    set -l cmd (__fish_hf_decide_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c hf-decide -n "__fish_hf_decide_needs_command" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-decide -n "__fish_hf_decide_needs_command" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-decide -n "__fish_hf_decide_needs_command" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-decide -n "__fish_hf_decide_needs_command" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-decide -n "__fish_hf_decide_needs_command" -l json -d 'Reply with one JSON object'
complete -c hf-decide -n "__fish_hf_decide_needs_command" -s h -l help -d 'Print help'
complete -c hf-decide -n "__fish_hf_decide_needs_command" -s V -l version -d 'Print version'
complete -c hf-decide -n "__fish_hf_decide_needs_command" -f -a "request" -d 'Ask an operator'
complete -c hf-decide -n "__fish_hf_decide_needs_command" -f -a "approve" -d 'Say yes (for an operator)'
complete -c hf-decide -n "__fish_hf_decide_needs_command" -f -a "reject" -d 'Say no (for an operator)'
complete -c hf-decide -n "__fish_hf_decide_needs_command" -f -a "list" -d 'List decisions'
complete -c hf-decide -n "__fish_hf_decide_needs_command" -f -a "show" -d 'Show one'
complete -c hf-decide -n "__fish_hf_decide_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c hf-decide -n "__fish_hf_decide_using_subcommand request" -l kind -d 'What is asked: requirement_approval or destructive_operation' -r
complete -c hf-decide -n "__fish_hf_decide_using_subcommand request" -l target -d 'What it is about' -r
complete -c hf-decide -n "__fish_hf_decide_using_subcommand request" -l summary -d 'The question, in one line' -r
complete -c hf-decide -n "__fish_hf_decide_using_subcommand request" -l option -d 'Something to choose from (repeatable)' -r
complete -c hf-decide -n "__fish_hf_decide_using_subcommand request" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-decide -n "__fish_hf_decide_using_subcommand request" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-decide -n "__fish_hf_decide_using_subcommand request" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-decide -n "__fish_hf_decide_using_subcommand request" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-decide -n "__fish_hf_decide_using_subcommand request" -l json -d 'Reply with one JSON object'
complete -c hf-decide -n "__fish_hf_decide_using_subcommand request" -s h -l help -d 'Print help'
complete -c hf-decide -n "__fish_hf_decide_using_subcommand approve" -l option -d 'Which of its options' -r
complete -c hf-decide -n "__fish_hf_decide_using_subcommand approve" -l comment -d 'Why' -r
complete -c hf-decide -n "__fish_hf_decide_using_subcommand approve" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-decide -n "__fish_hf_decide_using_subcommand approve" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-decide -n "__fish_hf_decide_using_subcommand approve" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-decide -n "__fish_hf_decide_using_subcommand approve" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-decide -n "__fish_hf_decide_using_subcommand approve" -l json -d 'Reply with one JSON object'
complete -c hf-decide -n "__fish_hf_decide_using_subcommand approve" -s h -l help -d 'Print help'
complete -c hf-decide -n "__fish_hf_decide_using_subcommand reject" -l reason -d 'Why' -r
complete -c hf-decide -n "__fish_hf_decide_using_subcommand reject" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-decide -n "__fish_hf_decide_using_subcommand reject" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-decide -n "__fish_hf_decide_using_subcommand reject" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-decide -n "__fish_hf_decide_using_subcommand reject" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-decide -n "__fish_hf_decide_using_subcommand reject" -l json -d 'Reply with one JSON object'
complete -c hf-decide -n "__fish_hf_decide_using_subcommand reject" -s h -l help -d 'Print help'
complete -c hf-decide -n "__fish_hf_decide_using_subcommand list" -l limit -d 'Entries on a page, 500 at most' -r
complete -c hf-decide -n "__fish_hf_decide_using_subcommand list" -l cursor -d 'Go on behind this id, the NEXT_CURSOR of the page before' -r
complete -c hf-decide -n "__fish_hf_decide_using_subcommand list" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-decide -n "__fish_hf_decide_using_subcommand list" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-decide -n "__fish_hf_decide_using_subcommand list" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-decide -n "__fish_hf_decide_using_subcommand list" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-decide -n "__fish_hf_decide_using_subcommand list" -l open -d 'Only those that nobody has made yet'
complete -c hf-decide -n "__fish_hf_decide_using_subcommand list" -l json -d 'Reply with one JSON object'
complete -c hf-decide -n "__fish_hf_decide_using_subcommand list" -s h -l help -d 'Print help'
complete -c hf-decide -n "__fish_hf_decide_using_subcommand show" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-decide -n "__fish_hf_decide_using_subcommand show" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-decide -n "__fish_hf_decide_using_subcommand show" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-decide -n "__fish_hf_decide_using_subcommand show" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-decide -n "__fish_hf_decide_using_subcommand show" -l json -d 'Reply with one JSON object'
complete -c hf-decide -n "__fish_hf_decide_using_subcommand show" -s h -l help -d 'Print help'
complete -c hf-decide -n "__fish_hf_decide_using_subcommand help; and not __fish_seen_subcommand_from request approve reject list show help" -f -a "request" -d 'Ask an operator'
complete -c hf-decide -n "__fish_hf_decide_using_subcommand help; and not __fish_seen_subcommand_from request approve reject list show help" -f -a "approve" -d 'Say yes (for an operator)'
complete -c hf-decide -n "__fish_hf_decide_using_subcommand help; and not __fish_seen_subcommand_from request approve reject list show help" -f -a "reject" -d 'Say no (for an operator)'
complete -c hf-decide -n "__fish_hf_decide_using_subcommand help; and not __fish_seen_subcommand_from request approve reject list show help" -f -a "list" -d 'List decisions'
complete -c hf-decide -n "__fish_hf_decide_using_subcommand help; and not __fish_seen_subcommand_from request approve reject list show help" -f -a "show" -d 'Show one'
complete -c hf-decide -n "__fish_hf_decide_using_subcommand help; and not __fish_seen_subcommand_from request approve reject list show help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
