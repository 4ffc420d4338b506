# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_hf_session_global_optspecs
    string join \n agent= session= project= vault= json lock-timeout= h/help V/version
end

function __fish_hf_session_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_hf_session_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_hf_session_using_subcommand
    set -l cmd (__fish_hf_session_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c hf-session -n "__fish_hf_session_needs_command" -l agent -d 'The agent; else $HF_AGENT, else main' -r
complete -c hf-session -n "__fish_hf_session_needs_command" -l session -d 'The session; else $HF_SESSION' -r
complete -c hf-session -n "__fish_hf_session_needs_command" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-session -n "__fish_hf_session_needs_command" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-session -n "__fish_hf_session_needs_command" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-session -n "__fish_hf_session_needs_command" -l json -d 'Reply with one JSON object'
complete -c hf-session -n "__fish_hf_session_needs_command" -s h -l help -d 'Print help'
complete -c hf-session -n "__fish_hf_session_needs_command" -s V -l version -d 'Print version'
complete -c hf-session -n "__fish_hf_session_needs_command" -f -a "login" -d 'Come to work; a session that was left open in the same project is over'
complete -c hf-session -n "__fish_hf_session_needs_command" -f -a "renew" -d 'Stay'
complete -c hf-session -n "__fish_hf_session_needs_command" -f -a "next" -d 'Ask whether to start, hold or exit'
complete -c hf-session -n "__fish_hf_session_needs_command" -f -a "task" -d 'Get the task to work on, with what is known of it'
complete -c hf-session -n "__fish_hf_session_needs_command" -f -a "report" -d 'Say that the task is done, or failed'
complete -c hf-session -n "__fish_hf_session_needs_command" -f -a "logout" -d 'Leave'
complete -c hf-session -n "__fish_hf_session_needs_command" -f -a "list" -d 'List the sessions that are open'
complete -c hf-session -n "__fish_hf_session_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c hf-session -n "__fish_hf_session_using_subcommand login" -l ttl -d 'How long it holds without being renewed; else session.ttl_seconds' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand login" -l agent -d 'The agent; else $HF_AGENT, else main' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand login" -l session -d 'The session; else $HF_SESSION' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand login" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand login" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-session -n "__fish_hf_session_using_subcommand login" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand login" -l json -d 'Reply with one JSON object'
complete -c hf-session -n "__fish_hf_session_using_subcommand login" -s h -l help -d 'Print help'
complete -c hf-session -n "__fish_hf_session_using_subcommand renew" -l ttl -d 'How long it holds from now on; else session.ttl_seconds' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand renew" -l agent -d 'The agent; else $HF_AGENT, else main' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand renew" -l session -d 'The session; else $HF_SESSION' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand renew" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand renew" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-session -n "__fish_hf_session_using_subcommand renew" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand renew" -l json -d 'Reply with one JSON object'
complete -c hf-session -n "__fish_hf_session_using_subcommand renew" -s h -l help -d 'Print help'
complete -c hf-session -n "__fish_hf_session_using_subcommand next" -l agent -d 'The agent; else $HF_AGENT, else main' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand next" -l session -d 'The session; else $HF_SESSION' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand next" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand next" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-session -n "__fish_hf_session_using_subcommand next" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand next" -l json -d 'Reply with one JSON object'
complete -c hf-session -n "__fish_hf_session_using_subcommand next" -s h -l help -d 'Print help'
complete -c hf-session -n "__fish_hf_session_using_subcommand task" -l agent -d 'The agent; else $HF_AGENT, else main' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand task" -l session -d 'The session; else $HF_SESSION' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand task" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand task" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-session -n "__fish_hf_session_using_subcommand task" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand task" -l json -d 'Reply with one JSON object'
complete -c hf-session -n "__fish_hf_session_using_subcommand task" -s h -l help -d 'Print help'
complete -c hf-session -n "__fish_hf_session_using_subcommand report" -l task -d 'The task; else the one that you hold' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand report" -l summary -d 'What came of it, in one line' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand report" -l failed -d 'It failed, for this reason' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand report" -l class -d 'Whether trying again may help' -r -f -a "transient\t''
permanent\t''"
complete -c hf-session -n "__fish_hf_session_using_subcommand report" -l key -d 'Idempotency key' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand report" -l agent -d 'The agent; else $HF_AGENT, else main' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand report" -l session -d 'The session; else $HF_SESSION' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand report" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand report" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-session -n "__fish_hf_session_using_subcommand report" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand report" -l json -d 'Reply with one JSON object'
complete -c hf-session -n "__fish_hf_session_using_subcommand report" -s h -l help -d 'Print help'
complete -c hf-session -n "__fish_hf_session_using_subcommand logout" -l agent -d 'The agent; else $HF_AGENT, else main' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand logout" -l session -d 'The session; else $HF_SESSION' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand logout" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand logout" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-session -n "__fish_hf_session_using_subcommand logout" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand logout" -l json -d 'Reply with one JSON object'
complete -c hf-session -n "__fish_hf_session_using_subcommand logout" -s h -l help -d 'Print help'
complete -c hf-session -n "__fish_hf_session_using_subcommand list" -l limit -d 'Entries on a page, 500 at most' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand list" -l cursor -d 'Go on behind this id, the NEXT_CURSOR of the page before' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand list" -l agent -d 'The agent; else $HF_AGENT, else main' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand list" -l session -d 'The session; else $HF_SESSION' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand list" -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand list" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-session -n "__fish_hf_session_using_subcommand list" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-session -n "__fish_hf_session_using_subcommand list" -l all -d 'Also those that are over'
complete -c hf-session -n "__fish_hf_session_using_subcommand list" -l json -d 'Reply with one JSON object'
complete -c hf-session -n "__fish_hf_session_using_subcommand list" -s h -l help -d 'Print help'
complete -c hf-session -n "__fish_hf_session_using_subcommand help; and not __fish_seen_subcommand_from login renew next task report logout list help" -f -a "login" -d 'Come to work; a session that was left open in the same project is over'
complete -c hf-session -n "__fish_hf_session_using_subcommand help; and not __fish_seen_subcommand_from login renew next task report logout list help" -f -a "renew" -d 'Stay'
complete -c hf-session -n "__fish_hf_session_using_subcommand help; and not __fish_seen_subcommand_from login renew next task report logout list help" -f -a "next" -d 'Ask whether to start, hold or exit'
complete -c hf-session -n "__fish_hf_session_using_subcommand help; and not __fish_seen_subcommand_from login renew next task report logout list help" -f -a "task" -d 'Get the task to work on, with what is known of it'
complete -c hf-session -n "__fish_hf_session_using_subcommand help; and not __fish_seen_subcommand_from login renew next task report logout list help" -f -a "report" -d 'Say that the task is done, or failed'
complete -c hf-session -n "__fish_hf_session_using_subcommand help; and not __fish_seen_subcommand_from login renew next task report logout list help" -f -a "logout" -d 'Leave'
complete -c hf-session -n "__fish_hf_session_using_subcommand help; and not __fish_seen_subcommand_from login renew next task report logout list help" -f -a "list" -d 'List the sessions that are open'
complete -c hf-session -n "__fish_hf_session_using_subcommand help; and not __fish_seen_subcommand_from login renew next task report logout list help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
