"""Make `jvm_keys.jsonl` again: keys of Scala's classes, and of the JDK's beside Flink's own types.

    python tests/vectors/make_jvm_keys.py JARS_OF_2_12 JARS_OF_2_13 [file]

Needs a JDK of 17 or newer, the package apache-flink-libraries, and two folders that have
scala-library, scala-reflect and scala-compiler of a version: those of pyspark 3.5 and of pyspark 4
have. Each key is an expression in a program of real Scala or Java, which is compiled and run, and
prints the key's hashCode and what Flink's KeyGroupRangeAssignment says. The questions come from
fixed seeds, so the same jars write the same file.
"""

from __future__ import annotations

import json
import os
import random
import re
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

from make_vectors import EDGES, MAX_PARALLELISMS, RANDOM, Key
from support.flink.flink_oracle import flink_class_path, flink_jar, flink_version
from support.keys.key_encoding import encode_key

from keygroups.savepoint.values import Left, Right
from keygroups.types import (
    BIG_DEC,
    BIG_INT,
    BOOLEAN,
    BYTE,
    BYTE_BUFFER,
    CASE_CLASS,
    CHAR,
    DOUBLE,
    FLOAT,
    HASHED,
    INSTANT,
    INT,
    LIST,
    LOCAL_DATE,
    LONG,
    OBJECTS_HASH,
    SCALA_BIG_INT,
    SCALA_EITHER,
    SCALA_OPTION,
    SCALA_TUPLE,
    SHORT,
    STRING,
    TUPLE,
    UUID,
    FieldsType,
    KeyType,
)

# A key type's class, its primitive type in Scala if there is one, and how to make an object.
_CLASSES: dict[KeyType, tuple[str, str, Callable[[Any], str]]] = {
    BOOLEAN: ("java.lang.Boolean", "Boolean", lambda v: f'"{str(v).lower()}"'),
    BYTE: ("java.lang.Byte", "Byte", lambda v: f'"{v}"'),
    SHORT: ("java.lang.Short", "Short", lambda v: f'"{v}"'),
    INT: ("java.lang.Integer", "Int", lambda v: f'"{v}"'),
    LONG: ("java.lang.Long", "Long", lambda v: f'"{v}"'),
    CHAR: ("java.lang.Character", "Char", lambda v: f"{_text(v)}.charAt(0)"),
    FLOAT: (
        "java.lang.Float",
        "Float",
        lambda v: f"java.lang.Float.intBitsToFloat(0x{struct.pack('>f', v).hex()})",
    ),
    DOUBLE: (
        "java.lang.Double",
        "Double",
        lambda v: f"java.lang.Double.longBitsToDouble(0x{struct.pack('>d', v).hex()}L)",
    ),
}
_OTHERS: dict[KeyType, tuple[str, Callable[[Any], str]]] = {
    STRING: ("String", lambda v: _text(v)),
    BIG_INT: ("java.math.BigInteger", lambda v: f'new java.math.BigInteger("{v}")'),
    BIG_DEC: ("java.math.BigDecimal", lambda v: f'new java.math.BigDecimal("{v}")'),
    LOCAL_DATE: ("java.time.LocalDate", lambda v: f'java.time.LocalDate.parse("{v}")'),
    INSTANT: (
        "java.time.Instant",
        lambda v: f'java.time.OffsetDateTime.parse("{v.isoformat()}").toInstant()',
    ),
    UUID: ("java.util.UUID", lambda v: f'java.util.UUID.fromString("{v}")'),
    BYTE_BUFFER: ("java.nio.ByteBuffer", lambda v: f'Of.buffer("{v.hex()}")'),
    HASHED: ("Of", lambda v: f'new Of("{v}")'),
}
_SCALARS = [*_CLASSES, *_OTHERS]  # Java's and Scala's
_OTHERS[SCALA_BIG_INT] = ("BigInt", lambda v: f'BigInt("{v}")')
_NAMES = ("Key", "User", "Ключ", "we-ird")
_AT_ONCE = 40  # keys in a method, which has 64 KiB at most
_BYTES = [b"", b"abc", b"\x03abc", b"\xff\x80", bytes(range(256)), b"\0", b"\x80" * 70]
_OF = """
public class Of {
    private final int code;
    public Of(String code) { this.code = Integer.parseInt(code); }
    @Override public int hashCode() { return code; }
    public static String text(String units) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < units.length(); i += 4)
            text.append((char) Integer.parseInt(units.substring(i, i + 4), 16));
        return text.toString();
    }
    public static java.nio.ByteBuffer buffer(String digits) {
        byte[] bytes = new byte[digits.length() / 2];
        for (int i = 0; i < bytes.length; i++)
            bytes[i] = (byte) Integer.parseInt(digits.substring(2 * i, 2 * i + 2), 16);
        return java.nio.ByteBuffer.wrap(bytes);
    }
    public static void print(Object key) {
        StringBuilder line = new StringBuilder("" + key.hashCode());
        for (int groups : new int[] {%s})
            line.append(" ").append(
                org.apache.flink.runtime.state.KeyGroupRangeAssignment.assignToKeyGroup(
                    key, groups));
        System.out.println(line);
    }
}
"""


