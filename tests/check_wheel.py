"""What a built wheel must hold, asked of an installation of it: ``python tests/check_wheel.py tests/_data``.

Imports nothing of the checkout: the installed packages are what is looked at.
"""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

from format.internal_topics.decoder import INTERNAL_TOPICS, decoder_for
from format.kernel.compiled import COMPILED_MODULES

INSTALLED_BESIDE = (
    "man/man1/kafkalog.1",
    "man/man1/kafkalog-verify.1",
    "bash-completion/completions/kafkalog",
    "zsh/site-functions/_kafkalog",
    "fish/vendor_completions.d/kafkalog.fish",
)


def main(data_dir: Path) -> None:
    """Fails with an AssertionError where the wheel lacks something."""
    checkout = data_dir.resolve().parent.parent
    for name in COMPILED_MODULES:
        compiled = Path(str(import_module(f"format.kernel.{name}").__file__))
        assert compiled.suffix != ".py", f"the kernel is not compiled: {compiled}"
        assert checkout not in compiled.resolve().parents, f"the kernel is that of the checkout: {compiled}"
        for suffix in (".py", ".pxd"):
            assert (compiled.parent / (name + suffix)).is_file(), f"{name}{suffix} is missing beside {compiled}"
    for name in INSTALLED_BESIDE:
        assert (Path(sys.prefix) / "share" / name).is_file(), f"{name} is missing below {sys.prefix}/share"
    for topic in INTERNAL_TOPICS:
        assert decoder_for(topic).record_types, f"no schema of {topic}"
    version = _kafkalog("--version")
    assert "kernel: compiled\n" in version, version
    node = data_dir / "kafka-4.3-single" / "node-1"
    verified = _kafkalog("verify", "--format", "table", "--jobs", "2", str(node))
    assert "24 partitions, 32 segments" in verified, verified
    assert "Complete; no damage." in verified, verified
    print(version + verified, end="")


def _kafkalog(*words: str) -> str:
    done = subprocess.run(["kafkalog", *words], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]))
