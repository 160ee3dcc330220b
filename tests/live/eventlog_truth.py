# SPDX-License-Identifier: GPL-2.0-or-later
"""An independent, simple and slow reader of GHC's eventlogs, with which tests compare safescoped's.

Written from the format (GHC: rts/include/rts/EventLogFormat.h, rts/gen_event_types.py), without looking at safescoped's
reader."""

import struct
from collections import Counter


class Event:
    __slots__ = ("time", "id", "cap", "data", "variable", "at")

    def __init__(self, time, number, cap, data, variable, at):
        self.time, self.id, self.cap, self.data, self.variable, self.at = time, number, cap, data, variable, at

    def u16(self, at):
        return struct.unpack_from(">H", self.data, at)[0]

    def u32(self, at):
        return struct.unpack_from(">I", self.data, at)[0]

    def u64(self, at):
        return struct.unpack_from(">Q", self.data, at)[0]

    def strings(self, at):
        return [s.decode() for s in self.data[at:].split(b"\0")]


CREATE_THREAD, RUN_THREAD, STOP_THREAD, THREAD_RUNNABLE, GC_START, GC_END = 0, 1, 2, 3, 9, 10
GC_GLOBAL_SYNC = 54
BLOCK_MARKER, USER_MSG, USER_MARKER = 18, 19, 58
HEAP_SIZE, COST_CENTRE, PROF_SAMPLE, PROF_BEGIN = 50, 161, 167, 168
HEAP_SAMPLE_BEGIN = 162
TICKY_DEF, TICKY_SAMPLE = 210, 211
FOREIGN_CALL = 6


def read(path):
    """(offset of the first event, list of events by time; the order within each capability is kept)."""
    raw = path.read_bytes()
    assert raw[:8] == b"hdrbhetb", "no eventlog"
    at, sizes = 8, {}
    while raw[at:at + 4] == b"etb\0":
        number, size, desc = struct.unpack_from(">HHI", raw, at + 4)
        extra, = struct.unpack_from(">I", raw, at + 12 + desc)
        sizes[number] = size
        at += 16 + desc + extra
        assert raw[at:at + 4] == b"ete\0", "an event type without its end"
        at += 4
    assert raw[at:at + 12] == b"hetehdredatb", "a header without its end"
    at += 12
    first, cap, block_end, events = at, 0xffff, 0, []
    while at + 2 <= len(raw):
        number, = struct.unpack_from(">H", raw, at)
        if number == 0xffff:
            break
        time, = struct.unpack_from(">Q", raw, at + 2)
        body, size = at + 10, sizes[number]
        variable = size == 0xffff
        if variable:
            size, = struct.unpack_from(">H", raw, body)
            body += 2
        if number == BLOCK_MARKER:
            length, _, cap = struct.unpack_from(">IQH", raw, body)
            block_end = at + length
        elif at >= block_end:
            cap = 0xffff
        events.append(Event(time, number, cap, raw[body:body + size], variable, at))
        at = body + size
    events.sort(key=lambda e: e.time)
    return first, events


def counts(events):
    return Counter(e.id for e in events)


def cost_centres(events):
    """{id: (label, module, source)}"""
    return {e.u32(0): tuple(e.strings(4)[:3]) for e in events if e.id == COST_CENTRE}


def samples(events):
    """[(time, capability, stack of ids, root first)]"""
    found = []
    for e in events:
        if e.id == PROF_SAMPLE:
            depth = e.data[12]
            found.append((e.time, e.u32(0), tuple(reversed(struct.unpack_from(f">{depth}I", e.data, 13)))))
    return found


def foreign_calls(events):
    """[(thread, start, end)]: from the thread's stop for a foreign call to its next run."""
    calls, out = [], {}
    for e in events:
        if e.id == STOP_THREAD and e.u16(4) == FOREIGN_CALL:
            out[e.u32(0)] = e.time
        elif e.id == RUN_THREAD and e.u32(0) in out:
            calls.append((e.u32(0), out.pop(e.u32(0)), e.time))
    return calls


def running(events):
    """{thread: ns for which it ran}"""
    total, since = Counter(), {}
    for e in events:
        if e.id == RUN_THREAD:
            since[e.cap] = (e.u32(0), e.time)
        elif e.id == STOP_THREAD and e.cap in since:
            thread, start = since.pop(e.cap)
            total[thread] += e.time - start
    return total
