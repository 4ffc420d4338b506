# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_hf_branch_global_optspecs
    string join \n agent= vault= json lock-timeout= h/help V/version
end

function __fish_hf_branch_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_hf_branch_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_hf_branch_using_subcommand
    set -l cmd (__fish_hf_branch_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c hf-branch -n "__fish_hf_branch_needs_command" -l agent -d 'The persona; else $HF_AGENT, else main. Whoever tells something is himself' -r
complete -c hf-branch -n "__fish_hf_branch_needs_command" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-branch -n "__fish_hf_branch_needs_command" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-branch -n "__fish_hf_branch_needs_command" -l json -d 'Reply with one JSON object'
complete -c hf-branch -n "__fish_hf_branch_needs_command" -s h -l help -d 'Print help'
complete -c hf-branch -n "__fish_hf_branch_needs_command" -s V -l version -d 'Print version'
complete -c hf-branch -n "__fish_hf_branch_needs_command" -f -a "create" -d 'Begin an activity, and be at it'
complete -c hf-branch -n "__fish_hf_branch_needs_command" -f -a "list" -d 'List the branches of a persona'
complete -c hf-branch -n "__fish_hf_branch_needs_command" -f -a "show" -d 'Show one, with its threads'
complete -c hf-branch -n "__fish_hf_branch_needs_command" -f -a "resume" -d 'Go to a branch: a new thread, and what is to be known there'
complete -c hf-branch -n "__fish_hf_branch_needs_command" -f -a "suspend" -d 'Leave the branch that you are at; without a summary, its thread is aborted'
complete -c hf-branch -n "__fish_hf_branch_needs_command" -f -a "complete" -d 'Say that a free branch is over; that of a task is when the task is'
complete -c hf-branch -n "__fish_hf_branch_needs_command" -f -a "recall" -d 'Remember how the threads of a branch ended, and what was said in them'
complete -c hf-branch -n "__fish_hf_branch_needs_command" -f -a "note" -d 'Note something in the thread that you are in'
complete -c hf-branch -n "__fish_hf_branch_needs_command" -f -a "decide" -d 'Say what can be done now: react, resume, create or wait'
complete -c hf-branch -n "__fish_hf_branch_needs_command" -f -a "tell" -d 'Tell an agent something; a user\'s word interrupts it'
complete -c hf-branch -n "__fish_hf_branch_needs_command" -f -a "inbox" -d 'List what was told to you'
complete -c hf-branch -n "__fish_hf_branch_needs_command" -f -a "read" -d 'Read messages: these, or all that are new'
complete -c hf-branch -n "__fish_hf_branch_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand create" -l type -d 'What kind of activity' -r -f -a "task\t''
social\t''
free\t''"
complete -c hf-branch -n "__fish_hf_branch_using_subcommand create" -l task -d 'The task that it is for' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand create" -l partner -d 'Who it is with; such branches come by themselves once both are known' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand create" -l summary -d 'Where the branch that you leave stands; - reads standard input' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand create" -l tail -d 'A file with its last messages, one a line' -r -F
complete -c hf-branch -n "__fish_hf_branch_using_subcommand create" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand create" -l agent -d 'The persona; else $HF_AGENT, else main. Whoever tells something is himself' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand create" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-branch -n "__fish_hf_branch_using_subcommand create" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand create" -l abort -d 'Leave the branch that you are at without a summary'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand create" -l json -d 'Reply with one JSON object'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand create" -s h -l help -d 'Print help'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand list" -l status -d 'Only those in this state' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand list" -l limit -d 'Entries on a page, 500 at most' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand list" -l cursor -d 'Go on behind this id, the NEXT_CURSOR of the page before' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand list" -l agent -d 'The persona; else $HF_AGENT, else main. Whoever tells something is himself' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand list" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-branch -n "__fish_hf_branch_using_subcommand list" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand list" -l working -d 'The ten newest that are not over, as JSON for a prompt'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand list" -l json -d 'Reply with one JSON object'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand list" -s h -l help -d 'Print help'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand show" -l agent -d 'The persona; else $HF_AGENT, else main. Whoever tells something is himself' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand show" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-branch -n "__fish_hf_branch_using_subcommand show" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand show" -l json -d 'Reply with one JSON object'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand show" -s h -l help -d 'Print help'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand resume" -l summary -d 'Where the branch that you leave stands; - reads standard input' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand resume" -l tail -d 'A file with its last messages, one a line' -r -F
complete -c hf-branch -n "__fish_hf_branch_using_subcommand resume" -l words -d 'How many words the context has at most' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand resume" -l out -d 'Write the context to this file; the reply is then on standard output' -r -F
complete -c hf-branch -n "__fish_hf_branch_using_subcommand resume" -l agent -d 'The persona; else $HF_AGENT, else main. Whoever tells something is himself' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand resume" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-branch -n "__fish_hf_branch_using_subcommand resume" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand resume" -l abort -d 'Leave the branch that you are at without a summary'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand resume" -l json -d 'Reply with one JSON object'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand resume" -s h -l help -d 'Print help'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand suspend" -l summary -d 'Where the branch that you leave stands; - reads standard input' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand suspend" -l tail -d 'A file with its last messages, one a line' -r -F
complete -c hf-branch -n "__fish_hf_branch_using_subcommand suspend" -l agent -d 'The persona; else $HF_AGENT, else main. Whoever tells something is himself' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand suspend" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-branch -n "__fish_hf_branch_using_subcommand suspend" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand suspend" -l json -d 'Reply with one JSON object'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand suspend" -s h -l help -d 'Print help'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand complete" -l summary -d 'Where the branch that you leave stands; - reads standard input' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand complete" -l tail -d 'A file with its last messages, one a line' -r -F
complete -c hf-branch -n "__fish_hf_branch_using_subcommand complete" -l agent -d 'The persona; else $HF_AGENT, else main. Whoever tells something is himself' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand complete" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-branch -n "__fish_hf_branch_using_subcommand complete" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand complete" -l json -d 'Reply with one JSON object'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand complete" -s h -l help -d 'Print help'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand recall" -l thread -d 'Everything that was said in this thread' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand recall" -l grep -d 'Only what has this word in it' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand recall" -l out -d 'Write it to this file; the reply is then on standard output' -r -F
complete -c hf-branch -n "__fish_hf_branch_using_subcommand recall" -l agent -d 'The persona; else $HF_AGENT, else main. Whoever tells something is himself' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand recall" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-branch -n "__fish_hf_branch_using_subcommand recall" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand recall" -l all -d 'Every branch'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand recall" -l json -d 'Reply with one JSON object'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand recall" -s h -l help -d 'Print help'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand note" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand note" -l agent -d 'The persona; else $HF_AGENT, else main. Whoever tells something is himself' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand note" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-branch -n "__fish_hf_branch_using_subcommand note" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand note" -l json -d 'Reply with one JSON object'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand note" -s h -l help -d 'Print help'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand decide" -l agent -d 'The persona; else $HF_AGENT, else main. Whoever tells something is himself' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand decide" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-branch -n "__fish_hf_branch_using_subcommand decide" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand decide" -l json -d 'Reply with one JSON object'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand decide" -s h -l help -d 'Print help'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand tell" -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand tell" -l agent -d 'The persona; else $HF_AGENT, else main. Whoever tells something is himself' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand tell" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-branch -n "__fish_hf_branch_using_subcommand tell" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand tell" -l json -d 'Reply with one JSON object'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand tell" -s h -l help -d 'Print help'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand inbox" -l limit -d 'Messages at most, 500 at most' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand inbox" -l agent -d 'The persona; else $HF_AGENT, else main. Whoever tells something is himself' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand inbox" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-branch -n "__fish_hf_branch_using_subcommand inbox" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand inbox" -l unread -d 'Only what you have not read'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand inbox" -l json -d 'Reply with one JSON object'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand inbox" -s h -l help -d 'Print help'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand read" -l agent -d 'The persona; else $HF_AGENT, else main. Whoever tells something is himself' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand read" -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-branch -n "__fish_hf_branch_using_subcommand read" -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-branch -n "__fish_hf_branch_using_subcommand read" -l json -d 'Reply with one JSON object'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand read" -s h -l help -d 'Print help'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand help; and not __fish_seen_subcommand_from create list show resume suspend complete recall note decide tell inbox read help" -f -a "create" -d 'Begin an activity, and be at it'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand help; and not __fish_seen_subcommand_from create list show resume suspend complete recall note decide tell inbox read help" -f -a "list" -d 'List the branches of a persona'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand help; and not __fish_seen_subcommand_from create list show resume suspend complete recall note decide tell inbox read help" -f -a "show" -d 'Show one, with its threads'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand help; and not __fish_seen_subcommand_from create list show resume suspend complete recall note decide tell inbox read help" -f -a "resume" -d 'Go to a branch: a new thread, and what is to be known there'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand help; and not __fish_seen_subcommand_from create list show resume suspend complete recall note decide tell inbox read help" -f -a "suspend" -d 'Leave the branch that you are at; without a summary, its thread is aborted'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand help; and not __fish_seen_subcommand_from create list show resume suspend complete recall note decide tell inbox read help" -f -a "complete" -d 'Say that a free branch is over; that of a task is when the task is'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand help; and not __fish_seen_subcommand_from create list show resume suspend complete recall note decide tell inbox read help" -f -a "recall" -d 'Remember how the threads of a branch ended, and what was said in them'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand help; and not __fish_seen_subcommand_from create list show resume suspend complete recall note decide tell inbox read help" -f -a "note" -d 'Note something in the thread that you are in'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand help; and not __fish_seen_subcommand_from create list show resume suspend complete recall note decide tell inbox read help" -f -a "decide" -d 'Say what can be done now: react, resume, create or wait'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand help; and not __fish_seen_subcommand_from create list show resume suspend complete recall note decide tell inbox read help" -f -a "tell" -d 'Tell an agent something; a user\'s word interrupts it'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand help; and not __fish_seen_subcommand_from create list show resume suspend complete recall note decide tell inbox read help" -f -a "inbox" -d 'List what was told to you'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand help; and not __fish_seen_subcommand_from create list show resume suspend complete recall note decide tell inbox read help" -f -a "read" -d 'Read messages: these, or all that are new'
complete -c hf-branch -n "__fish_hf_branch_using_subcommand help; and not __fish_seen_subcommand_from create list show resume suspend complete recall note decide tell inbox read help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
