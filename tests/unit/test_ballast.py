"""The ballast file, which reserves space until the disk is full."""

from pathlib import Path

from postroom.store.engine.ballast import SIZE, Ballast

MIB = 1024 * 1024


def test_it_takes_its_room_and_gives_it_up_once(tmp_path: Path) -> None:
    ballast = Ballast(tmp_path / "ballast", MIB + 5)
    assert ballast.take()
    assert ballast.path.stat().st_size == MIB + 5
    assert ballast.give_up()
    assert not ballast.path.exists()
    assert not ballast.give_up()


def test_what_is_there_in_full_is_not_written_again(tmp_path: Path) -> None:
    ballast = Ballast(tmp_path / "ballast", 5)
    ballast.path.write_bytes(b"whole")
    assert ballast.take()
    assert ballast.path.read_bytes() == b"whole"


def test_what_is_there_in_part_is_written_anew(tmp_path: Path) -> None:
    ballast = Ballast(tmp_path / "ballast", 5)
    ballast.path.write_bytes(b"part")
    assert ballast.take()
    assert ballast.path.read_bytes() == bytes(5)


def test_where_there_is_no_room_nothing_is_left_of_it(tmp_path: Path) -> None:
    assert not Ballast(tmp_path / "missing" / "ballast", 5).take()


def test_it_has_sixteen_mebibytes() -> None:
    assert SIZE == 16 * MIB
