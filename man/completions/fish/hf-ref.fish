# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_hf_ref_global_optspecs
    string join \n actor= vault= json lock-timeout= h/help V/version
end

function __fish_hf_ref_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_hf_ref_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_hf_ref_using_subcommand
    set -l cmd (__fish_hf_ref_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c hf-ref -n "__fish_hf_ref_needs_command" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-ref -n "__fish_hf_ref_needs_command" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-ref -n "__fish_hf_ref_needs_command" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-ref -n "__fish_hf_ref_needs_command" -l json -d 'Reply with one JSON object'
complete -c hf-ref -n "__fish_hf_ref_needs_command" -s h -l help -d 'Print help'
complete -c hf-ref -n "__fish_hf_ref_needs_command" -s V -l version -d 'Print version'
complete -c hf-ref -n "__fish_hf_ref_needs_command" -f -a "add" -d 'Give a file a reference, or a new hash after it was changed'
complete -c hf-ref -n "__fish_hf_ref_needs_command" -f -a "resolve" -d 'Say where the file of a reference is, if it is still what was meant'
complete -c hf-ref -n "__fish_hf_ref_needs_command" -f -a "check" -d 'Look whether every file is still what was meant'
complete -c hf-ref -n "__fish_hf_ref_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c hf-ref -n "__fish_hf_ref_using_subcommand add" -l kind -d 'What it is; else told from its folder and its ending, else a design' -r -f -a "design\t''
plan\t''
patch\t''
report\t''"
complete -c hf-ref -n "__fish_hf_ref_using_subcommand add" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-ref -n "__fish_hf_ref_using_subcommand add" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-ref -n "__fish_hf_ref_using_subcommand add" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-ref -n "__fish_hf_ref_using_subcommand add" -l json -d 'Reply with one JSON object'
complete -c hf-ref -n "__fish_hf_ref_using_subcommand add" -s h -l help -d 'Print help'
complete -c hf-ref -n "__fish_hf_ref_using_subcommand resolve" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-ref -n "__fish_hf_ref_using_subcommand resolve" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-ref -n "__fish_hf_ref_using_subcommand resolve" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-ref -n "__fish_hf_ref_using_subcommand resolve" -l json -d 'Reply with one JSON object'
complete -c hf-ref -n "__fish_hf_ref_using_subcommand resolve" -s h -l help -d 'Print help'
complete -c hf-ref -n "__fish_hf_ref_using_subcommand check" -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-ref -n "__fish_hf_ref_using_subcommand check" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-ref -n "__fish_hf_ref_using_subcommand check" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-ref -n "__fish_hf_ref_using_subcommand check" -l json -d 'Reply with one JSON object'
complete -c hf-ref -n "__fish_hf_ref_using_subcommand check" -s h -l help -d 'Print help'
complete -c hf-ref -n "__fish_hf_ref_using_subcommand help; and not __fish_seen_subcommand_from add resolve check help" -f -a "add" -d 'Give a file a reference, or a new hash after it was changed'
complete -c hf-ref -n "__fish_hf_ref_using_subcommand help; and not __fish_seen_subcommand_from add resolve check help" -f -a "resolve" -d 'Say where the file of a reference is, if it is still what was meant'
complete -c hf-ref -n "__fish_hf_ref_using_subcommand help; and not __fish_seen_subcommand_from add resolve check help" -f -a "check" -d 'Look whether every file is still what was meant'
complete -c hf-ref -n "__fish_hf_ref_using_subcommand help; and not __fish_seen_subcommand_from add resolve check help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
