# SPDX-License-Identifier: GPL-2.0
"""refresh: three-way, between what was made of the rooms, the rooms as they are
now, and the commits in the tree. Whoever changed wins; if both did, nobody.
"""

import re

from .build import Builder, hook_diff, read_commits
from .env import PATCHES, ROOT, TREE, say, shown, step
from .files import (Entry, Series, file_name, format_mail, format_series, hash_files, load_mail,
                    load_series, read_blob, twin, write_file)
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
    raise Failure(f"{what} was changed in the repository and, differently, in {shown(TREE)}; "
                  "nothing was written. Make one of the two as the other, or as it was, "
                  "and refresh again")


def content(entry):
    return normal(entry.diff), sorted(entry.files)


def partners(made, head):
    """{position in head: position in made}: by subject, else by content, since
    a reworded subject is still the same patch."""
    by_subject = {entry.subject: i for i, entry in enumerate(made)}
    found = {k: by_subject[entry.subject] for k, entry in enumerate(head)
             if entry.subject in by_subject}
    left = [i for i in range(len(made)) if i not in found.values()]
    for k, entry in enumerate(head):
        twin = next((i for i in left if content(made[i]) == content(entry)), None)
        if k not in found and twin is not None:
            found[k] = twin
            left.remove(twin)
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


def fold(found, say):
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
    """Known: as before. New: as its Section: trailer says, or as the one before."""
    section = sections[0] if sections else ""
    for k, entry in enumerate(head):
        if k in found:
            section = made[found[k]].section
        section = entry.section = entry.section or section
        if not section:
            raise Failure(f"'{entry.subject}': no section; add a line 'Section: <name>' to its "
                          "message")
        if section not in sections:
            sections.append(section)
    order = [sections.index(entry.section) for entry in head]
    for k in range(1, len(order)):
        if order[k] < order[k - 1]:
            raise Failure(f"'{head[k].subject}' of section {head[k].section} comes after one of "
                          f"{head[k - 1].section}: move it, or write 'Section: <name>' into "
                          "its message")


def merge_mails(rooms, made, head, found, left):
    for k, i in found.items():
        old, room, new = made[i], rooms.entries[i], head[k]
        what = f"{room.name} (its message)"
        new.subject, new.body = pick(what, (old.subject, old.body), (room.subject, room.body),
                                     (new.subject, new.body))
        new.diff = pick(f"{room.name} (its hunks)", old.diff, room.diff, new.diff, normal)
        new.comment = room.comment
    for i in left:
        old, room = made[i], rooms.entries[i]
        pick(room.name, (old.message, normal(old.diff)), (room.message, normal(room.diff)), None)


def merge_files(git, root, made, head):
    """Sets the files of head's entries; returns those that are to be removed."""
    old = {path: state for entry in made for path, state in entry.files.items()}
    new = {path: state for entry in head for path, state in entry.files.items()}
    present = [path for path in {**old, **new} if (root / path).is_file()]
    room = hash_files(git, root, present)
    for path in {**old, **new}:
        new[path] = pick(path, old.get(path), room.get(path), new.get(path))
    for entry in head:
        entry.files = {path: new[path] for path in entry.files if new[path]}
    return [path for path in old if not new[path] and path in room]


def merge(git, root, rooms, made, head):
    """The series to be written, and the files to be removed. made and rooms
    match entry by entry; head is what the tree's commits say."""
    found, left = partners(made, head)
    sections = list(rooms.sections)
    assign_sections(head, made, found, sections)
    merge_mails(rooms, made, head, found, left)
    gone = merge_files(git, root, made, head)
    for number, entry in enumerate(head, 1):
        entry.name = file_name(number, entry.subject)
    return Series(sections, head, rooms.comments, rooms.head, rooms.tail), gone


# --- rooms to entries and back ------------------------------------------------

def canonical(git, series, base, commits):
    """The hunks of the entries as git prints them."""
    for entry, commit in zip(series.entries, commits):
        hooks = git.files(base, set(git.changed(f"{commit}^", commit)))
        entry.diff = hook_diff(git, commit, hooks)


def made_entries(git, base, series):
    """What was made, as entries that match those of the series then."""
    found = [entry for entry, _ in read_commits(git, base, MADE)]
    for entry, listed in zip(found, series.entries):
        entry.section, entry.name = listed.section, listed.name
    return found


def is_shared(builder, entry, parent, commit):
    """Would the first kernel's mail make this very commit? Then it is not kept
    twice."""
    other = twin(PATCHES, entry.name)
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
    texts, base = {}, builder.base
    for entry, parent, commit in zip(series.entries, [base, *commits], commits):
        if is_shared(builder, entry, parent, commit):
            continue
        hooks = git.files(base, set(git.changed(f"{commit}^", commit)))
        texts[entry.name] = format_mail(git, entry, commit, hooks)
    return texts


def write_rooms(git, series, texts, gone, stale):
    """Writes what changed and says so."""
    for entry in series.entries:
        for path, (mode, blob) in entry.files.items():
            if write_file(ROOT / path, read_blob(git, blob), mode):
                say(f"wrote {path}")
    for name, text in texts.items():
        if write_file(PATCHES / name, encode(text)):
            say(f"wrote {shown(PATCHES / name)}")
    write_file(PATCHES / "series", encode(format_series(series)))
    for path in [*gone, *(shown(PATCHES / name) for name in sorted(stale))]:
        (ROOT / path).unlink(missing_ok=True)
        say(f"removed {path}")


def check_refresh(git, rooms):
    dirty = uncommitted(git)
    if dirty:
        raise Failure(f"{shown(TREE)} has uncommitted changes ({dirty[0]}): commit or stash them")
    then = made_series(git)
    if then is None or then.outline() != rooms.outline():
        if git.ref("HEAD") == git.ref(MADE):
            raise Failure(f"{shown(TREE)} has no new commits; to take the series over: make tree")
        raise Failure(f"{shown(PATCHES / 'series')} was edited after the tree was made; put it "
                      "back (git stash), refresh, and edit it again")
    return then


def cmd_refresh(_args):
    git = open_tree()
    base, head = git.ref(BASE_REF), git.ref("HEAD")
    rooms = load_series(git, ROOT, PATCHES)
    then = check_refresh(git, rooms)
    check_commits(git, base, head)
    builder = Builder(git, base)
    canonical(git, rooms, base, builder.commits(rooms.entries))
    entries = fold(read_commits(git, base, head), say)
    check_subjects(entries)
    series, gone = merge(git, ROOT, rooms, made_entries(git, base, then), entries)
    commits = builder.commits(series.entries)
    canonical(git, series, base, commits)
    texts = mails(git, builder, series, commits)
    stale = {e.name for e in rooms.entries if not e.shared}.difference(texts)
    write_rooms(git, series, texts, gone, stale)
    report(git, head, publish(git, base, series, builder.commits(series.entries)))


def report(git, head, tip):
    for path in git("ls-files", "-z", "--others", "--exclude-standard").split("\0")[:-1]:
        say(f"note: not committed in the tree, so not brought back: {path}")
    if git.tree_of(head) == git.tree_of(tip):
        step("the tree made of the series equals the one that was committed")
    else:
        step("the tree now has newer edits of the repository, too; what was committed is "
             f"{head[:12]}")
