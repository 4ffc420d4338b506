complete -c hf-checkpoint -l agent -d 'The agent; else $HF_AGENT, else main' -r
complete -c hf-checkpoint -l works -d 'An ai-works tree that is served in place; else $HF_WORKS, else liveness.works_dir' -r -F
complete -c hf-checkpoint -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-checkpoint -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-checkpoint -l state -d 'Also append a block to Autonomous/state/CHECKPOINTS.md, for a session that loses its context'
complete -c hf-checkpoint -l json -d 'Reply with one JSON object'
complete -c hf-checkpoint -s h -l help -d 'Print help'
complete -c hf-checkpoint -s V -l version -d 'Print version'
