complete -c hf-project -l status -d 'Only entities in this state' -r
complete -c hf-project -l limit -d 'Entries on a page, 500 at most' -r
complete -c hf-project -l cursor -d 'Go on behind this id, the NEXT_CURSOR of the page before' -r
complete -c hf-project -l snapshot -d 'Write the whole state to snapshots/, named by the time or as given' -r
complete -c hf-project -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-project -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-project -l map -d 'The whole projection as one JSON map on standard output'
complete -c hf-project -l rebuild -d 'Make index and projection files anew, from the events alone'
complete -c hf-project -l check -d 'Compare index, projection files and newest snapshot with a rebuild'
complete -c hf-project -l json -d 'Reply with one JSON object'
complete -c hf-project -s h -l help -d 'Print help'
complete -c hf-project -s V -l version -d 'Print version'