def _text(value: str) -> str:
    units = value.encode("utf-16-be", "surrogatepass").hex()
    return f'Of.text("{units}")'


# --- the questions ------------------------------------------------------------------------


def random_scalar(rng: random.Random, key_type: KeyType) -> Any:
    if key_type == BYTE_BUFFER:
        return rng.choice(_BYTES) if rng.randrange(4) == 0 else rng.randbytes(rng.randrange(12))
    if key_type in (LONG, DOUBLE, FLOAT) and rng.randrange(3) == 0:
        return numbers(rng, key_type)
    alike: dict[KeyType, KeyType] = {HASHED: INT, SCALA_BIG_INT: BIG_INT}
    like = alike.get(key_type, key_type)
    value = rng.choice(EDGES[like]) if rng.randrange(4) == 0 else RANDOM[like](rng)
    return Decimal("1.50") if isinstance(value, Decimal) and "E" in str(value) else value


def numbers(rng: random.Random, key_type: KeyType) -> float:
    """Return a number near where Scala's ## becomes that of another type."""
    edge = rng.choice((0, 2**24, 2**31, 2**32, 2**53, 2**62, 2**63)) * rng.choice((1, -1))
    number = edge + rng.randrange(-3, 4)
    if key_type == LONG:
        return max(-(2**63), min(2**63 - 1, number))
    double = float(number) + rng.choice((0.0, 0.0, 0.5))
    return struct.unpack("f", struct.pack("f", double))[0] if key_type == FLOAT else double


def random_scala_type(rng: random.Random, version: str, depth: int) -> KeyType:
    if depth and rng.randrange(4) == 0:
        make = rng.choice((random_product, random_option))
        return make(rng, version, depth - 1)
    return LIST(INT) if rng.randrange(12) == 0 else rng.choice(_SCALARS)


def random_option(rng: random.Random, version: str, depth: int) -> KeyType:
    return SCALA_OPTION(random_scala_type(rng, version, depth), scala=version)


def random_product(rng: random.Random, version: str, depth: int) -> KeyType:
    fields = [random_scala_type(rng, version, depth) for _ in range(rng.choice((1, 2, 2, 3, 5)))]
    if rng.randrange(2):
        return SCALA_TUPLE(*fields, scala=version)
    return CASE_CLASS(rng.choice(_NAMES), *fields, scala=version)


def random_value(rng: random.Random, key_type: KeyType, nulls: bool = True) -> Any:
    if nulls and rng.randrange(8) == 0:
        return None
    if isinstance(key_type, FieldsType):
        return tuple(random_value(rng, field) for field in key_type.fields)
    if isinstance(key_type, LIST):
        return [random_value(rng, key_type.element) for _ in range(rng.randrange(4))]
    if isinstance(key_type, SCALA_OPTION):
        # A null in a Some has no encoding of its own; that of an Option in one is as itself.
        return random_value(rng, key_type.element, nulls=False)
    if isinstance(key_type, SCALA_EITHER):
        if rng.randrange(2):
            return Left(random_value(rng, key_type.left))
        return Right(random_value(rng, key_type.right))
    return random_scalar(rng, key_type)


