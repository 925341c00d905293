"""streamtensor completion: prints the script by which a shell completes the command line."""

import shlex

from .. import options as compiler_options
from ..progress import Progress
from .arguments import new_command

SHELLS = ("bash", "zsh")
ZSH = "#compdef streamtensor\nautoload -U +X bashcompinit && bashcompinit\n"  # runs that of bash
FOUND = {  # when they are completed
    "--platform": "$(streamtensor platforms | cut -d ' ' -f 1)",
    "--channel-depth": """$(for i in "${COMP_WORDS[@]}"; do [ -f "$i/design.mlir" ] && sed -n \
's/.*"stream.fifo"() {.*name = "\\([^"]*\\)".*/\\1=/p' "$i/design.mlir"; done)""",
}
SCRIPT = """\
# To use: source <(streamtensor completion {shell})
_streamtensor()
{{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
    local options="--help --version"
    [ "$word" = = ] && word=
    [ "$before" = = ] && before=${{COMP_WORDS[COMP_CWORD-2]}}
    case "${{COMP_WORDS[1]}} $before" in
{values}
    esac
    case "${{COMP_WORDS[1]}}" in
{options}
    esac
    if [ "${{word#-}}" != "$word" ]; then
        COMPREPLY=($(compgen -W "$options" -- "$word"))
    elif [ "$COMP_CWORD" = 1 ]; then
        COMPREPLY=($(compgen -W "{commands}" -- "$word"))
    else
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}}
complete -o filenames -F _streamtensor streamtensor
"""


def add(commands, name: str) -> None:
    def run(options, progress: Progress) -> int:
        from ..cli import PASSED_ON

        print(script_of(options.shell, commands.choices, {*PASSED_ON, "run"}), end="")
        return 0

    command = new_command(
        commands, name, "Print a script by which the shell completes options and values.", run
    )
    command.add_argument("shell", choices=SHELLS, help="`source <(streamtensor completion bash)`")


def _words_of(command: str, parser, passed_on: bool) -> dict[str, list[str]]:
    """The words that may follow each option; none: anything."""
    ours = {
        flag: [str(word) for word in action.choices or ()]
        for action in parser.actions()
        for flag in action.option_strings
        if flag.startswith("--")
    }
    known = compiler_options.words_by_flag()
    theirs = compiler_options.words_by_flag(command) if passed_on else {}
    return {flag: words or list(known.get(flag, ())) for flag, words in {**theirs, **ours}.items()}


def script_of(shell: str, parsers, passed_on) -> str:
    """parsers: {command: parser}; passed_on: names of commands of the compiler"""
    values, options = [], []
    for command, parser in parsers.items():
        words = _words_of(command, parser, command in passed_on)
        options.append(f'    {command}) options="{" ".join(words)}" ;;')
        for flag, known in words.items():
            what = shlex.join(known) if known else FOUND.get(flag)
            if what:
                reply = f'COMPREPLY=($(compgen -W "{what}" -- "$word"))'
                values.append(f'    "{command} {flag}") {reply}; return ;;')
    script = SCRIPT.format(
        shell=shell,
        values="\n".join(values),
        options="\n".join(options),
        commands=" ".join(parsers),
    )
    return (ZSH if shell == "zsh" else "") + script
