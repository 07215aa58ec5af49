# SPDX-License-Identifier: GPL-2.0
"""refresh: three-way, between what was made of the rooms, the rooms as they are
now, and the commits in the tree. Whoever changed wins; if both did, nobody.
"""

import re

from . import env
from .build import Builder, as_printed, edited, read_commits
from .env import say, shown, step
from .files import (Entry, Series, file_name, format_mail, format_series, hash_files, load_mail,
                    load_series, twin, write_file)
from .git import Failure, encode
from .tree import BASE_REF, MADE, made_series, open_tree, publish, uncommitted


def normal(diff):
    """A diff without what changes when its surroundings do."""
    return re.sub(r"^index .*\n", "", re.sub(r"^@@ .*? @@", "@@", diff, flags=re.M), flags=re.M)


def pick(what, made, room, head, key=lambda value: value):
    if key(room) == key(made):
        return head
    if key(head) in (key(made), key(room)):
        return room
    raise Failure(f"{what} was changed in the repository and, differently, in {shown(env.TREE)}; "
                  "nothing was written. Make one of the two as the other, or as it was, "
                  "and refresh again")


def content(entry):
    return normal(entry.diff), sorted(entry.files)


def partners(made, head):
    """{position in head: position in made}, and what of made is left: by subject,
    else by content, since a reworded subject is still the same patch."""
    by_subject = {entry.subject: i for i, entry in enumerate(made)}
    found = {k: by_subject[entry.subject] for k, entry in enumerate(head)
             if entry.subject in by_subject}
    left = [i for i in range(len(made)) if i not in found.values()]
    for k, entry in enumerate(head):
        same = [i for i in left if content(made[i]) == content(entry)]
        if k not in found and same:
            found[k] = same[0]
            left.remove(same[0])
    return found, left


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
    return {name: sections.get(name, [""]) for name in dict.fromkeys((*order, *sections))}


def merge_mails(rooms, made, head, found, left):
    for k, i in found.items():
        old, room, new = made[i], rooms[i], head[k]
        new.subject, new.body = pick(f"{room.name} (its message)", (old.subject, old.body),
                                     (room.subject, room.body), (new.subject, new.body))
        new.diff = pick(f"{room.name} (its hunks)", old.diff, room.diff, new.diff, normal)
        new.lead = room.lead
    for i in left:
        old, room = made[i], rooms[i]
        pick(room.name, (old.message, normal(old.diff)), (room.message, normal(room.diff)), None)


def merge_files(git, made, head):
    """Sets the files of head's entries; returns those that are to be removed."""
    old = {path: state for entry in made for path, state in entry.files.items()}
    new = {path: state for entry in head for path, state in entry.files.items()}
    room = hash_files(git, env.ROOT, {**old, **new})
    for path in {**old, **new}:
        new[path] = pick(path, old.get(path), room.get(path), new.get(path))
    for entry in head:
        entry.files = {path: new[path] for path in entry.files if new[path]}
    return [path for path in old if not new[path] and path in room]


def merge(git, rooms, made, head):
    """The series to be written, and the files to be removed. made and rooms
    match entry by entry; head is what the tree's commits say."""
    found, left = partners(made, head)
    sections = assign_sections(head, made, found, rooms.sections)
    merge_mails(rooms.entries, made, head, found, left)
    gone = merge_files(git, made, head)
    for number, entry in enumerate(head, 1):
        entry.name = file_name(number, entry.subject)
    return Series(rooms.head, sections, head, rooms.tail), gone


# --- rooms to entries and back ------------------------------------------------

def is_shared(builder, entry, parent, commit):
    """Would the first kernel's mail make this very commit? Then it is not kept
    twice."""
    other = twin(env.PATCHES, entry.name)
    if not other:
        return False
    same = Entry(entry.section, other.name, files=entry.files)
    load_mail(same, other.parent)
    try:
        return same.message == entry.message and builder.apply(parent, same) == commit
    except Failure:
        return False


def mails(git, builder, series, commits):
    """{file name: text} of those that the series has for itself"""
    return {entry.name: format_mail(git, entry, commit, edited(entry.diff))
            for entry, parent, commit in zip(series.entries, [builder.base, *commits], commits)
            if not is_shared(builder, entry, parent, commit)}


def write_rooms(git, series, texts, gone, stale):
    """Writes what changed and says so."""
    new = {path: state for entry in series.entries for path, state in entry.files.items()}
    room = hash_files(git, env.ROOT, new)
    files = [(path, git.blob(new[path][1]), new[path][0]) for path in new
             if new[path] != room.get(path)]
    files += [(shown(env.PATCHES / name), encode(text), "100644") for name, text in texts.items()]
    for path, data, mode in files:
        if write_file(env.ROOT / path, data, mode):
            say(f"wrote {path}")
    write_file(env.PATCHES / "series", encode(format_series(series)))
    for path in [*gone, *(shown(env.PATCHES / name) for name in sorted(stale))]:
        (env.ROOT / path).unlink(missing_ok=True)
        say(f"removed {path}")


def check_refresh(git, rooms):
    """The series that the tree was made of."""
    dirty = uncommitted(git)
    if dirty:
        raise Failure(f"{shown(env.TREE)} has uncommitted changes ({dirty[0]}): "
                      "commit or stash them")
    then = made_series(git)
    if then is None or then.outline() != rooms.outline():
        if git.ref("HEAD") == git.ref(MADE):
            raise Failure(f"{shown(env.TREE)} has no new commits; to take the series over: "
                          "make tree")
        raise Failure(f"{shown(env.PATCHES / 'series')} was edited after the tree was made; put "
                      "it back (git stash), refresh, and edit it again")
    return then


def cmd_refresh(_args):
    git = open_tree()
    base, head = git.ref(BASE_REF), git.ref("HEAD")
    rooms = load_series(git)
    made = as_printed(git, base, MADE, check_refresh(git, rooms))
    check_commits(git, base, head)
    builder = Builder(git, base)
    own = {entry.name for entry in rooms.entries if not entry.shared}
    rooms.entries = as_printed(git, base, [base, *builder.commits(rooms.entries)][-1], rooms)
    entries = fold(read_commits(git, base, head))
    check_subjects(entries)
    series, gone = merge(git, rooms, made, entries)
    commits = builder.commits(series.entries)
    series.entries = as_printed(git, base, [base, *commits][-1], series)
    texts = mails(git, builder, series, commits)
    write_rooms(git, series, texts, gone, own.difference(texts))
    # once more as the mails have them, for the next `make tree` to find in the cache
    report(git, head, publish(git, base, series, builder.commits(series.entries)))


def report(git, head, tip):
    for path in git("ls-files", "-z", "--others", "--exclude-standard").split("\0")[:-1]:
        say(f"note: not committed in the tree, so not brought back: {path}")
    if git.tree_of(head) == git.tree_of(tip):
        step("the tree made of the series equals the one that was committed")
    else:
        step("the tree now has newer edits of the repository, too; what was committed is "
             f"{head[:12]}")
