# SPDX-License-Identifier: GPL-2.0
"""The modelled devices, as profiles.ini describes them."""
import configparser
import pathlib

PATH = pathlib.Path(__file__).with_name("profiles.ini")


class ProfileError(Exception):
    """profiles.ini, or what was asked of it, is wrong."""


def load(path=PATH):
    """{name: {key: text}}, with what is common filled in."""
    parser = configparser.ConfigParser(
        default_section="common", delimiters=("=",), comment_prefixes=(";",),
        interpolation=None, strict=True)
    parser.optionxform = str
    try:
        with open(path, encoding="ascii") as text:
            parser.read_file(text)
    except (OSError, configparser.Error, UnicodeDecodeError) as error:
        raise ProfileError(str(error)) from error
    found = {name: dict(parser[name]) for name in parser.sections()}
    for name, keys in found.items():
        for key, value in keys.items():
            if not value or " " in value:
                raise ProfileError(f"{path}: [{name}] {key}: '{value}' is not "
                                   "one word")
    return found


def scale(profile):
    """How much slower than a real machine the device is made."""
    return int(profile["time_scale"]) / 100
