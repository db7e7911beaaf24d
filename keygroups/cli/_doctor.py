"""The command that looks at all of a job's state, and names the next commands."""

from __future__ import annotations

import argparse
import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from heapq import nlargest
from typing import TYPE_CHECKING, NamedTuple

from keygroups._show.tables import date_text, text_table
from keygroups.cli._job import add_sign_in, job_data, sign_in
from keygroups.cli._parser import FAULT, AddCommand
from keygroups.cli._reading import add_ends, add_options, moved_places, read
from keygroups.cli._streams import json_line
from keygroups.errors import (
    InvalidValueError,
    JobError,
    KeyGroupsError,
    SavepointError,
    short,
)
from keygroups.key_group_range import ranges_imbalance
from keygroups.skew import ALIKE

if TYPE_CHECKING:
    from keygroups.job import Job
    from keygroups.savepoint import Operator, Savepoint, SavepointSummary, StateSummary

_LONGEST = 300  # characters of a line
_LINES = 10  # lines of an answer, and commands
_SHOWN = 5  # states, operators or subtasks of an answer
_MUCH = 2  # state that is so many times as large has grown
_OLD = ("older", "within a year")  # the ages of state that was not used for 30 days


class Answer(NamedTuple):
    """The answer to a question of the page: what was seen, and the commands that show more."""

    question: str
    needs_attention: bool
    texts: list[str]
    commands: list[str]


def add_commands(command: AddCommand) -> None:
    """Add the command."""
    add = command(_doctor)
    place = "a savepoint or checkpoint, the folder of a job, or the http URL of a running one"
    add("place", metavar="PLACE", help=place)
    add("job_id", metavar="JOB_ID", nargs="?", help="of a URL with several jobs that run")
    add("--against", metavar="OLD", help="an older savepoint of the job, to see what grew")
    add_ends(add)
    add_sign_in(add)
    add_options(add)


def _doctor(options: argparse.Namespace) -> Iterator[str]:
    """Print on one page what is in a job's state, what is wrong, and the commands that show more.

    What it is; the heaviest states, or with --against those that grew; hot subtasks, their cause
    and, of a running job, their host; uneven key groups; damage and misplaced keys, as by
    `keygroups verify`; where sources stand, with --ends how far behind, and what sinks have open;
    state that nobody uses; what restores, and with --against whether OLD does in this job; the
    files. An answer that needs a look begins with "!". All of the savepoint is read, twice.

    PLACE is a savepoint or checkpoint; the folder of a job, of which the newest checkpoint is
    taken; or the URL of Flink's REST API, unless it ends in /_metadata: then the job's newest
    checkpoint or savepoint is read from where that server says it is, if this machine reaches it,
    and the options of `keygroups job` sign in. No command that is printed has a header or a
    certificate.

    The status is 0, and 1 if verify finds a fault or the state of a job cannot be read.

    JSON: job, null or url, job_id, name and state; path, kind and checkpoint_id, null if the
    state cannot be read; and answers: question, needs_attention, texts, commands.
    """
    job = _job(options) if _is_job(options.place) else None
    if job is None and options.job_id is not None:
        raise InvalidValueError("JOB_ID goes with the URL of a job")
    savepoint = old = None
    answers = [] if job is None else [_subtasks_of_job(job)]
    try:
        savepoint, old = _savepoints(options, job)
    except (JobError, SavepointError) as error:
        if job is None:
            raise
        options.status = FAULT
        answers.append(Answer("its state", True, [f"not read: {error}"], []))
    if savepoint is not None:
        patient = _Patient(savepoint, old, _Shell.of(options, savepoint))
        answers += patient.answers()
        if patient.has_faults:
            options.status = FAULT
    if options.json:
        names = ("path", "kind", "checkpoint_id")
        data = {name: getattr(savepoint, name, None) for name in names}
        listed = [answer._asdict() for answer in answers]
        yield json_line({"job": job and job_data(job), **data, "answers": listed})
        return
    if job is not None:
        yield str(job).partition("\n")[0]
    for answer in answers:
        yield from _lines(answer)


