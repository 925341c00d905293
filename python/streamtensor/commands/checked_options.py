"""Options of a command that the compiler knows too: checked, and as its settings."""

from pathlib import Path

from .. import options as compiler_options
from ..errors import Error
from ..progress import Progress


def checked_platform(options, progress: Progress, command: str = "compile") -> str:
    """The platform; all options are checked by the compiler before minutes of loading and
    exporting.
    """
    platform = compiler_options.value(options.settings, "platform", command)
    if options.platform is None:
        progress.note(f"platform {platform} (default)")
    theirs = {key: value for key, value in options.settings.items() if key != "quant"}
    if options.quant and not options.quant.startswith("int8"):
        theirs["quant"] = [options.quant]
    compiler_options.check(theirs, command)
    return platform


def other_settings(options) -> compiler_options.Settings:
    """The settings beside the platform and the scheme."""
    return {
        name: values
        for name, values in options.settings.items()
        if name not in ("platform", "quant")
    }


def scheme_of(options) -> str | None:
    """The scheme for `stc compile`; None: no quantization."""
    if options.quant is None:
        return None
    from ..quantize import Scheme

    return None if Scheme.parse(options.quant).name == "fp32" else options.quant


def refuse(options, strange: bool, of: str, **given) -> None:
    """Rejects an option that is given where it does nothing."""
    option = first_set((f"--{name.replace('_', '-')}", value) for name, value in given.items())
    if strange and option:
        raise Error(f"{option} has no effect with {options.model}", f"it is an option of {of}")


def first_set(options) -> str | None:
    """The name of the first option that is set."""
    return next((name for name, value in options if value), None)


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise Error(f"{path}: not UTF-8: byte {error.start}", "accepted is plain text") from None
