# SPDX-License-Identifier: GPL-2.0
"""The series as it lies in the repository: patches/<base>/series, the mails
beside it, and the new files in their rooms."""
import os
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from . import env
from .git import Failure, clean_env, decode, run_git


@dataclass
class Entry:
    """One patch: a commit once it is applied."""
    section: str
    name: str
    subject: str = ""
    body: str = ""
    diff: str = ""
    # path -> (mode, blob); for an entry just parsed, None for each
    files: dict = field(default_factory=dict)
    # the first kernel's mail, where its text was read from that one
    shared: str = ""

    @property
    def message(self):
        return f"{self.subject}\n\n{self.body}".strip() + "\n"


@dataclass
class Series:
    """The parsed series file. head: the comment before all sections"""
    head: str
    sections: list = field(default_factory=list)
    entries: list = field(default_factory=list)


# --- the series file ---------------------------------------------------------

def logical_lines(text):
    """(number, line), with continued lines joined."""
    number = 1
    for line in re.split(r"(?<!\\)\n", text.removesuffix("\n")):
        yield number, line.replace("\\\n", " ").strip()
        number += line.count("\n") + 1


def parse_entry(series, words, where):
    name, *paths = words
    owner = {path: entry.name for entry in series.entries for path in entry.files}
    if not re.fullmatch(r"[\w.+-]+\.patch", name):
        raise Failure(f"{where}: '{name}': wanted is '<name>.patch <new file>...'")
    if not series.sections:
        raise Failure(f"{where}: {name} comes before any [section]")
    for path in paths:
        if path in owner:
            raise Failure(f"{where}: {path} is brought by {owner[path]} already")
        owner[path] = name
    return Entry(series.sections[-1], name, files=dict.fromkeys(paths))


def parse_section(series, line, where):
    match = re.fullmatch(r"\[([a-z0-9][a-z0-9-]*)\]", line)
    if not match:
        raise Failure(f"{where}: '{line}': a section is [name] in a-z, 0-9 and -")
    if match[1] in series.sections:
        raise Failure(f"{where}: section {match[1]} starts twice")
    return match[1]


def parse_series(text, where="series"):
    series = Series(re.match(r"(#.*\n)*", text)[0])
    for number, line in logical_lines(text):
        if line.startswith("["):
            series.sections.append(parse_section(series, line, f"{where}:{number}"))
        elif line and number > series.head.count("\n"):
            series.entries.append(parse_entry(series, line.split(), f"{where}:{number}"))
    return series


def format_series(series):
    lines = [series.head]
    for section in series.sections:
        lines += [f"[{section}]", *(" \\\n\t".join([entry.name, *sorted(entry.files)])
                                    for entry in series.entries if entry.section == section), ""]
    return "\n".join(lines)


# --- mails -------------------------------------------------------------------

def parse_mail(text):
    """(subject, body, diff), as `git am` would read them."""
    with tempfile.TemporaryDirectory() as tmp:
        message, patch = Path(tmp, "message"), Path(tmp, "patch")
        info = run_git(["mailinfo", "--no-scissors", "--encoding=UTF-8", message, patch],
                       clean_env(), tmp, text)
        body = decode(message.read_bytes()).strip("\n")
        diff = decode(patch.read_bytes())
    subject = re.search(r"^Subject: (.*)$", info, re.M)
    start = re.search(r"^diff --git ", diff, re.M)
    return subject[1].strip() if subject else "", body, diff[start.start():] if start else ""


def format_mail(git, entry, commit, hooks):
    """The mail of an entry, with the commit's changes of these paths only."""
    text = git("format-patch", "-1", "--stdout", "--always", "--sparse", "--zero-commit",
               "--no-signature", "--no-encode-email-headers", "--full-index", "--no-renames",
               "--no-stat", commit, "--", *(sorted(hooks) or ["no hooks"]))
    if parse_mail(text)[:2] != (entry.subject, entry.body):
        raise Failure(f"the message of '{entry.subject}' would not survive a mail: no line of it "
                      "may begin with '---', 'diff -' or 'Index:', no subject with '['")
    return text


def file_name(number, subject):
    slug = re.sub(r"[^A-Za-z0-9_]+", "-", subject).strip("-")[:52].rstrip("-")
    return f"{number:04d}-{slug}.patch"


# --- rooms -------------------------------------------------------------------

def file_mode(path):
    return "100755" if path.stat().st_mode & 0o100 else "100644"


def hash_files(git, root, paths):
    """{path: (mode, blob)} of those files below root that there are, stored in git."""
    paths = [path for path in paths if (root / path).is_file()]
    names = "".join(f"{root / path}\n" for path in paths)
    blobs = git("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=names).split()
    return {path: (file_mode(root / path), blob) for path, blob in zip(paths, blobs)}


def write_file(path, data, mode="100644"):
    """Replaces a file as a whole, unless it is so already."""
    if path.is_file() and path.read_bytes() == data and file_mode(path) == mode:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".new~")
    temporary.write_bytes(data)
    temporary.chmod(int(mode[-3:], 8))
    os.replace(temporary, path)
    return True


def load_series(git):
    """The series with all it refers to."""
    file = env.PATCHES / "series"
    try:
        series = parse_series(file.read_text(), env.shown(file))
    except OSError as error:
        raise Failure(f"cannot read {file}: {error.strerror}") from error
    subjects = {}
    for entry in series.entries:
        load_mail(entry, env.PATCHES)
        if entry.subject in subjects:
            raise Failure(f"{entry.name} and {subjects[entry.subject]} have the same subject")
        subjects[entry.subject] = entry.name
    hashes = hash_files(git, env.ROOT, [path for e in series.entries for path in e.files])
    for entry in series.entries:
        for path in entry.files:
            if path not in hashes or (env.ROOT / path).is_symlink():
                raise Failure(f"{path} is missing, or no plain file: the series says that "
                              f"{entry.name} brings it")
            entry.files[path] = hashes[path]
    return series


def twin(where, name):
    """The mail of the first kernel's series whose name is the same but for its
    number, or None. where: the directory of another kernel's series."""
    def title(full):
        return re.sub(r"^\d+-", "", full)
    found = [path for path in (where.parent / env.FIRST).glob("*.patch")
             if path.parent != where and title(path.name) == title(name)]
    return found[0] if len(found) == 1 else None


def load_mail(entry, where):
    """A mail that `where` does not have is its twin, whose hunks git moves."""
    file = where / entry.name
    first = twin(where, entry.name)
    if first and not file.exists():
        file, entry.shared = first, f"{env.FIRST}/{first.name}"
    try:
        text = decode(file.read_bytes())
    except OSError as error:
        raise Failure(f"{where.name}/{entry.name} is in the series: {error.strerror}"
                      + (f", there or in {env.FIRST}" if where.name != env.FIRST else "")
                      ) from error
    entry.subject, entry.body, entry.diff = parse_mail(text)
    if entry.body == env.AS_FIRST:
        if not first:
            raise Failure(f"{where.name}/{entry.name}: {env.FIRST} has no one mail of that name")
        entry.body = parse_mail(decode(first.read_bytes()))[1]
    if not entry.subject:
        raise Failure(f"{entry.name} is no mail: it has no Subject")
    if not entry.diff and not entry.files:
        raise Failure(f"{entry.name} brings nothing: no hunk, and no new file in the series")