def _lines(answer: Answer) -> Iterator[str]:
    yield f"{'!' if answer.needs_attention else ' '} {answer.question}"
    yield from (f"    {short(text, _LONGEST)}" for text in answer.texts[:_LINES])
    if len(answer.texts) > _LINES:
        yield f"    and {len(answer.texts) - _LINES:,} lines more, with --json"
    yield from (f"    $ {typed_command(command)}" for command in answer.commands)


def typed_command(command: str) -> str:
    """Return a command as it is typed, of printable characters alone.

    A folder's name with an escape in it is in the quotes of ANSI C then, which bash and zsh read.
    """
    if command.isprintable():
        return command
    words = shlex.split(command)
    return " ".join(shlex.quote(word) if word.isprintable() else _ansi_c(word) for word in words)


def _ansi_c(word: str) -> str:
    # Octal digits are always three: a text may go on with digits that hexadecimal ones would take.
    chars = [
        char
        if char.isprintable() and char not in "\\'"
        else "".join(f"\\{byte:03o}" for byte in os.fsencode(char))
        for char in word
    ]
    return f"$'{''.join(chars)}'"


# --- where it is ------------------------------------------------------------------------------


def _is_job(place: str) -> bool:
    return place.startswith(("http://", "https://")) and not place.endswith("/_metadata")


def _job(options: argparse.Namespace) -> Job:
    from keygroups.job import read_job

    return read_job(options.place, options.job_id, options.timeout, **sign_in(options))


def _savepoints(
    options: argparse.Namespace, job: Job | None
) -> tuple[Savepoint, Savepoint | None]:
    """Return the savepoint to look at, and the older one of --against."""
    path = options.place if job is None else _newest_of(job)
    others = [] if options.against is None else [options.against]
    try:
        savepoint, *old = read(options, path, *others, ends=options.ends)
    except SavepointError:
        from keygroups.savepoint._files.job_folders import checkpoints_in

        checkpoints = checkpoints_in(path) if job is None else []
        if not checkpoints:
            raise
        savepoint, *old = read(options, checkpoints[0].path, *others, ends=options.ends)
    return savepoint, old[0] if old else None


def _newest_of(job: Job) -> str:
    for checkpoint in job.savepoints():
        if checkpoint.path is not None and not checkpoint.is_discarded:
            return checkpoint.path
    raise JobError(f"{job.url}: job {job.job_id} has no checkpoint or savepoint in a file yet")


@dataclass(frozen=True)
class _Shell:
    """Makes the commands, which name the savepoint and its operators as they were named here."""

    path: str
    against: str | None
    ends: tuple[str, ...]
    words: tuple[str, ...]
    names: dict[str, str]

    @classmethod
    def of(cls, options: argparse.Namespace, savepoint: Savepoint) -> _Shell:
        """Return it for the options by which the savepoint was read."""
        labels = Counter(operator.label for operator in savepoint.operators)
        # Uids of standard input are not there for the next command.
        has_uids = options.uids not in (None, "-")
        names = {
            operator.operator_id: label
            if labels[label] == 1 and label.isprintable() and (operator.name or has_uids)
            else operator.operator_id
            for operator in savepoint.operators
            for label in [operator.label]
        }
        words = [f"--moved={old}={new}" for old, new in moved_places(options).items()]
        words += [f"--allow={place}" for place in options.allow]
        words += [f"--uids={options.uids}"] if has_uids else []
        ends = () if options.ends in (None, "-") else (f"--ends={options.ends}",)
        return cls(savepoint.path, options.against, ends, tuple(words), names)

    def command(self, name: str, *words: str) -> str:
        """Return a command on the savepoint, quoted for a shell."""
        return shlex.join(["keygroups", name, self.path, *words, *self.words])

    def with_old(self, name: str) -> list[str]:
        """Return the command of this name on the old savepoint and this one, if there is one."""
        if self.against is None:
            return []
        return [shlex.join(["keygroups", name, self.against, self.path, *self.words])]

    def of_operator(self, operator_id: str, *words: str) -> str:
        """Return the command that shows an operator."""
        return self.command("savepoint", f"--operator={self.names[operator_id]}", *words)


