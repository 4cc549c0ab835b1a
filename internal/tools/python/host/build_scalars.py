"""Builds values without parts from a JSON text or number: dates, durations, decimals, UUIDs, paths, addresses."""
import datetime
import decimal
import ipaddress
import pathlib
import re
import uuid

from _oneturn_host.build_limits import Unbuildable, want

MAX_DIGITS = 64  # of a number that is a text; to read a long one takes quadratic time before Python 3.10.7
DURATION = re.compile(r"(-)?P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")
A_DURATION = "a number of seconds, or a duration such as PT1H30M"


def scalar(make, what):
    """Builds what has no parts. Of what is out of range not all complain with a ValueError."""
    def build(value, work):
        try:
            return make(value)
        except Unbuildable:
            raise
        except (ValueError, TypeError, ArithmeticError):
            raise Unbuildable("must be " + what) from None
    return build


def text(make, what):
    def strict(value):
        want(value, str, what)
        return make(value.strip())
    return scalar(strict, what)


def moment(value):
    if value[-1:] in "zZ" and value:  # which Python takes since 3.11 only
        value = value[:-1] + "+00:00"
    return datetime.datetime.fromisoformat(value)


def clock(value):
    return datetime.time.fromisoformat(value[:-1] + "+00:00" if value[-1:] in "zZ" and value else value)


def span(value):
    if not isinstance(value, str):
        want(value, (int, float), A_DURATION)
        return datetime.timedelta(seconds=value)
    found = DURATION.fullmatch(value.strip())
    if found is None or not any(found.groups()[1:]):
        raise Unbuildable("must be " + A_DURATION)
    weeks, days, hours, minutes, seconds = (float(group or 0) for group in found.groups()[1:])
    length = datetime.timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    return -length if found.group(1) else length


def exact(value):
    want(value, (int, float, str), "a decimal number")
    number = decimal.Decimal(str(value).strip())
    if not number.is_finite():
        raise Unbuildable("must be a decimal number")
    return number


def floating(value):
    return float(value) if type(value) is int and abs(value) <= 1 << 53 else value


def number(value):
    return int(value if len(value) <= MAX_DIGITS else "")


number_key = scalar(number, "a whole number, as a key")
SIMPLE = {
    float: scalar(floating, "a number"), decimal.Decimal: scalar(exact, "a decimal number"), datetime.timedelta: scalar(span, A_DURATION),
    datetime.datetime: text(moment, "a date and time such as 2026-08-01T12:30:00Z"),
    datetime.date: text(datetime.date.fromisoformat, "a date such as 2026-08-01"),
    datetime.time: text(clock, "a time such as 12:30:00"),
    uuid.UUID: text(uuid.UUID, "a UUID"),
}
SIMPLE.update({kind: text(kind, "a path") for kind in (
    pathlib.Path, pathlib.PurePath, pathlib.PurePosixPath, pathlib.PosixPath, pathlib.PureWindowsPath)})
SIMPLE.update({kind: text(kind, "an IP address") for kind in (
    ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Network, ipaddress.IPv6Network, ipaddress.IPv4Interface, ipaddress.IPv6Interface)})
