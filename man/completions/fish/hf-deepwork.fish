# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_hf_deepwork_global_optspecs
    string join \n agent= works= vault= json lock-timeout= h/help V/version
end

function __fish_hf_deepwork_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_hf_deepwork_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_hf_deepwork_using_subcommand
    set -l cmd (__fish_hf_deepwork_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c hf-deepwork -n "__fish_hf_deepwork_needs_command" -l agent -d 'The agent; else $HF_AGENT, else main' -r
complete -c hf-deepwork -n "__fish_hf_deepwork_needs_command" -l works -d 'An ai-works tree that is served in place; else $HF_WORKS, else liveness.works_dir' -r -F
complete -c hf-deepwork -n "__fish_hf_deepwork_needs_command" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-deepwork -n "__fish_hf_deepwork_needs_command" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-deepwork -n "__fish_hf_deepwork_needs_command" -l json -d 'Reply with one JSON object'
complete -c hf-deepwork -n "__fish_hf_deepwork_needs_command" -s h -l help -d 'Print help'
complete -c hf-deepwork -n "__fish_hf_deepwork_needs_command" -s V -l version -d 'Print version'
complete -c hf-deepwork -n "__fish_hf_deepwork_needs_command" -f -a "start" -d 'Declare deep work'
complete -c hf-deepwork -n "__fish_hf_deepwork_needs_command" -f -a "status" -d 'Say what you are in'
complete -c hf-deepwork -n "__fish_hf_deepwork_needs_command" -f -a "complete" -d 'Say that it is over; an activity log does that too'
complete -c hf-deepwork -n "__fish_hf_deepwork_needs_command" -f -a "extend" -d 'A strict one takes so many minutes longer'
complete -c hf-deepwork -n "__fish_hf_deepwork_needs_command" -f -a "list" -d 'List deep works: what was declared, and what it took'
complete -c hf-deepwork -n "__fish_hf_deepwork_needs_command" -f -a "migrate" -d 'Rename what an older version left (extended_processing, processed.*, expired.*)'
complete -c hf-deepwork -n "__fish_hf_deepwork_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand start" -l strict -d 'Nothing will come for so many minutes' -r
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand start" -l agent -d 'The agent; else $HF_AGENT, else main' -r
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand start" -l works -d 'An ai-works tree that is served in place; else $HF_WORKS, else liveness.works_dir' -r -F
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand start" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand start" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand start" -l flexible -d 'Checkpoints will come'
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand start" -l json -d 'Reply with one JSON object'
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand start" -s h -l help -d 'Print help'
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand status" -l agent -d 'The agent; else $HF_AGENT, else main' -r
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand status" -l works -d 'An ai-works tree that is served in place; else $HF_WORKS, else liveness.works_dir' -r -F
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand status" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand status" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand status" -l json -d 'Reply with one JSON object'
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand status" -s h -l help -d 'Print help'
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand complete" -l agent -d 'The agent; else $HF_AGENT, else main' -r
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand complete" -l works -d 'An ai-works tree that is served in place; else $HF_WORKS, else liveness.works_dir' -r -F
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand complete" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand complete" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand complete" -l json -d 'Reply with one JSON object'
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand complete" -s h -l help -d 'Print help'
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand extend" -l agent -d 'The agent; else $HF_AGENT, else main' -r
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand extend" -l works -d 'An ai-works tree that is served in place; else $HF_WORKS, else liveness.works_dir' -r -F
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand extend" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand extend" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand extend" -l json -d 'Reply with one JSON object'
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand extend" -s h -l help -d 'Print help'
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand list" -l limit -d 'Entries on a page, 500 at most' -r
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand list" -l cursor -d 'Go on behind this id, the NEXT_CURSOR of the page before' -r
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand list" -l agent -d 'The agent; else $HF_AGENT, else main' -r
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand list" -l works -d 'An ai-works tree that is served in place; else $HF_WORKS, else liveness.works_dir' -r -F
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand list" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand list" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand list" -l json -d 'Reply with one JSON object'
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand list" -s h -l help -d 'Print help'
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand migrate" -l agent -d 'The agent; else $HF_AGENT, else main' -r
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand migrate" -l works -d 'An ai-works tree that is served in place; else $HF_WORKS, else liveness.works_dir' -r -F
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand migrate" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand migrate" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand migrate" -l json -d 'Reply with one JSON object'
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand migrate" -s h -l help -d 'Print help'
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand help; and not __fish_seen_subcommand_from start status complete extend list migrate help" -f -a "start" -d 'Declare deep work'
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand help; and not __fish_seen_subcommand_from start status complete extend list migrate help" -f -a "status" -d 'Say what you are in'
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand help; and not __fish_seen_subcommand_from start status complete extend list migrate help" -f -a "complete" -d 'Say that it is over; an activity log does that too'
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand help; and not __fish_seen_subcommand_from start status complete extend list migrate help" -f -a "extend" -d 'A strict one takes so many minutes longer'
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand help; and not __fish_seen_subcommand_from start status complete extend list migrate help" -f -a "list" -d 'List deep works: what was declared, and what it took'
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand help; and not __fish_seen_subcommand_from start status complete extend list migrate help" -f -a "migrate" -d 'Rename what an older version left (extended_processing, processed.*, expired.*)'
complete -c hf-deepwork -n "__fish_hf_deepwork_using_subcommand help; and not __fish_seen_subcommand_from start status complete extend list migrate help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
