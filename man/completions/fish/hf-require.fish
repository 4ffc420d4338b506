# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_hf_require_global_optspecs
    string join \n key= project= actor= vault= json lock-timeout= h/help V/version
end

function __fish_hf_require_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_hf_require_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_hf_require_using_subcommand
    set -l cmd (__fish_hf_require_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c hf-require -n "__fish_hf_require_needs_command" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-require -n "__fish_hf_require_needs_command" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-require -n "__fish_hf_require_needs_command" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-require -n "__fish_hf_require_needs_command" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-require -n "__fish_hf_require_needs_command" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-require -n "__fish_hf_require_needs_command" -l json -d 'Reply with one JSON object'
complete -c hf-require -n "__fish_hf_require_needs_command" -s h -l help -d 'Print help'
complete -c hf-require -n "__fish_hf_require_needs_command" -s V -l version -d 'Print version'
complete -c hf-require -n "__fish_hf_require_needs_command" -f -a "propose" -d 'Put a requirement in'
complete -c hf-require -n "__fish_hf_require_needs_command" -f -a "analyze" -d 'Record its analysis, and thereby ask an operator to approve it'
complete -c hf-require -n "__fish_hf_require_needs_command" -f -a "list" -d 'List requirements'
complete -c hf-require -n "__fish_hf_require_needs_command" -f -a "show" -d 'Show one, with its decisions and tasks'
complete -c hf-require -n "__fish_hf_require_needs_command" -f -a "supersede" -d 'Say that another requirement took its place'
complete -c hf-require -n "__fish_hf_require_needs_command" -f -a "verify" -d 'Say that what was built was checked and holds'
complete -c hf-require -n "__fish_hf_require_needs_command" -f -a "reject" -d 'Give one up before it was analysed (for an operator)'
complete -c hf-require -n "__fish_hf_require_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c hf-require -n "__fish_hf_require_using_subcommand propose" -l description -d 'More about it; - reads standard input' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand propose" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand propose" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand propose" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand propose" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-require -n "__fish_hf_require_using_subcommand propose" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand propose" -l json -d 'Reply with one JSON object'
complete -c hf-require -n "__fish_hf_require_using_subcommand propose" -s h -l help -d 'Print help'
complete -c hf-require -n "__fish_hf_require_using_subcommand analyze" -l file -d 'A file that holds the analysis' -r -F
complete -c hf-require -n "__fish_hf_require_using_subcommand analyze" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand analyze" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand analyze" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand analyze" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-require -n "__fish_hf_require_using_subcommand analyze" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand analyze" -l json -d 'Reply with one JSON object'
complete -c hf-require -n "__fish_hf_require_using_subcommand analyze" -s h -l help -d 'Print help'
complete -c hf-require -n "__fish_hf_require_using_subcommand list" -l status -d 'Only those in this state' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand list" -l limit -d 'Entries on a page, 500 at most' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand list" -l cursor -d 'Go on behind this id, the NEXT_CURSOR of the page before' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand list" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand list" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand list" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand list" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-require -n "__fish_hf_require_using_subcommand list" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand list" -l json -d 'Reply with one JSON object'
complete -c hf-require -n "__fish_hf_require_using_subcommand list" -s h -l help -d 'Print help'
complete -c hf-require -n "__fish_hf_require_using_subcommand show" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand show" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand show" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand show" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-require -n "__fish_hf_require_using_subcommand show" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand show" -l json -d 'Reply with one JSON object'
complete -c hf-require -n "__fish_hf_require_using_subcommand show" -s h -l help -d 'Print help'
complete -c hf-require -n "__fish_hf_require_using_subcommand supersede" -l by -d 'The one that took its place' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand supersede" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand supersede" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand supersede" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand supersede" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-require -n "__fish_hf_require_using_subcommand supersede" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand supersede" -l json -d 'Reply with one JSON object'
complete -c hf-require -n "__fish_hf_require_using_subcommand supersede" -s h -l help -d 'Print help'
complete -c hf-require -n "__fish_hf_require_using_subcommand verify" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand verify" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand verify" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand verify" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-require -n "__fish_hf_require_using_subcommand verify" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand verify" -l json -d 'Reply with one JSON object'
complete -c hf-require -n "__fish_hf_require_using_subcommand verify" -s h -l help -d 'Print help'
complete -c hf-require -n "__fish_hf_require_using_subcommand reject" -l reason -d 'Why' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand reject" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand reject" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand reject" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand reject" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-require -n "__fish_hf_require_using_subcommand reject" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-require -n "__fish_hf_require_using_subcommand reject" -l json -d 'Reply with one JSON object'
complete -c hf-require -n "__fish_hf_require_using_subcommand reject" -s h -l help -d 'Print help'
complete -c hf-require -n "__fish_hf_require_using_subcommand help; and not __fish_seen_subcommand_from propose analyze list show supersede verify reject help" -f -a "propose" -d 'Put a requirement in'
complete -c hf-require -n "__fish_hf_require_using_subcommand help; and not __fish_seen_subcommand_from propose analyze list show supersede verify reject help" -f -a "analyze" -d 'Record its analysis, and thereby ask an operator to approve it'
complete -c hf-require -n "__fish_hf_require_using_subcommand help; and not __fish_seen_subcommand_from propose analyze list show supersede verify reject help" -f -a "list" -d 'List requirements'
complete -c hf-require -n "__fish_hf_require_using_subcommand help; and not __fish_seen_subcommand_from propose analyze list show supersede verify reject help" -f -a "show" -d 'Show one, with its decisions and tasks'
complete -c hf-require -n "__fish_hf_require_using_subcommand help; and not __fish_seen_subcommand_from propose analyze list show supersede verify reject help" -f -a "supersede" -d 'Say that another requirement took its place'
complete -c hf-require -n "__fish_hf_require_using_subcommand help; and not __fish_seen_subcommand_from propose analyze list show supersede verify reject help" -f -a "verify" -d 'Say that what was built was checked and holds'
complete -c hf-require -n "__fish_hf_require_using_subcommand help; and not __fish_seen_subcommand_from propose analyze list show supersede verify reject help" -f -a "reject" -d 'Give one up before it was analysed (for an operator)'
complete -c hf-require -n "__fish_hf_require_using_subcommand help; and not __fish_seen_subcommand_from propose analyze list show supersede verify reject help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
