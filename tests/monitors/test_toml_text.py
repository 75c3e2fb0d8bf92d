"""TOML of somebody else: what would take the parser long is refused before it."""

from pathlib import Path

import msgspec
import pytest
import tomlkit

from warpbook_labs.errors import BadLab
from warpbook_labs.lab.loader import load
from warpbook_monitors import toml_text
from warpbook_monitors.alerts.rules import read_rules
from warpbook_monitors.alerts.rules_edit import with_rule
from warpbook_monitors.errors import RulesError

ROOT = Path(__file__).parents[2]

BOMBS = {
    "dotted key": "\n" + ".".join("a" * 200_000) + " = 1",
    "dotted header": "\n[" + ".".join("a" * 200_000) + "]",
    "quoted parts": "\n" + " . ".join(["'a'"] * 60_000) + " = 1",
    "arrays": "\na = " + "[" * 200_000,
    "headers": "\n" + "[" * 200_000,
    "inline tables": "\na = " + "{a = " * 90_000,
    # the fourth quote is of the string: what follows is not
    "behind a string": 'a = ["""\n"""", ' + "[" * 200_000,
    "within an array": "a = ['''\n''''', " + "[" * 200_000,
    "behind a comment": '# "\na = ' + "[" * 200_000,
    "digits": "\na = " + "9" * 400_000,
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_bomb_is_refused_with_its_line(bomb: str, tmp_path: Path) -> None:
    rules, lab = tmp_path / "rules.toml", tmp_path / "lab.toml"
    rules.write_text(bomb)
    lab.write_text(bomb)
    with pytest.raises(RulesError, match="at line 2"):
        read_rules(rules)
    with pytest.raises(BadLab, match="at line 2"):
        load(tmp_path)
    with pytest.raises(ValueError, match="at line 2"):
        with_rule(bomb, "temperature", False, {"for_s": 1})


@pytest.mark.parametrize(
    "text", [b"a = 1\n" * 200_000, b"a = 1\nb = \xff", b"a = 2020-99-99", b"\x00"]
)
def test_no_other_error_comes_out_of_it(text: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        toml_text.decode(text, dict)


def test_what_looks_like_brackets_within_strings_and_comments_is_read() -> None:
    text = (
        f"# {'[' * 50}\n"
        f"a = 'it {'[' * 50} and {'.' * 50}'\n"
        f'b = """\n{"[" * 50} \\" "" {"." * 50}"""""\n'
        f"c = '''{'{' * 50}''' # '''\n"
        f'"d.{"." * 50}" = [1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5]\n'
    )
    assert toml_text.decode(text, dict) == tomlkit.parse(text).unwrap()


def test_what_is_shipped_is_read_as_it_was() -> None:
    files = [*ROOT.glob("labs/**/*.toml"), *ROOT.glob("monitors/**/*.toml")]
    assert len(files) > 50
    for file in files:
        content = file.read_bytes()
        assert (
            toml_text.decode(content, dict) == tomlkit.parse(content.decode()).unwrap()
        )
