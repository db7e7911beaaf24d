"""The wheel and the sdist that `python -m build` makes; what they install, `.ci/run` tests."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import keygroups

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
NAME = f"keygroups-{keygroups.__version__}"
OF_SDIST = ["keygroups", "tests", "examples", "README.md", "LICENSE", "pyproject.toml"]


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from it."""
    pytest.importorskip("build", reason="build is not installed")
    folder = tmp_path_factory.mktemp("dist")
    run("build", "--outdir", str(folder), str(ROOT))
    return folder


def run(module: str, *arguments: str) -> str:
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def wheel(folder: Path) -> Path:
    (found,) = folder.glob("*.whl")
    return found


def sources(*folders: str) -> set[str]:
    """Return the files in some folders that git does not ignore; skip where there is no git."""
    listed = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    command = ["git", "-C", str(ROOT), *listed, *folders]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("no git, or no repository of it")
    return set(done.stdout.rstrip("\0").split("\0"))


def test_metadata(dist: Path) -> None:
    pytest.importorskip("twine", reason="twine is not installed")
    text = run("twine", "--no-color", "check", "--strict", *map(str, dist.iterdir()))
    assert text.count("PASSED") == 2  # in lines that are folded where the folder's name is long


def test_the_wheel_holds_the_package_alone(dist: Path) -> None:
    info = f"{NAME}.dist-info"
    names = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
    with zipfile.ZipFile(wheel(dist)) as archive:
        found = archive.namelist()
        assert archive.read(f"{info}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
    assert "keygroups/py.typed" in found
    assert sorted(found) == sorted(sources("keygroups") | {f"{info}/{name}" for name in names})


def test_the_sdist_holds_what_the_tests_need(dist: Path) -> None:
    with tarfile.open(dist / f"{NAME}.tar.gz") as archive:
        found = {member.name.removeprefix(f"{NAME}/") for member in archive if member.isfile()}
    assert found == sources(*OF_SDIST) | {".gitignore", "PKG-INFO"}


def test_the_sdist_builds_the_wheel_of_the_checkout(dist: Path, tmp_path: Path) -> None:
    run("build", "--wheel", "--outdir", str(tmp_path), str(ROOT))
    assert wheel(dist).read_bytes() == wheel(tmp_path).read_bytes()
