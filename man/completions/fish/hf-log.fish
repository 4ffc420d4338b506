complete -c hf-log -l type -d 'Only events of this type' -r
complete -c hf-log -l subject -d 'Only events about this: TYPE:ID, system, an id, a short reference, the beginning of a ULID' -r
complete -c hf-log -l actor -d 'Only events by this actor' -r
complete -c hf-log -l since -d 'Only events at or after this time (UTC; a day, or a time of day with it)' -r
complete -c hf-log -l until -d 'Only events at or before this time' -r
complete -c hf-log -l limit -d 'Events on a page, 500 at most' -r
complete -c hf-log -l cursor -d 'Go on behind this event, the NEXT_CURSOR of the page before' -r
complete -c hf-log -l last -d 'The newest events instead of the oldest' -r
complete -c hf-log -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-log -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-log -l follow -d 'Go on as events come, until interrupted; begins with the last ten'
complete -c hf-log -l jsonl -d 'The stored lines themselves, on standard output; the reply goes to standard error'
complete -c hf-log -l json -d 'Reply with one JSON object'
complete -c hf-log -s h -l help -d 'Print help'
complete -c hf-log -s V -l version -d 'Print version'
