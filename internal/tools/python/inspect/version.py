"""Writes the version of the interpreter as [major, minor]."""
import sys

sys.stdout.write("[%d,%d]" % tuple(sys.version_info[:2]))
