# SPDX-License-Identifier: GPL-2.0
"""The modelled devices, as profiles.ini describes them."""
import configparser
import pathlib

PATH = pathlib.Path(__file__).with_name("profiles.ini")


def load(path=PATH):
    """{name: {key: text}}, with what is common filled in."""
    parser = configparser.ConfigParser(
        default_section="common", delimiters=("=",), comment_prefixes=(";",),
        interpolation=None, strict=True)
    parser.optionxform = str
    parser.read_string(path.read_text(encoding="ascii"), str(path))
    return {name: dict(parser[name]) for name in parser.sections()}


def scale(profile):
    """How much slower than a real machine the device is made."""
    return int(profile["time_scale"]) / 100
