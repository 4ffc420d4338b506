complete -c hf-lineage -l depth -d 'How many steps to go' -r
complete -c hf-lineage -l out -d 'Write the graph or tree to this file; the reply is then on standard output' -r -F
complete -c hf-lineage -l vault -d 'The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards' -r -F
complete -c hf-lineage -l lock-timeout -d 'How long to wait for the vault\'s lock, in seconds' -r
complete -c hf-lineage -l up -d 'Only causes'
complete -c hf-lineage -l down -d 'Only consequences'
complete -c hf-lineage -l dot -d 'A graph for Graphviz'
complete -c hf-lineage -l mermaid -d 'A graph for Mermaid'
complete -c hf-lineage -l tree -d 'A tree of text'
complete -c hf-lineage -l json -d 'Reply with one JSON object'
complete -c hf-lineage -s h -l help -d 'Print help'
complete -c hf-lineage -s V -l version -d 'Print version'
