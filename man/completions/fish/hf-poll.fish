complete -c hf-poll -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-poll -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-poll -l json -d 'Reply with one JSON object'
complete -c hf-poll -s h -l help -d 'Print help'
complete -c hf-poll -s V -l version -d 'Print version'
