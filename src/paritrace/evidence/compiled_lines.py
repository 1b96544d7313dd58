"""Blocks of a journal taken apart in one pass, in numba's dialect; imported only for long journals (PF-10).

Only lines that are written as our writers write them are taken: what is anything else is left to the careful readers,
so that nothing is judged here.
"""

from typing import Any

import numpy as np

from paritrace.evidence.compiled import cached

CALL_NUMBERS = 15  # fields of a call before its slots
BITS_DIGITS, MOST_DIGITS, MOST_EXPONENT = 16, 18, 290
QUOTE, COMMA, MINUS, DOT, ZERO, NINE, OPEN, CLOSE, BRACE, NEWLINE = (ord(char) for char in '",-.09[]{\n')
CALL, DETAIL, FALSE, TRUE, NULL, INPUT, OUTPUT, EXPONENT, CAPITAL = (ord(char) for char in "cdftnioeE")
TAKEN, OTHERWISE = 0, 1
I64, U64 = np.int64, np.uint64
NOTHING = 16
_NIBBLES = np.full(256, NOTHING, np.uint8)  # of each byte its value as a lower-case hex digit
_NIBBLES[[*b"0123456789abcdef"]] = np.arange(16)


@cached
def _integer(data: Any, at: Any) -> Any:
    """A whole number of at most 18 digits, and where it ends; -1 where there is none."""
    negative = data[at] == MINUS
    if negative:
        at += 1
    digit = I64(data[at]) - ZERO
    if digit < 0 or digit > 9 or (digit == 0 and negative):
        return I64(0), -1
    at += 1
    if digit == 0:
        return I64(0), at
    value, first = digit, at
    while True:
        digit = I64(data[at]) - ZERO
        if digit < 0 or digit > 9:
            break
        value = value * 10 + digit
        at += 1
        if at - first >= MOST_DIGITS:
            return I64(0), -1
    return (-value if negative else value), at


@cached
def _hex(data: Any, at: Any) -> Any:
    """Where a quoted string of hex digits ends; -1 where there is none."""
    if data[at] != QUOTE:
        return -1
    at += 1
    while _NIBBLES[data[at]] != NOTHING:
        at += 1
    return at + 1 if data[at] == QUOTE else -1


@cached
def _digits(data: Any, at: Any) -> Any:
    while ZERO <= data[at] <= NINE:
        at += 1
    return at


@cached
def _number(data: Any, at: Any) -> Any:
    """Where a number that float64 can hold, or null, ends; -1 where there is none."""
    if data[at] == NULL:
        return at + 4 if data[at + 1] == 117 and data[at + 2] == 108 and data[at + 3] == 108 else -1
    if data[at] == MINUS:
        at += 1
    end = _digits(data, at)
    if end == at or end - at > MOST_DIGITS or (data[at] == ZERO and end - at > 1):
        return -1
    at = end
    if data[at] == DOT:
        end = _digits(data, at + 1)
        if end == at + 1:
            return -1
        at = end
    if data[at] == EXPONENT or data[at] == CAPITAL:
        at += 1
        if data[at] == MINUS or data[at] == 43:
            at += 1
        end = _digits(data, at)
        if end == at or end - at > 3:
            return -1
        value = I64(0)
        while at < end:
            value = value * 10 + I64(data[at]) - ZERO
            at += 1
        if value > MOST_EXPONENT:
            return -1
    return at


@cached
def _slots(data: Any, at: Any, slots: Any, bits: Any, count: Any) -> Any:
    """Take one list of slots: where it ends, and how many slots there are by then; -1 where it is anything else."""
    if data[at] != OPEN:
        return -1, count
    at += 1
    if data[at] == CLOSE:
        return at + 1, count
    while True:
        if data[at] != OPEN:
            return -1, count
        for field in range(2):
            value, at = _integer(data, at + 1)
            if at < 0 or data[at] != COMMA:
                return -1, count
            slots[field, count] = value
        at += 1
        if data[at] != QUOTE:
            return -1, count
        word, seen = U64(0), np.uint8(0)
        for place in range(at + 1, at + 1 + BITS_DIGITS):
            digit = _NIBBLES[data[place]]
            seen |= digit
            word = (word << U64(4)) | U64(digit)
        if seen >= NOTHING:
            return -1, count
        bits[count] = word
        at += BITS_DIGITS + 1
        if data[at] != QUOTE or data[at + 1] != COMMA:
            return -1, count
        at += 2
        if data[at] == OPEN:
            value, at = _integer(data, at + 1)
            if at < 0 or data[at] != COMMA:
                return -1, count
            output, at = _integer(data, at + 1)
            if at < 0 or data[at] != CLOSE:
                return -1, count
            slots[2, count], slots[3, count], slots[5, count] = value, output, 1
            at += 1
        else:
            value, at = _integer(data, at)
            if at < 0:
                return -1, count
            slots[2, count], slots[3, count], slots[5, count] = value, 0, 0
        how = I64(data[at + 1]) - ZERO if data[at] == COMMA else I64(-1)
        if how < 0 or how > 1 or data[at + 2] != CLOSE:
            return -1, count
        slots[4, count] = how
        count += 1
        at += 3
        if data[at] == CLOSE:
            return at + 1, count
        if data[at] != COMMA:
            return -1, count
        at += 1


