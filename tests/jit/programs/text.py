"""Strings: methods, slices, formatting."""

from typing import List

import rushlight as torch  # noqa: F401


def capitalize(a: str):
    return a.capitalize()
#: ('Hello world',)
#: (' a1 ',)
#: ('123',)
#: ('a\tb\nC',)
#: ('',)


def lower(a: str):
    return a.lower()
#: ('Hello world',)
#: (' a1 ',)
#: ('123',)
#: ('a\tb\nC',)
#: ('',)


def upper(a: str):
    return a.upper()
#: ('Hello world',)
#: (' a1 ',)
#: ('123',)
#: ('a\tb\nC',)
#: ('',)


def title(a: str):
    return a.title()
#: ('Hello world',)
#: (' a1 ',)
#: ('123',)
#: ('a\tb\nC',)
#: ('',)


def swapcase(a: str):
    return a.swapcase()
#: ('Hello world',)
#: (' a1 ',)
#: ('123',)
#: ('a\tb\nC',)
#: ('',)


def strip(a: str):
    return a.strip()
#: ('Hello world',)
#: (' a1 ',)
#: ('123',)
#: ('a\tb\nC',)
#: ('',)


def lstrip(a: str):
    return a.lstrip()
#: ('Hello world',)
#: (' a1 ',)
#: ('123',)
#: ('a\tb\nC',)
#: ('',)


def rstrip(a: str):
    return a.rstrip()
#: ('Hello world',)
#: (' a1 ',)
#: ('123',)
#: ('a\tb\nC',)
#: ('',)


def isdigit(a: str):
    return a.isdigit()
#: ('Hello world',)
#: (' a1 ',)
#: ('123',)
#: ('a\tb\nC',)
#: ('',)


def isalpha(a: str):
    return a.isalpha()
#: ('Hello world',)
#: (' a1 ',)
#: ('123',)
#: ('a\tb\nC',)
#: ('',)


def isalnum(a: str):
    return a.isalnum()
#: ('Hello world',)
#: (' a1 ',)
#: ('123',)
#: ('a\tb\nC',)
#: ('',)


def isspace(a: str):
    return a.isspace()
#: ('Hello world',)
#: (' a1 ',)
#: ('123',)
#: ('a\tb\nC',)
#: ('',)


def islower(a: str):
    return a.islower()
#: ('Hello world',)
#: (' a1 ',)
#: ('123',)
#: ('a\tb\nC',)
#: ('',)


def isupper(a: str):
    return a.isupper()
#: ('Hello world',)
#: (' a1 ',)
#: ('123',)
#: ('a\tb\nC',)
#: ('',)


def istitle(a: str):
    return a.istitle()
#: ('Hello world',)
#: (' a1 ',)
#: ('123',)
#: ('a\tb\nC',)
#: ('',)


def isnumeric(a: str):
    return a.isnumeric()
#: ('Hello world',)
#: (' a1 ',)
#: ('123',)
#: ('a\tb\nC',)
#: ('',)


def isdecimal(a: str):
    return a.isdecimal()
#: ('Hello world',)
#: (' a1 ',)
#: ('123',)
#: ('a\tb\nC',)
#: ('',)


def isidentifier(a: str):
    return a.isidentifier()
#: ('Hello world',)
#: (' a1 ',)
#: ('123',)
#: ('a\tb\nC',)
#: ('',)


def isprintable(a: str):
    return a.isprintable()
#: ('Hello world',)
#: (' a1 ',)
#: ('123',)
#: ('a\tb\nC',)
#: ('',)


def expandtabs(a: str):
    return a.expandtabs()
#: ('Hello world',)
#: (' a1 ',)
#: ('123',)
#: ('a\tb\nC',)
#: ('',)


def splitlines(a: str):
    return a.splitlines()
#: ('Hello world',)
#: (' a1 ',)
#: ('123',)
#: ('a\tb\nC',)
#: ('',)


def find(a: str, b: str):
    return a.find(b)
#: ('abcabc', 'b')
#: ('xyz', 'q')
#: ('a,b,,c', ',')


def rfind(a: str, b: str):
    return a.rfind(b)
#: ('abcabc', 'b')
#: ('xyz', 'q')
#: ('a,b,,c', ',')


def count(a: str, b: str):
    return a.count(b)
#: ('abcabc', 'b')
#: ('xyz', 'q')
#: ('a,b,,c', ',')


def startswith(a: str, b: str):
    return a.startswith(b)
#: ('abcabc', 'b')
#: ('xyz', 'q')
#: ('a,b,,c', ',')


def endswith(a: str, b: str):
    return a.endswith(b)
