complete -c hf-pause -l max -d 'Wait at most this long' -r
complete -c hf-pause -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-pause -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-pause -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-pause -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-pause -l archive -d 'Close the project for good'
complete -c hf-pause -l wait -d 'Wait until the last session and the last job are gone'
complete -c hf-pause -l json -d 'Reply with one JSON object'
complete -c hf-pause -s h -l help -d 'Print help'
complete -c hf-pause -s V -l version -d 'Print version'
