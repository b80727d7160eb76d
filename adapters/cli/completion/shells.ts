// The scripts of the shells: `TABLES` is replaced by the functions of `shellTables`. Both share three functions, which
// zsh runs as `sh` does. `place` has the words of the command line that are not flags, such as `ctl clients`; a flag of a
// place is one of the places below it as well. bash divides words at `=`, so a flag and its value are two words there.

const SHARED = `TABLES
# Set REPLY to the kind of the value of a flag ($2) at a place ($1). Fails if it takes none.
_embermq_kind() {
  EMULATE
  local at=$1 one
  while :; do
    _embermq_flags "$at"
    for one in $REPLY; do
      case $one in
        "$2="*) REPLY=\${one#*=}; return 0 ;;
        "$2") return 1 ;;
      esac
    done
    [ -n "$at" ] || return 1
    case $at in *' '*) at=\${at% *} ;; *) at='' ;; esac
  done
}

# Set place, and the kind of the value that the next word is, from the words of a command line.
_embermq_walk() {
  EMULATE
  local one
  place='' kind=''
  for one in "$@"; do
    if [ -n "$kind" ]; then kind=''; continue; fi
    case $one in
      -*=*) ;;
      -*) if _embermq_kind "$place" "$one"; then kind=$REPLY; fi ;;
      *)
        _embermq_words "$place"
        case " $REPLY " in *" $one "*) place="\${place:+$place }$one" ;; esac ;;
    esac
  done
}

# Set REPLY to the words that can complete a word ($1), and files to the kind of files.
_embermq_offer() {
  EMULATE
  local at=$place one list=''
  files=''
  case $1 in
    -*=*) _embermq_kind "$place" "\${1%%=*}" && kind=$REPLY || kind=@ ;;
  esac
  if [ -n "$kind" ]; then
    list=\${kind//\\|/ }
  else
    case $1 in
      -*)
        while :; do
          _embermq_flags "$at"
          for one in $REPLY; do list="$list \${one%%=*}"; done
          [ -n "$at" ] || break
          case $at in *' '*) at=\${at% *} ;; *) at='' ;; esac
        done
        list="$list --help" ;;
      *) _embermq_words "$place"; list=$REPLY ;;
    esac
  fi
  REPLY=''
  for one in $list; do
    case $one in
      @file | @folder) files=\${one#@} ;;
      @) ;;
      *) REPLY="$REPLY $one" ;;
    esac
  done
}
`;

/** The script for bash, from version 3.2. */
export const BASH_SCRIPT = `# Completion of embermq for bash: eval "$(embermq completion bash)"
${SHARED.replaceAll('  EMULATE\n', '')}
_embermq() {
  local place kind files REPLY one at cur=\${COMP_WORDS[COMP_CWORD]} IFS=$' \\t\\n'
  local -a before
  before=()
  if [ "$cur" = = ]; then cur=''; fi
  for ((at = 1; at < COMP_CWORD; at++)); do
    if [ "\${COMP_WORDS[at]}" != = ]; then before+=("\${COMP_WORDS[at]}"); fi
  done
  _embermq_walk \${before[@]+"\${before[@]}"}
  _embermq_offer "$cur"
  COMPREPLY=()
  while IFS= read -r one; do COMPREPLY+=("$one"); done < <(
    compgen -W "$REPLY" -- "$cur"
    case $files in
      file) compgen -f -- "$cur" ;;
      folder) compgen -d -- "$cur" ;;
    esac
  )
  if [ -n "$files" ]; then compopt -o filenames 2>/dev/null; fi
  return 0
}

complete -F _embermq embermq
`;

/** The script for zsh; it can also be a file \`_embermq\` in a folder of \`fpath\`. */
export const ZSH_SCRIPT = `#compdef embermq
# Completion of embermq for zsh: eval "$(embermq completion zsh)"
${SHARED.replaceAll('EMULATE', 'emulate -L sh')}
_embermq() {
  local place kind files REPLY cur=\${words[CURRENT]}
  _embermq_walk "\${(@)words[2,CURRENT-1]}"
  _embermq_offer "$cur"
  if [[ $cur == -*=* ]]; then compset -P '*='; fi
  if [[ -n $REPLY ]]; then compadd -- \${=REPLY}; fi
  case $files in
    file) _files ;;
    folder) _files -/ ;;
  esac
}

if [[ $funcstack[1] == _embermq ]]; then
  _embermq "$@"
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
  compdef _embermq embermq
fi
`;
