"""compare finds every kind of difference, and nothing where there is none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.recording.compare import differences, groups
from tests.recording.outcomes import Outcome, Recording, read_recording, settled, write_recording

VERIFY = Outcome(("verify", "damaged/001"), 1, "finding a\nfinding b\nsummary\n", "", {})
SALVAGE = Outcome(("salvage", "damaged/002", "--output", "{out}"), 0, "", "published\n", {"made/a.log": "1 bytes"})


def recording(*outcomes: Outcome, **inputs: str) -> Recording:
    return Recording({"python": "3.11"}, {"damaged/001": "one", "damaged/002": "two"} | inputs, list(outcomes))


def found(*after: Outcome) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(each.line, each.what, each.changes) for each in differences(recording(VERIFY, SALVAGE), recording(*after))]


def test_a_recording_is_equal_to_itself_and_to_its_file(tmp_path: Path) -> None:
    whole = recording(VERIFY, SALVAGE, replace(VERIFY, command=("dump",), stdout="\udcff\x1b é\r\n"))
    write_recording(tmp_path / "a", whole)
    assert read_recording(tmp_path / "a") == whole
    assert list(differences(whole, read_recording(tmp_path / "a"))) == []


def test_every_part_of_an_outcome_is_compared() -> None:
    line = "kafkalog verify damaged/001"
    assert found(replace(VERIFY, code=0), SALVAGE) == [(line, "exit code 1 became 0", ())]
    changed = replace(VERIFY, stdout=VERIFY.stdout.replace("b", "c"))
    assert found(changed, SALVAGE) == [(line, "stdout", ("-finding b", "+finding c"))]
    assert found(replace(VERIFY, stderr="x"), SALVAGE) == [(line, "stderr", ("-", "+x"))]
    changed = replace(SALVAGE, files={"made/a.log": "2 bytes", "made/b.log": "1 bytes"})
    assert [(what, changes) for _, what, changes in found(VERIFY, changed)] == [
        ("file made/a.log", ("-1 bytes", "+2 bytes")), ("file made/b.log", ("-no file", "+1 bytes"))
    ]  # fmt: skip


def test_a_command_of_one_recording_only_is_a_difference() -> None:
    assert found(VERIFY) == [(SALVAGE.line, "only in the first recording", ())]
    other = replace(VERIFY, command=("ls", "damaged/001"))
    assert found(VERIFY, SALVAGE, other) == [(other.line, "only in the second recording", ())]


def test_commands_over_other_inputs_are_not_compared() -> None:
    after = recording(replace(VERIFY, code=0), SALVAGE, **{"damaged/001": "another"})
    (one,) = differences(recording(VERIFY, SALVAGE), after)
    assert one.line == "damaged/001"


def test_differences_that_are_alike_are_grouped() -> None:
    befores = [replace(VERIFY, command=("verify", f"damaged/{each:03d}"), stdout=f"offset {each}") for each in range(9)]
    afters = [replace(each, stdout=each.stdout.replace("offset", "at")) for each in befores]
    afters[4] = replace(befores[4], stdout="offset 4 is lost")
    alike = groups(list(differences(recording(*befores), recording(*afters))))
    assert [number for number, _ in alike] == [8, 1]


def test_what_differs_from_run_to_run_is_settled() -> None:
    text = '{"codec":"gzip","compress_mb_per_s":69,"decompress_mb_per_s":587.5,"compress_ms":3}'
    lines = "codec=gzip compress_mb_per_s=69 decompress_mb_per_s=- compress_ms=12\n"
    manifest = '"sources_state_sha256": "57df99c0"'
    one = settled({"command": ["a"], "code": 0, "stdout": text, "stderr": lines, "files": {"manifest.json": manifest}})
    assert one.stdout == '{"codec":"gzip","compress_mb_per_s":#,"decompress_mb_per_s":#,"compress_ms":#}'
    assert one.stderr == "codec=gzip compress_mb_per_s=# decompress_mb_per_s=- compress_ms=#\n"
    assert one.files["manifest.json"] == '"sources_state_sha256": "#"'
