# SPDX-License-Identifier: GPL-2.0
"""refresh: the commits in the tree become the series. The rooms must be what the tree
was made of: to bring edits on both sides together is git's business."""
import contextlib
import re

from . import env
from .build import Builder, as_printed, edited, read_commits
from .env import say, shown, step
from .files import (Entry, Series, file_name, format_mail, format_series, hash_files, load_mail,
                    load_series, twin, write_file)
from .git import Failure, encode
from .tree import BASE_REF, MADE, open_tree, publish, uncommitted


def normal(diff):
    """A diff without what changes when its surroundings do."""
    return re.sub(r"^index .*\n", "", re.sub(r"^@@ .*? @@", "@@", diff, flags=re.M), flags=re.M)


def content(entry):
    return normal(entry.diff), sorted(entry.files)


def partners(made, head):
    """{position in head: position in made}: by subject, else by content, since a
    reworded subject is still the same patch."""
    by_subject = {entry.subject: i for i, entry in enumerate(made)}
    found = {k: by_subject[entry.subject] for k, entry in enumerate(head)
             if entry.subject in by_subject}
    left = [i for i in range(len(made)) if i not in found.values()]
    for k, entry in enumerate(head):
        same = [i for i in left if content(made[i]) == content(entry)]
        if k not in found and same:
            found[k] = same[0]
            left.remove(same[0])
    return found


def check_commits(git, base, head):
    if git("rev-list", "--merges", f"{base}..{head}"):
        raise Failure("there are merges on top of the base; a series is a line: git rebase")
    if git.get("merge-base", base, head) != base:
        raise Failure("HEAD in the tree is not on top of the ref base")


def check_subjects(entries):
    seen = set()
    for entry in entries:
        if re.match(r"(fixup|squash|amend)! ", entry.subject):
            raise Failure(f"'{entry.subject}': first git rebase -i --autosquash base")
        if not entry.subject or entry.subject in seen:
            raise Failure(f"two commits have the subject '{entry.subject}'")
        seen.add(entry.subject)


def fold(found):
    """Drops commits of which nothing is left: they changed files that an
    earlier patch brings, and these are taken in their last state anyway."""
    owner, kept = {}, []
    for entry, changed in found:
        owner.update(dict.fromkeys(entry.files, entry.subject))
        if entry.diff or entry.files:
            kept.append(entry)
            continue
        into = sorted({f"'{owner[path]}'" for path in changed if path in owner})
        say(f"folded '{entry.subject}'" + (f" into {', '.join(into)}" if into else ": empty"))
    return kept


def assign_sections(head, made, found, sections):
    """Known: as before. New: as its Section: trailer says, or as the one before.
    The sections, in the order of their mails."""
    section, order = next(iter(sections), ""), []
    for k, entry in enumerate(head):
        if k in found:
            section = made[found[k]].section
        section = entry.section = entry.section or section
        if not section:
            raise Failure(f"'{entry.subject}': no section; add a line 'Section: <name>' to its "
                          "message")
        if section in order[:-1]:
            raise Failure(f"'{entry.subject}' of section {section} comes after one of {order[-1]}: "
                          "move it, or write 'Section: <name>' into its message")
        if section not in order:
            order.append(section)
    return list(dict.fromkeys((*order, *sections)))


def take_over(rooms, head):
    """The series of what the tree's commits say, and the files to be removed."""
    made = rooms.entries
    found = partners(made, head)
    sections = assign_sections(head, made, found, rooms.sections)
    for k, entry in enumerate(head):
        entry.name = file_name(k + 1, entry.subject)
    files = {path for entry in head for path in entry.files}
    gone = [path for entry in made for path in entry.files if path not in files]
    return Series(rooms.head, sections, head), gone


# --- rooms to entries and back ------------------------------------------------

def kept(git, builder, entry, parent, commit):
    """The mail of an entry; nothing if the first kernel's makes this very commit, no
    message if that has the same."""
    text, other = format_mail(git, entry, commit, edited(entry.diff)), twin(env.PATCHES, entry.name)
    if not other:
        return text
    same = Entry(entry.section, other.name, files=entry.files)
    load_mail(same, other.parent)
    if same.message != entry.message:
        return text
    same.shared = f"{env.FIRST}/{other.name}"
    with contextlib.suppress(Failure):
        if builder.apply(parent, same) == commit:
            return ""
    return text.replace(entry.body, env.AS_FIRST, 1) if entry.body else text