def big_ints(rng: random.Random) -> Iterator[int]:
    """Yield BigInts about where they become BigIntegers of one more word, and random ones."""
    for bits in (0, 24, 31, 32, 53, 62, 63, 64, 96, 1_000):
        yield from (sign * (2**bits + plus) for sign in (1, -1) for plus in (-1, 0, 1))
    yield from (random_scalar(rng, SCALA_BIG_INT) for _ in range(20))


def eithers(version: str) -> Iterator[Key]:
    """Yield keys that are an Either or a BigInt, or have these in them."""
    rng = random.Random(f"Either of {version}")
    for number in big_ints(rng):
        yield SCALA_BIG_INT, number
        yield SCALA_TUPLE(SCALA_BIG_INT, STRING, scala=version), (number, "a")
    scalars = [*_SCALARS, SCALA_BIG_INT]
    for key_type in scalars:
        for side in (Left, Right) * 2:
            either = SCALA_EITHER(key_type, key_type, scala=version)
            yield either, side(random_scalar(rng, key_type))
        yield SCALA_EITHER(key_type, STRING, scala=version), Left(None)
    for _ in range(100):
        parts = [random_scala_type(rng, version, 1), rng.choice(scalars)]
        rng.shuffle(parts)
        either = SCALA_EITHER(*parts, scala=version)
        yield either, random_value(rng, either, nulls=False)
        pair = CASE_CLASS(rng.choice(_NAMES), either, SCALA_BIG_INT, scala=version)
        yield pair, random_value(rng, pair, nulls=False)
        option = SCALA_OPTION(either, scala=version)
        yield option, random_value(rng, either, nulls=False)


def scala_keys(version: str) -> Iterator[Key]:
    rng = random.Random(version)
    yield SCALA_TUPLE(STRING, INT, scala=version), ("hello", 7)
    yield CASE_CLASS("Key", STRING, INT, scala=version), ("hello", 7)
    yield CASE_CLASS("Empty", scala=version), ()
    yield SCALA_TUPLE(*[INT] * 22, scala=version), tuple(range(22))
    yield SCALA_OPTION(INT, scala=version), None
    for key_type in _SCALARS:
        for _ in range(60 if key_type in (LONG, FLOAT, DOUBLE) else 6):
            yield SCALA_TUPLE(key_type, scala=version), (random_scalar(rng, key_type),)
            yield CASE_CLASS("One", key_type, scala=version), (random_scalar(rng, key_type),)
        yield SCALA_TUPLE(key_type, STRING, scala=version), (None, "a")
        yield SCALA_OPTION(key_type, scala=version), random_scalar(rng, key_type)
    for _ in range(250):
        key_type = random_product(rng, version, 2)
        yield key_type, random_value(rng, key_type, nulls=False)
    for _ in range(30):
        key_type = random_option(rng, version, 1)
        yield key_type, random_value(rng, key_type, nulls=rng.randrange(4) == 0)


def java_keys() -> Iterator[Key]:
    rng = random.Random("Java")
    yield OBJECTS_HASH(STRING, INT), ("hello", 7)
    yield OBJECTS_HASH(STRING, INT, start=0), ("hello", 7)
    yield OBJECTS_HASH(), ()
    yield OBJECTS_HASH(start=0), ()
    yield from ((BYTE_BUFFER, key) for key in _BYTES)
    yield from ((BYTE_BUFFER, random_scalar(rng, BYTE_BUFFER)) for _ in range(100))
    yield from ((HASHED, random_scalar(rng, HASHED)) for _ in range(100))
    for _ in range(150):
        fields = [rng.choice(_SCALARS) for _ in range(rng.choice((1, 2, 3, 5)))]
        key_type = OBJECTS_HASH(*fields, start=rng.randrange(2))
        yield key_type, random_value(rng, key_type, nulls=False)
    for _ in range(40):
        in_tuple = TUPLE(HASHED, BYTE_BUFFER, OBJECTS_HASH(INT, STRING))
        yield in_tuple, random_value(rng, in_tuple, nulls=False)


