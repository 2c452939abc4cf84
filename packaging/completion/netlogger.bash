# Completion of all NetLogger programs for bash, from the output of PROGRAM [COMMAND...] --help=words. Each line of this
# output contains a word, the choices for its value, and help text, separated by tabs.
_netlogger()
{
    local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} word words choices line
    local -a commands=()
    [ "$current" = = ] && current=
    if [ "$previous" = = ]; then previous=${COMP_WORDS[COMP_CWORD-2]}; fi
    # Of all programs with commands, only nlkernel has options for each command.
    if [ "${program##*/}" = nlkernel ]; then
        for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
            case $word in
                list|record|live|control|report|bench|graph|symbols|trace|join) [ ${#commands[@]} -eq 0 ] && commands=("$word") ;;
                rules) [ ${#commands[@]} -eq 0 ] && commands=(rules) ;;
                run|show) [ "${commands[*]}" = rules ] && commands=(rules "$word") ;;
            esac
        done
    fi
    words=$("$program" "${commands[@]}" --help=words 2>/dev/null) || return 0
    COMPREPLY=()
    while IFS=$'\t' read -r word line; do
        choices=${line%%$'\t'*}
        if [ "$word" = "$previous=" ]; then
            [ -n "$choices" ] && COMPREPLY=($(compgen -W "${choices//|/ }" -- "$current"))
            return 0 # no choices: complete file names
        fi
    done <<<"$words"
    while IFS=$'\t' read -r word line; do
        [[ $word == "$current"* && ( $current == -* || $word != -* ) ]] && COMPREPLY+=("$word")
    done <<<"$words"
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
    return 0
}
complete -o default -F _netlogger netlogctl netlogd nlagent nlagentd nlarchive nlconv nldiag nlkernel nlrecover nlschema nlsensor nlsort nlstat nlv nlwrite
