"""Writes cases.json: texts of .env files, and what python-dotenv reads from them.

Needs python-dotenv; run it in this folder when a text is added.
"""
import io
import json
import os

from dotenv.main import DotEnv

os.environ.clear()
os.environ["OUTER"] = "outer"
TEXTS = [
    "A=b", " A = b ", "export A=b", "export\tA=b", "export  A = 'b c'", "A=b # note", "A=b#c", "A=#b", "A= # b", "A='b' # note", 'A="b"# note',
    "A=", "A= ", "A=''", 'A=""', "A", "A=1\nA", "A\nA=2", "A=1\nA=2\nB=3", "# note\n\n \t\nA=b\n", "A=b\n\n  # c\n B=c",
    "A.b-c=d", "a:b=c", "'A B'=c", "'A=c", "=b", "A==b", "A=b=c", "A b=c", "not a line\nB=c",
    r"A='\n\t\\\''", r'''A="\n\t\\\"\'\a\b\f\r\v\x\u0041 \$"''', r"A=\n\"x", r"A='b\'", r'A="b\"', "A='b\"c'", "A=\"b'c\"", "A=b'c", "A=b\"c\"",
    "A='b\nc'\nB=d", 'A="b\n\n c # d\n"\nB=d', "A=\"b\nB=d", "A='b' c\nB=d", 'A="b" "c"\nB=d', 'A="-----BEGIN KEY-----\nMIIE/+==\n-----END KEY-----\n"',
    "A=-----BEGIN KEY-----\nMIIE/+==\n-----END KEY-----",
    "A=b\r\nB='c\r\nd'\r\nC=e # f\r\n", "A=b\rB=c", "A=b\vc\x0cd\x1ce", "A=\u00a0b\u2003\u3000", "A=b\u00a0# c", "A=\u00fc\U0001f600", "\u00dc=b",
    "A=b\nB=${A}", "A=b\nB='${A}'", 'A=b\nB="${A}c${A}"', "A=${B}\nB=c", "A=$B\nB=$A", "A=${OUTER}", "A=${NONE}", "A=${NONE:-d e}", "A=${OUTER:-d}",
    "A=${NONE-d}", "A=${NONE:-}", "A=${NONE:d}", "A=\nB=${A:-d}", "A\nB=${A:-d}", "A=1\nA=${A}2\nA=${A}3", "OUTER=in\nA=${OUTER}", "A=${NONE:-${OUTER}}", "A=${", "A=${}", "A='${\nB}'",
    'A={"k": "v", "n": [1, 2]}', "A='{\"k\": \"v\"}'", "A=p@ss#word!", "A=a b  c   ", "A=tab\tend\t# x", "exportA=b", "export", "export=b", "A=b;B=c", "A: b",
]
cases = [
    {"text": t, "values": {k: v for k, v in DotEnv(None, stream=io.StringIO(t.replace("\r\n", "\n").replace("\r", "\n")), override=True).dict().items() if v is not None}}
    for t in TEXTS
]
with open("cases.json", "w") as out:
    out.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