def mails(git, builder, series, commits):
    """{file name: text} of those that the series has for itself"""
    return {entry.name: text for entry, parent, commit in zip(
        series.entries, [builder.base, *commits], commits)
            if (text := kept(git, builder, entry, parent, commit))}


def write_rooms(git, series, texts, gone, stale):
    """Writes what changed and says so."""
    new = {path: state for entry in series.entries for path, state in entry.files.items()}
    room = hash_files(git, env.ROOT, new)
    files = [(path, git("cat-file", "blob", blob), mode) for path, (mode, blob) in new.items()
             if room.get(path) != (mode, blob)]
    files += [(shown(env.PATCHES / name), text, "100644") for name, text in texts.items()]
    for path, text, mode in files:
        if write_file(env.ROOT / path, encode(text), mode):
            say(f"wrote {path}")
    write_file(env.PATCHES / "series", encode(format_series(series)))
    for path in [*gone, *(shown(env.PATCHES / name) for name in sorted(stale))]:
        (env.ROOT / path).unlink(missing_ok=True)
        say(f"removed {path}")


def check_tree(git):
    dirty = uncommitted(git)
    if dirty:
        raise Failure(f"{shown(env.TREE)} has uncommitted changes ({dirty[0]}): "
                      "commit or stash them")


def check_rooms(git, tip):
    """tip: what would be made of the rooms as they are now"""
    made = git.ref(MADE)
    if tip == made:
        return
    if git.ref("HEAD") == made:
        raise Failure(f"{shown(env.TREE)} has no new commits; to take the series over: make tree")
    tree = f"git -C {shown(env.TREE)}"
    raise Failure(f"the series, or a file that it lists, was edited after {shown(env.TREE)} was "
                  "made; nothing was written. Either put the edits away (git stash), refresh, and "
                  f"bring them back (git stash pop), or make the tree anew: {tree} branch mine; "
                  f"{tree} reset --hard {MADE}; make tree; {tree} cherry-pick {made[:12]}..mine")


def check_new_files(git, made, head):
    """Where a new file is to go, there may be no other."""
    known = {path for entry in made for path in entry.files}
    new = {path: state for entry in head for path, state in entry.files.items()
           if path not in known}
    for path, state in hash_files(git, env.ROOT, new).items():
        if state != new[path]:
            raise Failure(f"{path}, new in {shown(env.TREE)}, is in the repository already, and "
                          "differs; nothing was written. Make one as the other, or move it away")


def cmd_refresh(_args):
    git = open_tree()
    base, head = git.ref(BASE_REF), git.ref("HEAD")
    rooms, builder = load_series(git), Builder(git, base)
    check_tree(git)
    check_rooms(git, [base, *builder.commits(rooms.entries)][-1])
    check_commits(git, base, head)
    own = {entry.name for entry in rooms.entries if not entry.shared}
    rooms.entries = as_printed(git, base, MADE, rooms)
    entries = fold(read_commits(git, base, head))
    check_subjects(entries)
    check_new_files(git, rooms.entries, entries)
    series, gone = take_over(rooms, entries)
    commits = builder.commits(series.entries)
    series.entries = as_printed(git, base, [base, *commits][-1], series)
    texts = mails(git, builder, series, commits)
    write_rooms(git, series, texts, gone, own.difference(texts))
    # once more as the mails have them, for the next `make tree` to find in the cache
    report(git, head, publish(git, base, series, builder.commits(series.entries)))


def report(git, head, tip):
    for path in git("ls-files", "-z", "--others", "--exclude-standard").split("\0")[:-1]:
        say(f"note: not committed in the tree, so not brought back: {path}")
    if git.tree_of(head) != git.tree_of(tip):
        raise Failure(f"the series makes another tree than {head[:12]}, which was committed")
    step("the tree made of the series equals the one that was committed")