# --- the programs -------------------------------------------------------------------------


class Program:
    """A program that prints what is asked about each key, in Scala or in Java."""

    def __init__(self, is_scala: bool, seed: str) -> None:
        self._is_scala = is_scala
        self._rng = random.Random(seed)
        self.classes: list[str] = []

    def key(self, key_type: KeyType, value: Any) -> tuple[str, str]:
        """Return the type and the expression of a key, or of a part of it."""
        if isinstance(key_type, LIST):
            parts = (self.boxed(key_type.element, element) for element in value)
            return "java.util.List[Object]", f"java.util.Arrays.asList[Object]({', '.join(parts)})"
        if isinstance(key_type, SCALA_OPTION):
            if value is None:
                return "Option[Any]", "(None: Option[Any])"
            inner, made = self.key(key_type.element, value)
            return f"Option[{inner}]", f"(Some({made}): Option[{inner}])"
        if isinstance(key_type, SCALA_EITHER):
            side = type(value).__name__
            part = key_type.left if isinstance(value, Left) else key_type.right
            made = self._field(part, value.value)[1]
            return "Either[Any, Any]", f"({side}({made}): Either[Any, Any])"
        if isinstance(key_type, FieldsType):
            return self._fields(key_type, value)
        if key_type in _OTHERS:
            return _OTHERS[key_type][0], self.boxed(key_type, value)
        cls, primitive, _ = _CLASSES[key_type]
        if self._rng.randrange(2):
            return cls, self.boxed(key_type, value)
        made = f"{self.boxed(key_type, value)}.{primitive.lower()}Value()"
        return (primitive if self._is_scala else primitive.lower()), made

    def boxed(self, key_type: KeyType, value: Any) -> str:
        if value is None:
            return "null"
        if key_type in _CLASSES:
            cls, _, text = _CLASSES[key_type]
            return f"{cls}.valueOf({text(value)})"
        return _OTHERS[key_type][1](value)

    def _fields(self, key_type: FieldsType, value: tuple[Any, ...]) -> tuple[str, str]:
        parts = [self._field(*pair) for pair in zip(key_type.fields, value)]
        kinds, made = [kind for kind, _ in parts], ", ".join(made for _, made in parts)
        number = len(self.classes)
        if isinstance(key_type, SCALA_TUPLE):
            kind = f"Tuple{len(parts)}[{', '.join(kinds)}]"
            return kind, f"new {kind}({made})"
        if isinstance(key_type, TUPLE):
            kind = f"org.apache.flink.api.java.tuple.Tuple{len(parts)}"
            return kind, f"new {kind}<>({made})"
        named = ", ".join(
            f"f{i}: {kind}" if self._is_scala else f"{kind} f{i}" for i, kind in enumerate(kinds)
        )
        if isinstance(key_type, CASE_CLASS):
            self.classes.append(f"object O{number} {{ case class `{key_type.name}`({named}) }}")
            kind = f"O{number}.`{key_type.name}`"
            return kind, f"new {kind}({made})"
        assert isinstance(key_type, OBJECTS_HASH)
        if key_type.start == 0:
            self.classes.append(f"    record R{number}({named}) {{}}")
            return f"R{number}", f"new R{number}({made})"
        if None in value or self._rng.randrange(2):
            return "Object", f"java.util.Arrays.asList(new Object[] {{{made}}})"
        self.classes.append(
            f"    static class C{number} {{ public int hashCode() "
            f"{{ return java.util.Objects.hash(new Object[] {{{made}}}); }} }}"
        )
        return f"C{number}", f"new C{number}()"

    def _field(self, key_type: KeyType, value: Any) -> tuple[str, str]:
        if value is not None or isinstance(key_type, SCALA_OPTION):
            return self.key(key_type, value)
        known = _CLASSES.get(key_type, _OTHERS.get(key_type, ("Object",)))
        return ("Any" if self._is_scala and known[0] == "Object" else known[0]), "null"

    def source(self, keys: Sequence[Key]) -> str:
        made = [f"Of.print({self.key(*key)[1]})" for key in keys]
        blocks = [made[i : i + _AT_ONCE] for i in range(0, len(made), _AT_ONCE)]
        calls = " ".join(f"print{number}();" for number in range(len(blocks)))
        if self._is_scala:
            methods = [
                f"  def print{number}(): Unit = {{ {'; '.join(prints)} }}"
                for number, prints in enumerate(blocks)
            ]
            main = f"  def main(args: Array[String]): Unit = {{ {calls} }}"
            return "\n".join([*self.classes, "object Keys {", *methods, main, "}"])
        methods = [
            f"    static void print{number}() {{ {'; '.join(prints)}; }}"
            for number, prints in enumerate(blocks)
        ]
        main = f"    public static void main(String[] args) {{ {calls} }}"
        return "\n".join(["public class Keys {", *self.classes, *methods, main, "}"])


