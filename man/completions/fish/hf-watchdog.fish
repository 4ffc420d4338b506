complete -c hf-watchdog -l every -d 'Go on for ever, once in so many seconds; TERM ends it' -r
complete -c hf-watchdog -l works -d 'An ai-works tree that is served in place; else $HF_WORKS, else liveness.works_dir' -r -F
complete -c hf-watchdog -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-watchdog -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-watchdog -l check -d 'Only say what is wrong'
complete -c hf-watchdog -l json -d 'Reply with one JSON object'
complete -c hf-watchdog -s h -l help -d 'Print help'
complete -c hf-watchdog -s V -l version -d 'Print version'
