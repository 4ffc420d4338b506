complete -c hf-activity -l kind -d 'What kind of activity it was' -r
complete -c hf-activity -l title -d 'What it was, in one line' -r
complete -c hf-activity -l file -d 'A file that holds the log' -r -F
complete -c hf-activity -l emergency -d 'Put the duty to look inward off by this one log, and say why' -r
complete -c hf-activity -l agent -d 'The agent; else $HF_AGENT, else main' -r
complete -c hf-activity -l works -d 'An ai-works tree that is served in place; else $HF_WORKS, else liveness.works_dir' -r -F
complete -c hf-activity -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-activity -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-activity -l json -d 'Reply with one JSON object'
complete -c hf-activity -s h -l help -d 'Print help'
complete -c hf-activity -s V -l version -d 'Print version'