# --- the answers --------------------------------------------------------------------------


def run(*command: str, folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {done.stderr[-3000:]}{done.stdout[-3000:]}")
    return done.stdout


def answers(keys: Sequence[Key], seed: str, jars: Path | None) -> Iterator[list[int]]:
    """Compile and run the program of keys; yield the hash code and key groups of each."""
    flink = flink_jar()
    assert flink is not None
    compiler = [] if jars is None else [*jars.glob("scala-*.jar"), *jars.glob("j[ln]*.jar")]
    # Flink's jars last: they must not bring another Scala.
    path = os.pathsep.join([*map(str, compiler), ".", flink_class_path(flink)])
    program = Program(jars is not None, seed)
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "Of.java").write_text(_OF % ", ".join(map(str, MAX_PARALLELISMS)), "utf-8")
        run("javac", "-encoding", "utf-8", "-cp", path, "Of.java", folder=folder)
        if jars is None:
            (folder / "Keys.java").write_text(program.source(keys), "utf-8")
            run("javac", "-encoding", "utf-8", "-cp", path, "Keys.java", folder=folder)
        else:
            (folder / "Keys.scala").write_text(program.source(keys), "utf-8")
            scalac = ("scala.tools.nsc.Main", "-nowarn", "-encoding", "utf-8", "-usejavacp")
            run("java", "-Xss16m", "-cp", path, *scalac, "-d", ".", "Keys.scala", folder=folder)
        for line in run("java", "-cp", path, "Keys", folder=folder).splitlines():
            yield list(map(int, line.split()))


def version_of(jars: Path) -> str:
    [library] = jars.glob("scala-library-*.jar")
    return library.stem.rpartition("-")[2]


def main(old: Path, new: Path, target: Path) -> None:
    """Write the file."""
    java = re.search(
        r'"(.*?)"',
        subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr,
    )
    flink = flink_jar()
    assert java is not None
    assert flink is not None
    header = {
        "flink": flink_version(flink),
        "java": java[1],
        "scala": [version_of(old), version_of(new)],
        "max_parallelisms": MAX_PARALLELISMS,
    }
    sets = [
        (version, jars, [*scala_keys(version), *eithers(version)])
        for version, jars in (("2.12", old), ("2.13", new))
    ]
    with target.open("w", encoding="ascii", newline="\n") as file:
        file.write(json.dumps(header, separators=(",", ":")) + "\n")
        for seed, jars, keys in [*sets, ("Java", None, list(java_keys()))]:
            for (key_type, key), (code, *groups) in zip(
                keys, answers(keys, seed, jars), strict=True
            ):
                line = {
                    "type": repr(key_type),
                    "key": encode_key(key_type, key),
                    "hash": code,
                    "key_groups": groups,
                }
                file.write(json.dumps(line, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    named = [Path(argument).absolute() for argument in sys.argv[1:]]
    main(named[0], named[1], (named[2:] or [Path(__file__).parent / "jvm_keys.jsonl"])[0])
