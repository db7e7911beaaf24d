"""Java written in the tests: compiled by the JDK that runs Spark, and given to that Spark."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def add_java_class(spark: SparkSession, beside: str, name: str, source: str) -> str:
    """Compile a class into the package of another one, and return its full name.

    `beside` is the full name of a class on Spark's class path, `source` has no package line.
    The new class goes to the class loader of that one, so a local Spark finds it wherever it
    finds that, in tasks too. (A jar given to a running session has a loader of its own, and in
    Spark 4 the two then mix in one task.)

    Raises RuntimeError with what the compiler says, or where there is none because Spark runs
    in a JRE.
    """
    jvm: Any = spark.sparkContext._jvm
    package = beside.rpartition(".")[0]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{name}.java")
        path.write_text(f"package {package};\n{source}", encoding="utf-8")
        class_path = jvm.java.lang.System.getProperty("java.class.path")
        _javac(spark, ["-d", folder, "-cp", class_path, str(path)])
        code = Path(folder, *package.split("."), f"{name}.class").read_bytes()
    handles = jvm.java.lang.invoke.MethodHandles
    neighbour = handles.privateLookupIn(jvm.java.lang.Class.forName(beside), handles.lookup())
    neighbour.defineClass(code)
    return f"{package}.{name}"


def _javac(spark: SparkSession, arguments: list[str]) -> None:
    jvm: Any = spark.sparkContext._jvm
    compiler = jvm.javax.tools.ToolProvider.getSystemJavaCompiler()
    if compiler is None:
        raise RuntimeError("Spark runs in a JRE, and only a JDK has a Java compiler")
    text = jvm.java.io.ByteArrayOutputStream()
    # The compiler's own class is not exported from its module, so py4j finds no method on it;
    # reflection gets there through the interface.
    tool = jvm.java.lang.Class.forName("javax.tools.Tool")
    run = next(method for method in tool.getMethods() if method.getName() == "run")
    passed = [None, text, text, _array(spark, "String", arguments)]
    if run.invoke(compiler, _array(spark, "Object", passed)):
        raise RuntimeError(text.toString())


def _array(spark: SparkSession, cls: str, elements: list[Any]) -> Any:
    gateway: Any = spark.sparkContext._gateway
    array = gateway.new_array(getattr(gateway.jvm.java.lang, cls), len(elements))
    for index, element in enumerate(elements):
        array[index] = element
    return array
