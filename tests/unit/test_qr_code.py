"""QR codes are those that other encoders make of the same text, whose pictures stand here."""

import hashlib

import pytest

from postroom.core.qr_code import qr_code, qr_path

POSTROOM = """
#######..#..#.#######
#.....#.#..#..#.....#
#.###.#..#....#.###.#
#.###.#.#..#..#.###.#
#.###.#...###.#.###.#
#.....#.###.#.#.....#
#######.#.#.#.#######
..........###........
#####.####..##.#.#.#.
...#.....#..######..#
.#######.#.#.#...#.#.
##..##.#.##.....###..
#..#..##.###....##...
........#.#######.##.
#######.##..#.#..#.#.
#.....#..######.###..
#.###.#.#.#.#...##..#
#.###.#.###.#..####..
#.###.#.####.#....#..
#.....#.###....####..
#######.#.##.#.#.#.#.
"""
OTPAUTH = "otpauth://totp/Postroom%20localhost:mara?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=Postroom%20localhost"


def test_a_short_text_is_the_picture_that_others_draw() -> None:
    drawn = qr_code("Postroom", 2)
    assert drawn is not None
    assert ["".join(".#"[each] for each in row) for row in drawn] == POSTROOM.split()


@pytest.mark.parametrize(
    ("text", "size", "digest"),
    [
        (OTPAUTH, 41, "a67d17abb7a22ca759204bce186f7401ff481890d0a9a5e381db4e1d90ed02d2"),
        ("a" * 520, 77, "f421cc1bed65b46b7bfc5cc814bbadea1025d779961b4868504e3ecae477658a"),
    ],
)
def test_longer_texts_have_several_blocks_and_more_patterns(text: str, size: int, digest: str) -> None:
    drawn = qr_code(text, 2)
    assert drawn is not None
    assert (len(drawn), hashlib.sha256(qr_path(drawn).encode()).hexdigest()) == (size, digest)


def test_the_mask_is_the_one_that_reads_best() -> None:
    assert qr_code(OTPAUTH) in [qr_code(OTPAUTH, each) for each in range(8)]
    assert qr_code("a" * 520) != qr_code("a" * 520, 0)


def test_a_text_that_is_too_long_has_no_code() -> None:
    assert qr_code("a" * 521) is None
