# SPDX-License-Identifier: GPL-2.0
"""The series as it lies in the repository: patches/<base>/series, the mails
beside it, and the new files in their rooms.
"""

import os
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from .env import FIRST
from .git import Failure, clean_env, decode, encode, run_git


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
    comment: list = field(default_factory=list)
    # the first kernel's mail, where its text was read from that one
    shared: str = ""

    @property
    def message(self):
        return f"{self.subject}\n\n{self.body}".strip() + "\n"


@dataclass
class Series:
    """The parsed series file. `comments` belong to the section they precede."""
    sections: list = field(default_factory=list)
    entries: list = field(default_factory=list)
    comments: dict = field(default_factory=dict)
    head: list = field(default_factory=list)
    tail: list = field(default_factory=list)

    def outline(self):
        return [self.sections, [(e.section, e.name, sorted(e.files)) for e in self.entries]]


# --- the series file ---------------------------------------------------------

def logical_lines(text):
    """(number, line), with continued lines joined."""
    pending, start = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        start = start or number
        if line.endswith("\\"):
            pending += line[:-1] + " "
            continue
        yield start, (pending + line).strip()
        pending, start = "", 0
    if pending:
        yield start, pending.strip()


def check_path(path, where):
    parts = path.split("/")
    if path.startswith("/") or any(part in ("", ".", "..", ".git") for part in parts):
        raise Failure(f"{where}: '{path}' is not the path of a file below the repository")
    if re.search(r"[*?\[\]]", path):
        raise Failure(f"{where}: '{path}': patterns are not expanded, list each file")


def parse_entry(series, words, where, owner):
    name, *paths = words
    if not re.fullmatch(r"[\w.+-]+\.patch", name):
        raise Failure(f"{where}: '{name}': wanted is '<name>.patch <new file>...'")
    if not series.sections:
        raise Failure(f"{where}: {name} comes before any [section]")
    if any(name == entry.name for entry in series.entries):
        raise Failure(f"{where}: {name} is listed twice")
    for path in paths:
        check_path(path, where)
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
    series.sections.append(match[1])


def parse_series(text, where="series"):
    series, owner, comments = Series(), {}, []
    for number, line in logical_lines(text):
        here = f"{where}:{number}"
        if line.startswith("#"):
            comments.append(line)
        elif not line:
            # A comment followed by nothing, on top: the file's own.
            if not series.sections and not series.head:
                series.head, comments = comments, []
        elif line.startswith("["):
            parse_section(series, line, here)
            series.comments[series.sections[-1]], comments = comments, []
        else:
            entry = parse_entry(series, line.split(), here, owner)
            entry.comment, comments = comments, []
            series.entries.append(entry)
    series.tail = comments
    return series


def format_entry(entry):
    lines = [*entry.comment]
    words = [entry.name, *sorted(entry.files)]
    return lines + [" \\\n\t".join(words)]


def format_series(series):
    blocks = [series.head] if series.head else []
    for section in series.sections:
        block = [*series.comments.get(section, []), f"[{section}]"]
        for entry in series.entries:
            if entry.section == section:
                block += format_entry(entry)
        blocks.append(block)
    if series.tail:
        blocks.append(series.tail)
    return "\n".join("\n".join(block) + "\n" for block in blocks)


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
               "--stat=72", commit, "--", *(sorted(hooks) or ["no hooks"]))
    if parse_mail(text)[:2] != (entry.subject, entry.body):
        raise Failure(f"the message of '{entry.subject}' would not survive a mail: no line of it "
                      "may begin with '---', 'diff -' or 'Index:', no subject with '['")
    return text


def file_name(number, subject):
    slug = re.sub(r"[^A-Za-z0-9_]+", "-", subject).strip("-")[:52].rstrip("-")
    return f"{number:04d}-{slug}.patch"


def rejected(diff, complaint):
    """The hunks that git's complaint is about; git itself shows only lines."""
    found = []
    for path, line in re.findall(r"^error: patch failed: (.+):(\d+)$", complaint, re.M):
        part = re.search(rf"^diff --git a/{re.escape(path)} .*?(?=^diff --git |\Z)", diff,
                         re.M | re.S)
        hunk = part and re.search(rf"^@@ -{line}[ ,].*?(?=^@@ |\Z)", part[0], re.M | re.S)
        found.append((path, hunk[0] if hunk else part[0] if part else ""))
    return found


# --- rooms -------------------------------------------------------------------

def file_mode(path):
    return "100755" if path.stat().st_mode & 0o100 else "100644"


def hash_files(git, root, paths):
    """{path: (mode, blob)} of files in the rooms, stored in git."""
    paths = list(paths)
    names = "".join(f"{root / path}\n" for path in paths)
    blobs = git("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=names).split()
    return {path: (file_mode(root / path), blob) for path, blob in zip(paths, blobs)}


def check_room(root, path, name):
    full = root / path
    if full.is_symlink() or (full.exists() and not full.is_file()):
        raise Failure(f"{path}, listed with {name}, is not a plain file")
    if not full.exists():
        raise Failure(f"{path} is missing: the series says that {name} brings it")


def write_file(path, data, mode="100644"):
    """Replaces a file as a whole, unless it is so already."""
    bits = 0o755 if mode == "100755" else 0o644
    if path.is_file() and path.read_bytes() == data and file_mode(path) == mode:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".new~")
    temporary.write_bytes(data)
    temporary.chmod(bits)
    os.replace(temporary, path)
    return True


def load_series(git, root, where):
    """The series with all it refers to."""
    file = where / "series"
    try:
        series = parse_series(file.read_text(), file.relative_to(root))
    except OSError as error:
        raise Failure(f"cannot read {file}: {error.strerror}") from error
    subjects = {}
    for entry in series.entries:
        load_mail(entry, where)
        if entry.subject in subjects:
            raise Failure(f"{entry.name} and {subjects[entry.subject]} have the same subject")
        subjects[entry.subject] = entry.name
        for path in entry.files:
            check_room(root, path, entry.name)
    hashes = hash_files(git, root, [path for e in series.entries for path in e.files])
    for entry in series.entries:
        entry.files = {path: hashes[path] for path in entry.files}
    return series


def twin(where, name):
    """The mail of the first kernel's series whose name is the same but for its
    number, or None. where: the directory of another kernel's series."""
    def title(full):
        return re.sub(r"^\d+-", "", full)
    found = [path for path in (where.parent / FIRST).glob("*.patch")
             if path.parent != where and title(path.name) == title(name)]
    return found[0] if len(found) == 1 else None


def load_mail(entry, where):
    """A mail that `where` does not have is its twin, whose hunks git moves."""
    file = where / entry.name
    other = None if file.exists() else twin(where, entry.name)
    if other:
        file, entry.shared = other, f"{FIRST}/{other.name}"
    try:
        text = decode(file.read_bytes())
    except OSError as error:
        raise Failure(f"{where.name}/{entry.name} is in the series: {error.strerror}"
                      + (f", there or in {FIRST}" if where.name != FIRST else "")) from error
    entry.subject, entry.body, entry.diff = parse_mail(text)
    if not entry.subject:
        raise Failure(f"{entry.name} is no mail: it has no Subject")
    if not entry.diff and not entry.files:
        raise Failure(f"{entry.name} brings nothing: no hunk, and no new file in the series")


def store_blob(git, text):
    return git("hash-object", "-w", "--stdin", stdin=text).strip()


def read_blob(git, blob):
    return encode(git("cat-file", "blob", blob))
