complete -c hf-append -l subject -d 'What it is about: an id, TYPE:ID, a short reference, or the beginning of a ULID' -r
complete -c hf-append -l payload -d 'The payload, a JSON object' -r
complete -c hf-append -l payload-file -d 'A file that holds the payload' -r -F
complete -c hf-append -l parent -d 'An event that caused this one (repeatable); else the natural cause is found' -r
complete -c hf-append -l key -d 'Idempotency key: the same key again records nothing and replies with the first event' -r
complete -c hf-append -l actor -d 'Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you' -r
complete -c hf-append -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-append -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-append -l batch -d 'Read one event a line from standard input; record all of them or none'
complete -c hf-append -l stream -d 'Read any number of events, one a line; commit every thousand'
complete -c hf-append -s n -l dry-run -d 'Only say whether it could be recorded'
complete -c hf-append -l json -d 'Reply with one JSON object'
complete -c hf-append -s h -l help -d 'Print help'
complete -c hf-append -s V -l version -d 'Print version'