#: ('abcabc', 'b')
#: ('xyz', 'q')
#: ('a,b,,c', ',')


def partition(a: str, b: str):
    return a.partition(b)
#: ('abcabc', 'b')
#: ('xyz', 'q')
#: ('a,b,,c', ',')


def rpartition(a: str, b: str):
    return a.rpartition(b)
#: ('abcabc', 'b')
#: ('xyz', 'q')
#: ('a,b,,c', ',')


def split(a: str, b: str):
    return a.split(b)
#: ('abcabc', 'b')
#: ('xyz', 'q')
#: ('a,b,,c', ',')


def rsplit(a: str, b: str):
    return a.rsplit(b)
#: ('abcabc', 'b')
#: ('xyz', 'q')
#: ('a,b,,c', ',')


def index_of(a: str, b: str):
    return a.index(b), a.rindex(b)
#: ('abcabc', 'b')


def find_from(a: str):
    return a.find('b', 2), a.find('b', 0, 1), a.rfind('b', 0, 4), a.count('b', 1, 5)
#: ('abcabc',)


def join(a: List[str], b: str):
    return b.join(a)
#: (['x', 'y', 'z'], '-')
#: ([], ',')


def replaced(a: str):
    return a.replace('a', 'xx'), a.replace('a', 'y', 1)
#: ('banana',)


def stripped(a: str):
    return a.strip('xy'), a.lstrip('x'), a.rstrip('y')
#: ('xyabcyx',)


def justified(a: str):
    return a.ljust(6), a.rjust(6), a.center(7), a.ljust(5, '*'), a.zfill(5)
#: ('abc',)
#: ('toolong',)


def split_any(a: str):
    return a.split(), a.split(' ', 1), a.rsplit(' ', 1)
#: ('a b  c',)


def length(a: str):
    return len(a)
#: ('abc',)


def subscript(a: str):
    return a[0], a[-1], a[1:3], a[:-1], a[::2], a[::-1]
#: ('hello',)


def iterated(a: str):
    out = ''
    for c in a:
        out = c + out
    return out
#: ('abc',)


def chars(a: str):
    return list(a)
#: ('abc',)


def contains(a: str, b: str):
    return b in a, b not in a
#: ('abc', 'b')
#: ('abc', 'z')


def compared(a: str, b: str):
    return a == b, a != b, a < b, a > b, a <= b
#: ('abc', 'abd')
#: ('x', 'x')


def added(a: str, b: str):
    a += b
    return a + b + 'c'
#: ('x', 'y')


def repeated(a: str):
    return a * 3
#: ('xy',)


def formatted(a: str, n: int, x: float):
    return '{} {} {}'.format(a, n, x), 'v={}'.format(n)
#: ('q', 3, 2.5)


def f_strings(a: str, n: int):
    return f'{a} is {n}', f'{n + 1}{a}', f'none'
#: ('q', 3)


def percent(a: str, n: int, x: float):
    return '%s and %d and %f' % (a, n, x), '%s' % a
#: ('q', 3, 2.5)


def of_values(n: int, x: bool, y: List[int]):
    return str(n), str(x), str(y)
#: (3, True, [1, 2])


def of_tensor(x: torch.Tensor):
    return str(x.size())
#: (torch.ones(2, 3),)


def literals():
    return 'a\n\t"quoted"', "it's", 'caf\u00e9', ''
#: ()


def concatenated():
    return 'one ' 'two'
#: ()


def truthy(a: str):
    if len(a) > 0:
        return 1
    return 0
#: ('x',)
#: ('',)


def multiplied_split(a: str):
    words = a.split(' ')
    result: List[str] = []
    for w in words:
        if w.isalpha():
            result.append(w.capitalize())
    return ' '.join(result)
#: ('the quick 1 fox',)


def converted(a: str):
    return int(a) + 1, float(a) / 2
#: ('42',)


def ords(a: str):
    total = 0
    for i in range(len(a)):
        total += ord(a[i])
    return total, chr(97)
#: ('az',)


def format_specifications(n: int):
    return '{}-{:d}'.format('z', n), '{:.3f} {}'.format(n, 2), '{0}'.format(n), '{}'.format(n, 1)
#: (3,)


def too_few_to_format(n: int):
    return '{} {}'.format(n)
#: (3,)


def first_short_piece(word: str):
    start = 0
    pieces = ''
    while start < len(word):
        end = len(word)
        piece: Optional[str] = None
        while start < end:
            part = word[start:end]
            if len(part) < 3:
                piece = part
                break
            end -= 1
        if piece is None:
            return 'none'
        pieces = pieces + piece + '-'
        start = end
    return pieces
#: ('abcde',)
