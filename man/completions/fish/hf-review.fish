# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_hf_review_global_optspecs
    string join \n key= actor= vault= json lock-timeout= h/help V/version
end

function __fish_hf_review_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_hf_review_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_hf_review_using_subcommand
    set -l cmd (__fish_hf_review_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c hf-review -n "__fish_hf_review_needs_command" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-review -n "__fish_hf_review_needs_command" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-review -n "__fish_hf_review_needs_command" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-review -n "__fish_hf_review_needs_command" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-review -n "__fish_hf_review_needs_command" -l json -d 'Reply with one JSON object'
complete -c hf-review -n "__fish_hf_review_needs_command" -s h -l help -d 'Print help'
complete -c hf-review -n "__fish_hf_review_needs_command" -s V -l version -d 'Print version'
complete -c hf-review -n "__fish_hf_review_needs_command" -f -a "prompt" -d 'Write what a reviewer is to be asked to standard output'
complete -c hf-review -n "__fish_hf_review_needs_command" -f -a "record" -d 'Record a reviewer\'s reply from standard input'
complete -c hf-review -n "__fish_hf_review_needs_command" -f -a "fails" -d 'Show the FAIL lines of a reply'
complete -c hf-review -n "__fish_hf_review_needs_command" -f -a "status" -d 'Say whose turn it is, in which round, and whether the reviewers agree'
complete -c hf-review -n "__fish_hf_review_needs_command" -f -a "run" -d 'Ask the reviewers in turn, by reviewers.NAME.command, until there is something to fix or they agree'
complete -c hf-review -n "__fish_hf_review_needs_command" -f -a "open" -d 'Open another debate; after one that used up its rounds, an operator has to'
complete -c hf-review -n "__fish_hf_review_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c hf-review -n "__fish_hf_review_using_subcommand prompt" -l reviewer -d 'Who is asked; else whose turn it is' -r
complete -c hf-review -n "__fish_hf_review_using_subcommand prompt" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-review -n "__fish_hf_review_using_subcommand prompt" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-review -n "__fish_hf_review_using_subcommand prompt" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-review -n "__fish_hf_review_using_subcommand prompt" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-review -n "__fish_hf_review_using_subcommand prompt" -l json -d 'Reply with one JSON object'
complete -c hf-review -n "__fish_hf_review_using_subcommand prompt" -s h -l help -d 'Print help'
complete -c hf-review -n "__fish_hf_review_using_subcommand record" -l reviewer -d 'Who replied' -r
complete -c hf-review -n "__fish_hf_review_using_subcommand record" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-review -n "__fish_hf_review_using_subcommand record" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-review -n "__fish_hf_review_using_subcommand record" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-review -n "__fish_hf_review_using_subcommand record" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-review -n "__fish_hf_review_using_subcommand record" -l json -d 'Reply with one JSON object'
complete -c hf-review -n "__fish_hf_review_using_subcommand record" -s h -l help -d 'Print help'
complete -c hf-review -n "__fish_hf_review_using_subcommand fails" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-review -n "__fish_hf_review_using_subcommand fails" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-review -n "__fish_hf_review_using_subcommand fails" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-review -n "__fish_hf_review_using_subcommand fails" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-review -n "__fish_hf_review_using_subcommand fails" -l json -d 'Reply with one JSON object'
complete -c hf-review -n "__fish_hf_review_using_subcommand fails" -s h -l help -d 'Print help'
complete -c hf-review -n "__fish_hf_review_using_subcommand status" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-review -n "__fish_hf_review_using_subcommand status" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-review -n "__fish_hf_review_using_subcommand status" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-review -n "__fish_hf_review_using_subcommand status" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-review -n "__fish_hf_review_using_subcommand status" -l json -d 'Reply with one JSON object'
complete -c hf-review -n "__fish_hf_review_using_subcommand status" -s h -l help -d 'Print help'
complete -c hf-review -n "__fish_hf_review_using_subcommand run" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-review -n "__fish_hf_review_using_subcommand run" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-review -n "__fish_hf_review_using_subcommand run" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-review -n "__fish_hf_review_using_subcommand run" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-review -n "__fish_hf_review_using_subcommand run" -l json -d 'Reply with one JSON object'
complete -c hf-review -n "__fish_hf_review_using_subcommand run" -s h -l help -d 'Print help'
complete -c hf-review -n "__fish_hf_review_using_subcommand open" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-review -n "__fish_hf_review_using_subcommand open" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-review -n "__fish_hf_review_using_subcommand open" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-review -n "__fish_hf_review_using_subcommand open" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-review -n "__fish_hf_review_using_subcommand open" -l json -d 'Reply with one JSON object'
complete -c hf-review -n "__fish_hf_review_using_subcommand open" -s h -l help -d 'Print help'
complete -c hf-review -n "__fish_hf_review_using_subcommand help; and not __fish_seen_subcommand_from prompt record fails status run open help" -f -a "prompt" -d 'Write what a reviewer is to be asked to standard output'
complete -c hf-review -n "__fish_hf_review_using_subcommand help; and not __fish_seen_subcommand_from prompt record fails status run open help" -f -a "record" -d 'Record a reviewer\'s reply from standard input'
complete -c hf-review -n "__fish_hf_review_using_subcommand help; and not __fish_seen_subcommand_from prompt record fails status run open help" -f -a "fails" -d 'Show the FAIL lines of a reply'
complete -c hf-review -n "__fish_hf_review_using_subcommand help; and not __fish_seen_subcommand_from prompt record fails status run open help" -f -a "status" -d 'Say whose turn it is, in which round, and whether the reviewers agree'
complete -c hf-review -n "__fish_hf_review_using_subcommand help; and not __fish_seen_subcommand_from prompt record fails status run open help" -f -a "run" -d 'Ask the reviewers in turn, by reviewers.NAME.command, until there is something to fix or they agree'
complete -c hf-review -n "__fish_hf_review_using_subcommand help; and not __fish_seen_subcommand_from prompt record fails status run open help" -f -a "open" -d 'Open another debate; after one that used up its rounds, an operator has to'
complete -c hf-review -n "__fish_hf_review_using_subcommand help; and not __fish_seen_subcommand_from prompt record fails status run open help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
