complete -c hf-resume -l comment -d 'Why' -r
complete -c hf-resume -l project -d 'The project; else $HF_PROJECT, else that of $HF_SESSION, else main' -r
complete -c hf-resume -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-resume -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-resume -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-resume -l system -d 'Lift the emergency stop'
complete -c hf-resume -l json -d 'Reply with one JSON object'
complete -c hf-resume -s h -l help -d 'Print help'
complete -c hf-resume -s V -l version -d 'Print version'