# --- a running job ----------------------------------------------------------------------------


def _subtasks_of_job(job: Job) -> Answer:
    texts, is_hot = [], False
    for vertex in job.vertices:
        if not vertex.is_keyed:
            continue
        try:
            skew = job.skew(vertex)
        except JobError as error:
            texts.append(f"{vertex.name}: not known: {error}")
            continue
        texts.append(f"{vertex.name}: {skew.diagnosis}; {skew.remedy}")
        is_hot = is_hot or bool(skew.hot_subtasks)
        rows = {row.subtask: row for row in skew.subtasks}
        for hot in skew.hot_subtasks[:_SHOWN]:
            row = rows[hot]
            where = f" on {row.host}" if row.host is not None else ""
            read_by = f"{row.records:,} records, {row.times_mean:.2f} times the mean"
            texts.append(f"subtask {hot}{where}: {read_by}")
    command = ["keygroups", "job", job.url, job.job_id]
    commands = [shlex.join(command), shlex.join([*command, "--watch", "30"])]
    return Answer(
        "hot subtasks of the running job", is_hot, texts or ["no keyed vertex"], commands
    )


# --- its state --------------------------------------------------------------------------------


class _Patient:
    """A savepoint that is looked at; each method answers a question."""

    def __init__(self, savepoint: Savepoint, old: Savepoint | None, shell: _Shell) -> None:
        from keygroups.savepoint._operator import has_keyed_state

        self._savepoint = savepoint
        self._old = old
        self._shell = shell
        self._keyed = [operator for operator in savepoint.operators if has_keyed_state(operator)]
        self.has_faults = False

    def answers(self) -> Iterator[Answer]:
        """Yield the answers; one that cannot be given says why."""
        questions: dict[str, Callable[[], Answer]] = {
            "what it is": self._what,
            "the heaviest states": self._heaviest if self._old is None else self._growth,
            "hot subtasks": self._hot,
            "key groups": self._key_groups,
            "damage, and keys where Flink does not look": self._verify,
            "sources and sinks": self._connectors,
            "old state": self._ages,
            "what restores": self._restores,
            "files": self._files,
        }
        for question, answer in questions.items():
            try:
                answered = answer()
                yield answered._replace(commands=answered.commands[:_LINES])
            except (KeyGroupsError, ModuleNotFoundError) as error:
                yield Answer(question, True, [f"not known: {error}"], [])

    @cached_property
    def _summary(self) -> SavepointSummary:
        return self._savepoint.summary(top=1)

    def _states(self) -> list[tuple[str, StateSummary]]:
        """Return the keyed states with the ids of their operators, the heaviest first."""
        states = [
            (operator.operator_id, state)
            for operator in self._summary.operators
            for state in operator.states
        ]
        return sorted(states, key=lambda pair: -(pair[1].bytes or 0))

    def _timed(self) -> set[tuple[str, str]]:
        """Return the states with a time to live, with the ids of their operators.

        Their values need not have a time that is read: a list has none without elements.
        """
        from keygroups.savepoint._operator import readable

        return {
            (operator.operator_id, state.name)
            for operator in self._keyed
            for state in readable(partial(getattr, operator, "states"), []) or ()
            if state.has_ttl
        }

    def _unread(self, summary: SavepointSummary | None = None) -> list[str]:
        """Return lines about the state that could not be read, of which no number is known.

        It is that of the older savepoint, with its summary.
        """
        texts = []
        for operator in (summary or self._summary).operators:
            name = self._shell.names.get(operator.operator_id, operator.operator_id)
            reasons = [f"{name}: not known: {reason}" for reason in operator.unread]
            reasons += [
                f"{name} {state.state}: not known: {state.unread}"
                for state in operator.states
                if state.unread is not None
            ]
            texts += reasons
        return texts

    def _what(self) -> Answer:
        from keygroups.savepoint._savepoint import advices_of, headline

        texts = [headline(self._savepoint), *advices_of(self._savepoint)]
        has_no_uid = not any(by.uid or by.name for by in self._savepoint.operators)
        return Answer("what it is", has_no_uid, texts, [self._shell.command("savepoint")])

    def _heaviest(self) -> Answer:
        states = self._states()
        total = sum(state.bytes or 0 for _, state in states) or 1
        texts, commands = [], [self._shell.command("savepoint", "--full")]
        known = [pair for pair in states if pair[1].unread is None]
        for operator_id, state in known[:_SHOWN]:
            name, size = f"{self._shell.names[operator_id]} {state.state}", state.bytes or 0
            texts.append(
                f"{name}: {state.entries:,} entries of {size:,} bytes, {size / total:.1%}"
            )
            for key in state.heaviest_keys:
                if isinstance(key.key, str) and key.key.isprintable() and not commands[1:]:
                    looked_up = f"--key={key.key}"
                    commands.append(self._shell.of_operator(operator_id, looked_up))
        unread = self._unread()
        texts = [*texts, *unread] or ["no keyed state"]
        return Answer("the heaviest states", bool(unread), texts, commands)

    def _growth(self) -> Answer:
        from keygroups.savepoint import SavepointGrowth

        assert self._old is not None
        old = self._old.summary(top=1)
        growth = SavepointGrowth.of([old, self._summary])
        texts, has_grown = [], False
        for state in growth.states[:_SHOWN]:
            if (state.growth or 0) > 0:
                first, last = state.bytes[0] or 0, state.bytes[-1] or 0
                has_grown = has_grown or last >= _MUCH * first
                entries = " -> ".join(f"{count:,}" for count in state.entries if count is not None)
                texts.append(
                    f"{state.operator} {state.state}: {state.growth:+,} bytes, {first:,} -> "
                    f"{last:,}; entries {entries}"
                )
        commands = [*self._shell.with_old("diff"), self._shell.command("savepoint", "--full")]
        unread = [*(f"before: {text}" for text in self._unread(old)), *self._unread()]
        texts = [*texts, *unread] or ["none grew"]
        return Answer("the states that grew", has_grown or bool(unread), texts, commands)

    def _hot(self) -> Answer:
        texts, commands = [], []
        for operator in self._keyed:
            counts = operator.key_group_bytes().skew(operator.parallelism)
            for hot in counts.hot_subtasks[:_SHOWN]:
                times = counts.counts[hot] * counts.parallelism / sum(counts.counts)
                texts.append(
                    f"{self._name(operator)}: subtask {hot} has {int(counts.counts[hot]):,} "
                    f"bytes, {times:.2f} times the mean"
                )
            if counts.hot_subtasks:
                texts.append(f"{counts.diagnosis}: {counts.remedy}")
                commands.append(self._shell.of_operator(operator.operator_id))
        texts = texts or ["no subtask has 1.5 times the bytes of the mean"]
        return Answer("hot subtasks, by the bytes of their state", bool(commands), texts, commands)

    def _key_groups(self) -> Answer:
        texts, commands = [], []
        for operator in self._keyed:
            groups, parallelism = operator.max_parallelism, operator.parallelism
            times = ranges_imbalance(groups, parallelism)
            if times > ALIKE:
                texts.append(
                    f"{self._name(operator)}: {groups} key groups do not divide evenly by "
                    f"{parallelism} subtasks, at best {times:.2f} times the mean"
                )
                commands.append(f"keygroups suggest {parallelism}")
        commands = [*dict.fromkeys(commands)]
        return Answer("key groups", bool(texts), texts or ["even"], commands)

    def _verify(self) -> Answer:
        report = self._savepoint.verify()
        self.has_faults = report.has_faults
        _, *texts = str(report).splitlines()
        question = "damage, and keys where Flink does not look"
        command = self._shell.command("verify")
        return Answer(question, report.has_faults, texts, [command])

    def _connectors(self) -> Answer:
        from keygroups.savepoint._operator import readable
        from keygroups.savepoint._operator_states import is_sink, is_source
        from keygroups.savepoint._reports.connectors import sink_sections, splits_section

        texts, commands, needs_attention = [], [], False
        for operator in self._savepoint.operators:
            unread: list[str] = []
            sections = []
            if is_source(operator):
                source = readable(operator.source_splits, unread)
                sections += [] if source is None else [splits_section(source)]
            if is_sink(operator):
                sink = readable(operator.sink_state, unread)
                needs_attention = needs_attention or bool(sink and sink.committables)
                sections += [] if sink is None else sink_sections(sink)
            for section in sections:
                texts.append(f"{self._name(operator)}: {section.texts[0]}")
                rows = [section.header, *section.rows[:_SHOWN]] if section.rows else []
                texts += text_table(rows, section.left_columns)
            needs_attention = needs_attention or bool(unread)
            texts += [f"{self._name(operator)}: not known: {reason}" for reason in unread]
            if sections:
                named = operator.operator_id, *self._shell.ends
                commands.append(self._shell.of_operator(*named))
        texts = texts or ["none with state"]
        return Answer("sources and sinks", needs_attention, texts, commands)

    def _ages(self) -> Answer:
        texts, commands, is_old = [], [], False
        for operator_id, state in self._states():
            times, name = state.last_access, f"{self._shell.names[operator_id]} {state.state}"
            old = 0 if times is None else sum(dict(times.counts).get(age, 0) for age in _OLD)
            if times is not None and times.earliest is not None and old:
                is_old = True
                texts.append(
                    f"{name}: {old:,} of {sum(dict(times.counts).values()):,} times of last "
                    f"access are 30 days ago and more, the first {date_text(times.earliest)}: "
                    "with a shorter time to live the clean-up does not reach them"
                )
                commands.append(self._shell.of_operator(operator_id, "--full"))
            never = 0 if state.timers is None else dict(state.timers.counts).get("never", 0)
            if never:
                texts.append(f"{name}: {never:,} timers never fire")
        timed = self._timed()
        endless = [
            f"{self._shell.names[operator_id]} {state.state}"
            for operator_id, state in self._states()
            if state.last_access is None
            and state.timers is None
            and state.bytes
            and (operator_id, state.state) not in timed
        ]
        if endless:
            texts.append(f"no time to live, so kept until the job clears it: {_listed(endless)}")
        commands, unread = [*dict.fromkeys(commands)], self._unread()
        texts = [*texts, *unread] or ["none"]
        return Answer("old state", is_old or bool(unread), texts, commands)

    def _restores(self) -> Answer:
        from keygroups.savepoint._operator import missing_timers

        texts, is_refused = [], False
        for operator in nlargest(_SHOWN, self._keyed, key=lambda by: by.max_parallelism):
            most = operator.max_parallelism
            texts.append(
                f"{self._name(operator)}: at 1 to {most} subtasks, max parallelism {most}"
            )
        if self._savepoint.kind == "native savepoint":
            missing = [text for by in self._keyed if (text := missing_timers(by)) is not None]
            is_refused = bool(missing)
            texts += missing
        if self._old is not None:
            report = self._old.restore_report(self._savepoint)
            is_refused = is_refused or report.restores is not True
            texts += str(report).splitlines()[2:]
        commands = [
            *self._shell.with_old("restore"),
            *(f"keygroups evenness {by.max_parallelism}" for by in self._keyed[:1]),
        ]
        return Answer("what restores", is_refused, texts or ["no keyed state"], commands)

    def _files(self) -> Answer:
        from keygroups.savepoint import savepoint_files

        files = savepoint_files(self._savepoint)
        missing = [file for file in files if file.bytes is None]
        used = sum(file.used_bytes for file in files)
        stored = sum(file.bytes or 0 for file in files)
        texts = [f"{len(files):,} files of {stored:,} bytes; it uses {used:,} bytes"]
        texts += [f"missing: {file.path}" for file in missing]
        return Answer("files", bool(missing), texts, [self._shell.command("files")])

    def _name(self, operator: Operator) -> str:
        return self._shell.names[operator.operator_id]


def _listed(names: list[str]) -> str:
    """Return the first few names, and how many others there are."""
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
