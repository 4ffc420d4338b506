complete -c hf-stop -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-stop -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-stop -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-stop -l json -d 'Reply with one JSON object'
complete -c hf-stop -s h -l help -d 'Print help'
complete -c hf-stop -s V -l version -d 'Print version'
