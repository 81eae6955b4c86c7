"""A swap of segments that a broker did not finish is finished in the output, as the broker would at its next start."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from format.limits import DEFAULT_LIMITS
from format.node.partition import Partition, read_partition
from format.node.partition_surroundings import completed_swaps
from format.rewriting.publication import Publication
from format.rewriting.sources import read_write_sources
from format.verbs.salvage import salvage
from tests.building import batches, write_segment


def leave(directory: Path, base_offset: int, content: Iterable[bytes], mark: str) -> None:
    path = write_segment(directory / "aside", base_offset, content)
    path.rename(directory / f"{path.name}.{mark}")
    (directory / "aside").rmdir()


def completed(directory: Path) -> tuple[Partition, list[str]]:
    partition, findings = completed_swaps(read_partition(directory), DEFAULT_LIMITS)
    return partition, [each.code for each in findings]


def written(directory: Path, target: Path) -> bytes:
    """The logs that salvage writes, joined."""
    with Publication(target, [directory]) as publication:
        list(salvage(read_write_sources([directory]), publication))
    return b"".join(each.read_bytes() for each in sorted((target / "t-0").glob("*.log")))


def test_without_a_swap_nothing_changes(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, batches(2))
    leave(tmp_path / "t-0", 0, batches(1), "deleted")
    leave(tmp_path / "t-0", 0, batches(1), "cleaned")
    partition = read_partition(tmp_path / "t-0")
    assert completed_swaps(partition, DEFAULT_LIMITS) == (partition, [])


def test_a_swap_takes_the_place_of_what_it_replaces(tmp_path: Path) -> None:
    for number in range(3):
        write_segment(tmp_path / "t-0", 6 * number, batches(2, 6 * number))
    leave(tmp_path / "t-0", 0, [*batches(1), *batches(1, 9)], "swap")  # offsets 0 to 11, of the first two
    partition, codes = completed(tmp_path / "t-0")
    assert [each.base_offset for each in partition.segments] == [0, 12]
    assert [each.log.name for each in partition.segments if each.log] == [f"{0:020d}.log.swap", f"{12:020d}.log"]
    assert codes == ["segment-leftover"]


def test_a_swap_whose_originals_are_gone_loses_nothing(tmp_path: Path) -> None:
    directory = tmp_path / "t-0"
    leave(directory, 0, batches(2), "swap")
    leave(directory, 0, batches(2), "deleted")
    write_segment(directory, 6, batches(1, 6))
    sources = read_write_sources([directory])
    with Publication(tmp_path / "out", [directory]) as publication:
        list(salvage(sources, publication))
    assert (tmp_path / "out/t-0" / f"{0:020d}.log").read_bytes() == b"".join(batches(2))
    assert sorted(each.name for each in (tmp_path / "out/t-0").glob("*.log*")) == [f"{0:020d}.log", f"{6:020d}.log"]


def test_originals_are_taken_in_place_of_a_damaged_swap(tmp_path: Path) -> None:
    """All that it replaces is still here, and intact; where the first original is gone, the swap is all there is."""
    directory = tmp_path / "t-0"
    for number in range(2):
        write_segment(directory, 6 * number, batches(2, 6 * number))
    leave(directory, 0, [*batches(2), b"x" * 200, *batches(1, 9)], "swap")
    assert written(directory, tmp_path / "one") == b"".join(batches(4))
    (directory / f"{0:020d}.log").unlink()
    assert written(directory, tmp_path / "two") == b"".join([*batches(2), *batches(1, 9)])


def test_a_swap_at_or_after_a_cleaned_file_never_began(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, batches(2))
    leave(tmp_path / "t-0", 0, batches(1), "cleaned")
    leave(tmp_path / "t-0", 3, batches(1, 3), "swap")
    partition, codes = completed(tmp_path / "t-0")
    assert ([each.base_offset for each in partition.segments], codes) == ([0], [])


def test_an_index_alone_is_no_swap(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, batches(2))
    (tmp_path / "t-0" / f"{0:020d}.index.swap").write_bytes(b"")
    partition, codes = completed(tmp_path / "t-0")
    assert ([each.base_offset for each in partition.segments], codes) == ([0], [])
