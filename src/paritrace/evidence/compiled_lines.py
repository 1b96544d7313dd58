"""Blocks of a journal taken apart in one pass, in numba's dialect; imported only to be compiled (PF-10, ADR 0058).

Only lines that are written as our writers write them are taken: what is anything else is left to the careful readers,
so that nothing is judged here. Tables come as pointers: a row of a table is `room` numbers long.
"""

from typing import Any

import numpy as np
from numba import njit

from paritrace.evidence.call_batches import FROM_ORIGIN

CALL_NUMBERS = 15  # fields of a call before its slots
BITS_DIGITS, MOST_DIGITS, MOST_EXPONENT = 16, 18, 290
QUOTE, COMMA, MINUS, DOT, ZERO, NINE, OPEN, CLOSE, BRACE, END_BRACE, NEWLINE = (ord(char) for char in '",-.09[]{}\n')
CALL, DETAIL, SAMPLES, FALSE, TRUE, NULL, INPUT, OUTPUT, EXPONENT, CAPITAL = (ord(char) for char in "cdtftnioeE")
FIRST_LETTER, LAST_LETTER, UNDERSCORE = (ord(char) for char in "az_")
TAKEN, OTHERWISE = 0, 1
I64, U64 = np.int64, np.uint64
NOTHING = 16
_NIBBLES = np.full(256, NOTHING, np.uint8)  # of each byte its value as a lower-case hex digit
_NIBBLES[[*b"0123456789abcdef"]] = np.arange(16)
_GAP = np.frombuffer(b'{"gap":"', np.uint8)  # what stands where bits are not known, before the reason
LONGEST_GAP, OF_LENGTH = 255, 8  # bytes of a reason, and the bits that hold its length
_TABLES = "CPointer(int64), CPointer(uint64), int64, CPointer(int64), CPointer(int64), CPointer(int64), CPointer(int64)"
SIGNATURE = f"int64(CPointer(uint8), int64, CPointer(int64), int64, {_TABLES})"
cached = njit(nogil=True, error_model="numpy")


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
def _word(data: Any, at: Any) -> Any:
    """The number of 16 quoted hex digits, and where they end; -1 where they are anything else."""
    word, seen = U64(0), np.uint8(0)
    for place in range(at + 1, at + 1 + BITS_DIGITS):
        digit = _NIBBLES[data[place]]
        seen |= digit
        word = (word << U64(4)) | U64(digit)
    at += BITS_DIGITS + 1
    return word, (at + 1 if seen < NOTHING and data[at] == QUOTE else -1)


@cached
def _gap(data: Any, at: Any) -> Any:
    """Where the reason of a gap without more detail stands, and where the gap ends; -1 where it is anything else."""
    for place in range(len(_GAP)):
        if data[at + place] != _GAP[place]:
            return I64(0), -1
    first = at + len(_GAP)
    end = first
    while FIRST_LETTER <= data[end] <= LAST_LETTER or data[end] == UNDERSCORE:
        end += 1
    if end == first or end - first > LONGEST_GAP or data[end] != QUOTE or data[end + 1] != END_BRACE:
        return I64(0), -1
    return I64(first << OF_LENGTH | (end - first)), end + 2


@cached
def _slots(data: Any, at: Any, slots: Any, bits: Any, room: Any, count: Any) -> Any:
    """Take one list of slots: where it ends, and how many slots there are by then; -1 where it is anything else."""
    if data[at] != OPEN:
        return -1, count
    at += 1
    if data[at] == CLOSE:
        return at + 1, count
    while True:
        if data[at] != OPEN or count >= room:
            return -1, count
        for field in range(2):
            value, at = _integer(data, at + 1)
            if at < 0 or data[at] != COMMA:
                return -1, count
            slots[field * room + count] = value
        at += 1
        word, gap = U64(0), I64(0)
        if data[at] == QUOTE:
            word, at = _word(data, at)
        else:
            gap, at = _gap(data, at)
        if at < 0 or data[at] != COMMA:
            return -1, count
        bits[count], slots[5 * room + count] = word, gap
        at += 1
        if data[at] == OPEN:
            value, at = _integer(data, at + 1)
            if at < 0 or data[at] != COMMA:
                return -1, count
            output, at = _integer(data, at + 1)
            if at < 0 or data[at] != CLOSE:
                return -1, count
            slots[2 * room + count], slots[3 * room + count] = value, output
            at += 1
        else:
            value, at = _integer(data, at)
            if at < 0:
                return -1, count
            slots[2 * room + count], slots[3 * room + count] = value, FROM_ORIGIN
        how = I64(data[at + 1]) - ZERO if data[at] == COMMA else I64(-1)
        if how < 0 or how > 1 or data[at + 2] != CLOSE:
            return -1, count
        slots[4 * room + count] = how
        count += 1
        at += 3
        if data[at] == CLOSE:
            return at + 1, count
        if data[at] != COMMA:
            return -1, count
        at += 1


