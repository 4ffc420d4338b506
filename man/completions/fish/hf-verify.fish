complete -c hf-verify -l expect-head -d 'A head that the log must contain, as --anchor printed it (repeatable)' -r
complete -c hf-verify -l since -d 'Take this event for granted and check what follows it' -r
complete -c hf-verify -l jobs -d 'How many threads to use; as many as the machine has if not given' -r
complete -c hf-verify -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-verify -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-verify -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-verify -l anchor -d 'Print the head as ID:HASH if everything is right; the reply goes to standard error'
complete -c hf-verify -l projections -d 'Also compare index, projection files and newest snapshot with the events'
complete -c hf-verify -l policy -d 'Also replay the log against the rules: transitions, approvals, claims, stops, what must follow'
complete -c hf-verify -l artifacts -d 'Also read every stored content and compare it with its hash'
complete -c hf-verify -l reference -d 'The plain check, one event after the other: parse, canonicalise, hash, compare'
complete -c hf-verify -l recover -d 'Move everything from the first bad line on to quarantine, and record that (operators only)'
complete -c hf-verify -l yes -d 'Confirms --recover'
complete -c hf-verify -l json -d 'Reply with one JSON object'
complete -c hf-verify -s h -l help -d 'Print help'
complete -c hf-verify -s V -l version -d 'Print version'