@cached
def _call(data: Any, at: Any, calls: Any, number: Any, slots: Any, bits: Any, count: Any) -> Any:
    """Take one call from behind its tag: where its line ends, and how many slots there are by then."""
    for field in range(CALL_NUMBERS):
        value, at = _integer(data, at)
        if at < 0 or data[at] != COMMA:
            return -1, count
        calls[field, number] = value
        at += 1
    at, inputs = _slots(data, at, slots, bits, count)
    if at < 0 or data[at] != COMMA:
        return -1, count
    at, outputs = _slots(data, at + 1, slots, bits, inputs)
    if at < 0 or data[at] != CLOSE or data[at + 1] != NEWLINE:
        return -1, count
    calls[CALL_NUMBERS, number], calls[CALL_NUMBERS + 1, number] = inputs - count, outputs - inputs
    return at + 1, outputs


@cached
def _numbers(data: Any, at: Any, length: Any, whole: Any) -> Any:
    """Where a list of so many numbers, or null, ends."""
    if data[at] == NULL:
        return _number(data, at)
    if data[at] != OPEN:
        return -1
    for place in range(length):
        if whole:
            _, at = _integer(data, at + 1)
        else:
            at = _number(data, at + 1)
        if at < 0 or data[at] != (CLOSE if place == length - 1 else COMMA):
            return -1
    return at + 1


@cached
def _detail(data: Any, at: Any, details: Any, number: Any) -> Any:
    """Look at one summary from behind its tag, every byte of it: where its line ends."""
    value, at = _integer(data, at)
    if at < 0 or data[at] != COMMA or data[at + 1] != QUOTE or data[at + 3] != QUOTE or data[at + 4] != COMMA:
        return -1
    side = data[at + 2]
    slot, at = _integer(data, at + 5)
    if at < 0 or slot < 0 or slot >= 1 << 31 or (side != INPUT and side != OUTPUT):
        return -1
    for _ in range(4):
        if data[at] != COMMA:
            return -1
        at = _hex(data, at + 1)
        if at < 0:
            return -1
    if data[at] != COMMA:
        return -1
    at = _numbers(data, at + 1, 5, False)
    if at < 0 or data[at] != COMMA:
        return -1
    at = _numbers(data, at + 1, 7, True)
    if at < 0 or data[at] != COMMA:
        return -1
    at = _hex(data, at + 1)
    if at < 0 or data[at] != COMMA:
        return -1
    degenerate = data[at + 1] == TRUE
    if degenerate:
        same = data[at + 2] == 114 and data[at + 3] == 117 and data[at + 4] == 101
        at += 5
    else:
        same = data[at + 1] == FALSE and data[at + 2] == 97 and data[at + 3] == 108 and data[at + 4] == 115
        same = same and data[at + 5] == 101
        at += 6
    if not same:
        return -1
    for _ in range(2):  # neither a gap nor a tag
        if data[at] != COMMA or data[at + 1] != NULL:
            return -1
        at = _number(data, at + 1)
        if at < 0:
            return -1
    if data[at] != CLOSE or data[at + 1] != NEWLINE:
        return -1
    details[0, number], details[1, number], details[2, number] = value, 2 * slot + (side == OUTPUT), degenerate
    return at + 1


@cached
def taken_apart(
    data: Any, length: Any, calls: Any, slots: Any, bits: Any, details: Any, others: Any, counts: Any
) -> Any:
    """Take the lines of a block apart: `data` is the block with some bytes of padding behind its last newline.

    Args:
        calls: one column for each call, `CALL_NUMBERS` fields and the numbers of inputs and outputs.
        slots: one column for each slot: name, kind, source, output, how, whether a call made it; `bits` besides.
        details: call, 2 * slot + side, degenerate, start and end of the line, calls before it.
        others: start and end of any other line, calls before it.
        counts: becomes the numbers of calls, slots, details and others.

    Returns:
        `TAKEN`, or `OTHERWISE` where a call is not written plainly: then nothing of the block is to be used.
    """
    at, num_calls, num_slots, num_details, num_others = 0, 0, 0, 0, 0
    while at < length:
        start = at
        tagged = data[at] == OPEN and data[at + 1] == QUOTE and data[at + 3] == QUOTE and data[at + 4] == COMMA
        if tagged and data[at + 2] == CALL:
            end, now = _call(data, at + 5, calls, num_calls, slots, bits, num_slots)
            if end >= 0:
                num_calls += 1
                num_slots = now
                at = end + 1
                continue
        elif tagged and data[at + 2] == DETAIL:
            end = _detail(data, at + 5, details, num_details)
            if end >= 0:
                details[3, num_details], details[4, num_details] = start, end
                details[5, num_details] = num_calls
                num_details += 1
                at = end + 1
                continue
        if tagged and data[at + 2] == CALL:
            while data[at] != NEWLINE and data[at] != BRACE:
                at += 1
            if data[at] == NEWLINE:
                return OTHERWISE
        while data[at] != NEWLINE:
            at += 1
        others[0, num_others], others[1, num_others], others[2, num_others] = start, at, num_calls
        num_others += 1
        at += 1
    counts[0], counts[1], counts[2], counts[3] = num_calls, num_slots, num_details, num_others
    return TAKEN
