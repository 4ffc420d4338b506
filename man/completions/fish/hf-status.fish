complete -c hf-status -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-status -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-status -l metrics -d 'Figures: consistency, silence detection, completion, approval time-outs'
complete -c hf-status -l json -d 'Reply with one JSON object'
complete -c hf-status -s h -l help -d 'Print help'
complete -c hf-status -s V -l version -d 'Print version'