@cached
def _call(data: Any, at: Any, calls: Any, lines: Any, number: Any, slots: Any, bits: Any, room: Any, count: Any) -> Any:
    """Take one call from behind its tag: where its line ends, and how many slots there are by then."""
    for field in range(CALL_NUMBERS):
        value, at = _integer(data, at)
        if at < 0 or data[at] != COMMA:
            return -1, count
        calls[field * lines + number] = value
        at += 1
    at, inputs = _slots(data, at, slots, bits, room, count)
    if at < 0 or data[at] != COMMA:
        return -1, count
    at, outputs = _slots(data, at + 1, slots, bits, room, inputs)
    if at < 0 or data[at] != CLOSE or data[at + 1] != NEWLINE:
        return -1, count
    calls[CALL_NUMBERS * lines + number] = inputs - count
    calls[(CALL_NUMBERS + 1) * lines + number] = outputs - inputs
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
def _detail(data: Any, at: Any, details: Any, lines: Any, number: Any) -> Any:
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
    details[number], details[lines + number] = value, 2 * slot + (side == OUTPUT)
    details[2 * lines + number] = degenerate
    return at + 1


@cached
def _samples(data: Any, at: Any) -> Any:
    """Look at samples of an inventory from behind their tag, every byte of them: where their line ends."""
    for _ in range(2):
        _, at = _integer(data, at)
        if at < 0 or data[at] != COMMA:
            return -1
        at += 1
    if data[at] != QUOTE:
        return -1
    at += 1
    while FIRST_LETTER <= data[at] <= LAST_LETTER or data[at] == UNDERSCORE:
        at += 1
    if data[at] != QUOTE or data[at + 1] != COMMA:
        return -1
    _, at = _integer(data, at + 2)
    if at < 0 or data[at] != COMMA or data[at + 1] != OPEN:
        return -1
    at += 1
    while True:
        at = _hex(data, at + 1)
        if at < 0:
            return -1
        if data[at] == CLOSE:
            break
        if data[at] != COMMA:
            return -1
    return at + 2 if data[at + 1] == CLOSE and data[at + 2] == NEWLINE else -1


def taken_apart(
    data: Any,
    length: Any,
    calls: Any,
    lines: Any,
    slots: Any,
    bits: Any,
    room: Any,
    details: Any,
    samples: Any,
    others: Any,
    counts: Any,
) -> Any:
    """Take the lines of a block apart: `data` is the block with some bytes of padding behind its last newline.

    Args:
        calls: one row for each of `CALL_NUMBERS` fields and of the numbers of inputs and outputs, of `lines` numbers.
        slots: rows of `room` numbers: name, kind, source, output (`FROM_ORIGIN`: an origin's id), how, and for a gap
            in place of bits where its reason stands: its place and, in `OF_LENGTH` bits, its length; `bits` besides.
        details: call, 2 * slot + side, degenerate, start and end of the line, calls before it; rows of `lines`.
        samples: start and end of the line, calls before it; rows of `lines`.
        others: the same of any other line.
        counts: becomes the numbers of calls, slots, details, samples and others.

    Returns:
        `TAKEN`, or `OTHERWISE` where a call is not written plainly or there are more lines or slots than have room:
        then nothing of the block is to be used.
    """
    at, num_calls, num_slots, num_details, num_samples, num_others = 0, 0, 0, 0, 0, 0
    while at < length:
        if num_calls + num_details + num_samples + num_others >= lines:
            return OTHERWISE
        start = at
        tagged = data[at] == OPEN and data[at + 1] == QUOTE and data[at + 3] == QUOTE and data[at + 4] == COMMA
        tag = data[at + 2] if tagged else NEWLINE
        if tag == CALL:
            end, now = _call(data, at + 5, calls, lines, num_calls, slots, bits, room, num_slots)
            if end >= 0:
                num_calls += 1
                num_slots = now
                at = end + 1
                continue
        elif tag == DETAIL:
            end = _detail(data, at + 5, details, lines, num_details)
            if end >= 0:
                details[3 * lines + num_details], details[4 * lines + num_details] = start, end
                details[5 * lines + num_details] = num_calls
                num_details += 1
                at = end + 1
                continue
        elif tag == SAMPLES:
            end = _samples(data, at + 5)
            if end >= 0:
                samples[num_samples], samples[lines + num_samples] = start, end
                samples[2 * lines + num_samples] = num_calls
                num_samples += 1
                at = end + 1
                continue
        if tag == CALL:
            while data[at] != NEWLINE and data[at] != BRACE:
                at += 1
            if data[at] == NEWLINE:
                return OTHERWISE
        while data[at] != NEWLINE:
            at += 1
        others[num_others], others[lines + num_others], others[2 * lines + num_others] = start, at, num_calls
        num_others += 1
        at += 1
    counts[0], counts[1], counts[2], counts[3], counts[4] = num_calls, num_slots, num_details, num_samples, num_others
    return TAKEN
