# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_hf_artifact_global_optspecs
    string join \n key= actor= vault= json lock-timeout= h/help V/version
end

function __fish_hf_artifact_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_hf_artifact_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_hf_artifact_using_subcommand
    set -l cmd (__fish_hf_artifact_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c hf-artifact -n "__fish_hf_artifact_needs_command" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-artifact -n "__fish_hf_artifact_needs_command" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-artifact -n "__fish_hf_artifact_needs_command" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-artifact -n "__fish_hf_artifact_needs_command" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-artifact -n "__fish_hf_artifact_needs_command" -l json -d 'Reply with one JSON object'
complete -c hf-artifact -n "__fish_hf_artifact_needs_command" -s h -l help -d 'Print help'
complete -c hf-artifact -n "__fish_hf_artifact_needs_command" -s V -l version -d 'Print version'
complete -c hf-artifact -n "__fish_hf_artifact_needs_command" -f -a "put" -d 'Store a content'
complete -c hf-artifact -n "__fish_hf_artifact_needs_command" -f -a "get" -d 'Write a content to standard output, or to a file'
complete -c hf-artifact -n "__fish_hf_artifact_needs_command" -f -a "show" -d 'Show one'
complete -c hf-artifact -n "__fish_hf_artifact_needs_command" -f -a "validate" -d 'Say that it was checked and is good'
complete -c hf-artifact -n "__fish_hf_artifact_needs_command" -f -a "invalidate" -d 'Say that it was checked and is not good: its task is done anew'
complete -c hf-artifact -n "__fish_hf_artifact_needs_command" -f -a "list" -d 'List artifacts'
complete -c hf-artifact -n "__fish_hf_artifact_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand put" -l kind -d 'What it is: code, text, binary, prompt or response; else told from its name and content' -r -f -a "code\t''
text\t''
binary\t''
prompt\t''
response\t''"
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand put" -l for -d 'The task that made it' -r
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand put" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand put" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand put" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand put" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand put" -l json -d 'Reply with one JSON object'
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand put" -s h -l help -d 'Print help'
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand get" -l out -d 'Write it to this file instead' -r -F
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand get" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand get" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand get" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand get" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand get" -l json -d 'Reply with one JSON object'
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand get" -s h -l help -d 'Print help'
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand show" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand show" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand show" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand show" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand show" -l json -d 'Reply with one JSON object'
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand show" -s h -l help -d 'Print help'
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand validate" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand validate" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand validate" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand validate" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand validate" -l json -d 'Reply with one JSON object'
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand validate" -s h -l help -d 'Print help'
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand invalidate" -l reason -d 'Why' -r
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand invalidate" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand invalidate" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand invalidate" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand invalidate" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand invalidate" -l json -d 'Reply with one JSON object'
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand invalidate" -s h -l help -d 'Print help'
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand list" -l for -d 'Only those of this task' -r
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand list" -l limit -d 'Entries on a page, 500 at most' -r
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand list" -l cursor -d 'Go on behind this id, the NEXT_CURSOR of the page before' -r
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand list" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand list" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand list" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand list" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand list" -l json -d 'Reply with one JSON object'
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand list" -s h -l help -d 'Print help'
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand help; and not __fish_seen_subcommand_from put get show validate invalidate list help" -f -a "put" -d 'Store a content'
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand help; and not __fish_seen_subcommand_from put get show validate invalidate list help" -f -a "get" -d 'Write a content to standard output, or to a file'
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand help; and not __fish_seen_subcommand_from put get show validate invalidate list help" -f -a "show" -d 'Show one'
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand help; and not __fish_seen_subcommand_from put get show validate invalidate list help" -f -a "validate" -d 'Say that it was checked and is good'
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand help; and not __fish_seen_subcommand_from put get show validate invalidate list help" -f -a "invalidate" -d 'Say that it was checked and is not good: its task is done anew'
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand help; and not __fish_seen_subcommand_from put get show validate invalidate list help" -f -a "list" -d 'List artifacts'
complete -c hf-artifact -n "__fish_hf_artifact_using_subcommand help; and not __fish_seen_subcommand_from put get show validate invalidate list help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
