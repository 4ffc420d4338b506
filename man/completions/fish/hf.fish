# fish completion for the hf commands; hf --complete prints the candidates.
function __hf_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    hf --complete (count $words) $words "$current" 2>/dev/null
end
for command in hf hf-activity hf-append hf-artifact hf-backup hf-branch hf-checkpoint hf-config hf-constraint hf-decide hf-deepwork hf-init hf-job hf-key hf-lineage hf-log hf-pause hf-poll hf-project hf-ref hf-require hf-resume hf-review hf-session hf-state hf-status hf-stop hf-task hf-verify hf-watchdog
    complete -c $command -f -a '(__hf_complete)'
end
