"""`getpass` for cells: the window, or the terminal, asks without showing what is typed."""

import os

import _tracebook_kernel as kernel

__all__ = ["getpass", "getuser", "GetPassWarning"]


class GetPassWarning(UserWarning):
    pass


def getpass(prompt="Password: ", stream=None, *, echo_char=None):
    """Ask for a line that is not shown."""
    return kernel.ask(str(prompt), True)


def getuser():
    """The user's name, from the environment or the system's list of users."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        if user := os.environ.get(name):
            return user
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError, OSError) as error:
        raise OSError("no username set in the environment") from error
