complete -c hf-watchdog -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-watchdog -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-watchdog -l check -d 'Only say what is overdue'
complete -c hf-watchdog -l json -d 'Reply with one JSON object'
complete -c hf-watchdog -s h -l help -d 'Print help'
complete -c hf-watchdog -s V -l version -d 'Print version'
