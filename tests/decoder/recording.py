"""Second decoder of recordings, written from nntrace-user/docs/format.md alone.

    recording.py DIR              prints sums of the recording, in the form of `nntrace-bpf replay DIR --json`
    recording.py DIR --sections   prints its sections, one by one, as lines of JSON
"""

import json
import sys
from collections import defaultdict, namedtuple
from pathlib import Path
from struct import Struct
from zlib import crc32

from zstandard import ZstdDecompressor, ZstdError

U64 = 2**64

# A file.
FILE = Struct("<8sHHIIQI")
FILE_MAGIC = b"NNTREC\r\n"
MAJOR = 1
RUN = "run.nnt"

# A block.
BLOCK = Struct("<4sBBHIIIIQQQQII")
BLOCK_MAGIC = b"NNB\n"
EVENTS, CHECKPOINT = 0, 1
PLAIN, ZSTD = 0, 1
EVENTS_LIMIT, CONTENT_LIMIT = 16 << 20, 256 << 20
Block = namedtuple("Block", "content first last bytes")

# Fields of the kinds of entries: n number, t time, d difference, b byte, h hash, s bytes, l list of hashes.
FIELDS = {
    0: "nnbbbbbhh", 1: "hs", 2: "ntnnn", 3: "ntnnn", 4: "nnbth", 5: "ntnn", 6: "ntnn", 7: "ntnn", 8: "nt", 9: "nnntnn",
    10: "nnnt", 11: "nnnt", 12: "nnnt", 13: "nnnt", 14: "nnnt", 15: "nn", 16: "nnnts", 17: "nnntsn", 18: "nnnntdh",
    19: "n", 20: "nntb", 21: "nnt", 22: "ns", 23: "l", 24: "n",
} | dict.fromkeys(range(25, 32), "s")  # fmt: skip
SITE, NAME, SPAN, SPAN_ANYWHERE, TAKES_PART, THREAD_MARKED = 0, 1, 2, 3, 14, 15
Site = namedtuple("Site", "pid tid tag klass depth adds provisional path name")

# Values.
LAYERS = "LA LR LI LD LC LU LO".split()
PHASES = "PO PWU PBM PI PP PC PE PT PU PIO PTR PCO PR".split()
EXECUTION = PHASES.index("PE")
SUBTRACTED, HANDED, PART = 4, 5, 6
OWN_COUNTS, EXECUTION_COUNTS, IN_ITSELF = 1, 2, 4


class Damaged(Exception):
    """An entry is against the format."""


class Content:
    """Entries of one block."""

    def __init__(self, content):
        self.content, self.at, self.time = content, 0, 0

    def take(self, size):
        part = self.content[self.at : self.at + size]
        if len(part) < size:
            raise Damaged("content ends within a field")
        self.at += size
        return part

    def number(self):
        value = 0
        for shift in range(0, 70, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
        if byte >= 0x80 or value >= U64:
            raise Damaged("number beyond 64 bits")
        return value

    def difference(self):
        value = self.number()
        return value >> 1 ^ -(value & 1)

    def field(self, form):
        match form:
            case "n":
                return self.number()
            case "t":
                self.time = (self.time + self.difference()) % U64
                return self.time
            case "d":
                return self.difference()
            case "b":
                return self.take(1)[0]
            case "h":
                return int.from_bytes(self.take(8), "little")
            case "s":
                return self.take(self.number())
            case "l":
                return [self.field("h") for _ in range(self.number())]

    def entries(self, number):
        """Yields number, kind and fields of each entry; a definition has the number of the event before it."""
        while self.at < len(self.content):
            head = self.number()
            kind = head & 31
            number += head >> 5
            yield number, kind, [self.field(form) for form in FIELDS[kind]]


class File:
    """Header and blocks of a file."""

    def __init__(self, path):
        self.bytes = path.read_bytes()
        self.recording = None
        head = self.bytes[: FILE.size]
        self.begin = 0
        if len(head) == FILE.size and crc32(head[:-4]) == int.from_bytes(head[-4:], "little"):
            magic, major, _, _, _, recording, _ = FILE.unpack(head)
            if magic == FILE_MAGIC:
                if major > MAJOR:
                    sys.exit(f"{path} is of version {major}; this program reads {MAJOR}")
                self.recording, self.begin = recording, FILE.size

    def blocks(self):
        """Yields all blocks that are intact."""
        at, last = self.begin, 0
        while (at := self.bytes.find(BLOCK_MAGIC, at)) >= 0:
            head = self.header(at, last)
            if head is None:
                at += 1
                continue
            content, compression, stored_size, size, first, last, crc = head
            at += BLOCK.size
            stored = self.bytes[at : at + stored_size]
            at += stored_size
            if crc32(stored) != crc:
                continue
            try:
                if compression == ZSTD:
                    stored = ZstdDecompressor().stream_reader(stored).read(size + 1)
            except ZstdError:
                continue
            if len(stored) == size:
                yield Block(content, first, last, stored)

    def header(self, at, last_before):
        """Returns what a block header says, if it is intact."""
        head = self.bytes[at : at + BLOCK.size]
        if len(head) < BLOCK.size or crc32(head[:-4]) != int.from_bytes(head[-4:], "little"):
            return None
        _, content, compression, _, stored, size, _, _, first, last, _, _, crc, _ = BLOCK.unpack(head)
        is_size = stored < size if compression == ZSTD else stored == size
        is_size &= size <= (EVENTS_LIMIT if content == EVENTS else CONTENT_LIMIT)
        is_number = last_before < first <= last if content == EVENTS else last_before <= first <= last
        if compression not in (PLAIN, ZSTD) or not is_size or not is_number:
            return None
        return content, compression, stored, size, first, last, crc


class Recording:
    """Last checkpoint of a recording, the sections up to it, and later ones where the run was not ended."""

    def __init__(self, folder):
        # The checkpoint's events are in the files that are there once it was read.
        if not (folder / RUN).is_file():
            sys.exit(f"{folder} is no recording: it has no {RUN}")
        run = File(folder / RUN)
        states = [block for block in run.blocks() if block.content == CHECKPOINT]
        if not states:
            sys.exit(f"{folder} has no state: nothing can be made of its events")
        self.last, self.state = states[-1].last, json.loads(states[-1].bytes)
        self.names, self.spans, self.taking_part = {}, [], set()
        self.later, self.taking_part_later = [], set()
        for path in sorted(folder.glob("*.nnt")):
            if path.is_file() and path.name != RUN:
                file = File(path)
                if None not in (file.recording, run.recording) and file.recording != run.recording:
                    sys.exit(f"{path} is of another recording")
                self.take(file)
        self.take(run)
        late = {int(name["hash"], 16): name["text"] for name in self.state["late_names"]}
        self.names = late | {name: text.decode(errors="replace") for name, text in self.names.items()}

    def take(self, file):
        for block in file.blocks():
            if block.content == EVENTS:
                try:
                    self.take_events(block)
                except Damaged as damage:
                    print(f"entries at the end of a block are left out: {damage}", file=sys.stderr)

    def take_events(self, block):
        sites = []
        for number, kind, fields in Content(block.bytes).entries(block.first):
            if kind == SITE:
                sites.append(Site(*fields))
            elif kind == NAME:
                self.names[fields[0]] = fields[1]
            elif number > self.last and self.state["is_last"]:
                continue
            elif kind in (SPAN, SPAN_ANYWHERE):
                site, end, length, not_own, not_exclusive = fields
                if site >= len(sites):
                    raise Damaged(f"no site {site}")
                times = (end - length, end, length - not_own, length - not_exclusive)
                if min(times) < 0:
                    raise Damaged(f"times of a section are negative: {times}")
                (self.spans if number <= self.last else self.later).append((sites[site], *times))
                if not sites[site].provisional:
                    self.takes_part(number, sites[site][:2])
            elif kind in (TAKES_PART, THREAD_MARKED):
                self.takes_part(number, tuple(fields[:2]))

    def takes_part(self, number, thread):
        (self.taking_part if number <= self.last else self.taking_part_later).add(thread)

    def counted(self):
        """Returns the sections that sums are made of: site, begin, end, own and exclusive time."""
        return [span for span in self.spans if counts_in(span[0], self.taking_part)]

    def listed(self):
        """Returns all sections, those behind the checkpoint too."""
        taking_part = self.taking_part | self.taking_part_later
        return [span for span in self.spans + self.later if counts_in(span[0], taking_part)]

    def name(self, name):
        return self.names.get(name, f"?{name:016x}")

    def phases(self):
        paths = {path["path"]: path for path in self.state["paths"]}
        sums = defaultdict(lambda: [0, 0, 0])
        for row in self.state["totals"]:
            step = paths[row["path"]]
            tag, adds = step["tag"], step["adds"]
            if not is_tag(tag) or step["class"] == HANDED:
                continue
            sums[row["pid"], tag][2] += row["exclusive_ns"]
            execution = tag & 0xF0 | EXECUTION
            for bit, to in (OWN_COUNTS, tag), (EXECUTION_COUNTS, execution):
                if adds & bit:
                    sums[row["pid"], to][0] += row["count"]
                    sums[row["pid"], to][1] += row["own_ns"]
        comms = self.state["processes"]
        return [
            {"pid": pid, "comm": comms.get(str(pid), "")} | letters(tag) | counts(row)
            for (pid, tag), row in sorted(sums.items())
        ]

    def stacks(self):
        paths = {path["path"]: path for path in self.state["paths"]}
        sums = defaultdict(lambda: [0, 0, 0])
        for row in self.state["totals"]:
            path, stack = row["path"], []
            adds = paths[path]["adds"] & OWN_COUNTS
            while int(path, 16):
                stack.append(frame(paths[path]))
                path = paths[path]["parent"]
            own = row["own_ns"] if adds else 0
            add(sums[row["pid"], tuple(reversed(stack))], row["count"], own, row["exclusive_ns"])
        return [{"pid": pid, "path": path} | counts(row) for (pid, path), row in sorted(sums.items())]

    def functions(self):
        sums = defaultdict(lambda: [0, 0, 0, 0])
        for site, _, _, own, exclusive in self.counted():
            row = sums[site.pid, site.tag, self.name(site.name)]
            if site.adds & IN_ITSELF:
                add(row, 0, 0, exclusive)
            else:
                add(row, 1, own, exclusive)
                row[3] = max(row[3], own)
        return [
            {"pid": pid} | letters(tag) | {"name": name} | counts(row) | {"max_ns": row[3]}
            for (pid, tag, name), row in sorted(sums.items())
        ]

    def cpus(self):
        return [
            {
                "cpu": cpu["cpu"],
                "idle": [
                    {"state": int(state), "ns": row["ns"], "hits": row["hits"]}
                    for state, row in sorted(cpu["idle"].items(), key=lambda item: int(item[0]))
                ],
                "running": [
                    {"khz": row["khz"], "ns": row["ns"], "hits": row["count"]} for row in cpu["running"]
                ],
            }
            | {key: cpu[key] for key in ("idle_unknown_ns", "offline_ns", "unknown_ns")}
            for cpu in self.state["cpus"]
        ]

    def sections(self):
        for site, begin, end, own, exclusive in sorted(self.listed(), key=lambda span: span[1]):
            yield {
                "pid": site.pid, "tid": site.tid, "begin_ns": begin, "end_ns": end, "own_ns": own,
                "exclusive_ns": exclusive, "depth": site.depth,
            } | letters(site.tag) | {"name": self.name(site.name)}  # fmt: skip


def counts_in(site, taking_part):
    return is_tag(site.tag) and site[:2] in taking_part


def is_tag(tag):
    return tag >> 4 < len(LAYERS) and tag & 15 < len(PHASES)


def letters(tag):
    return {"layer": LAYERS[tag >> 4], "phase": PHASES[tag & 15]}


def frame(step):
    mark = {SUBTRACTED: "!", HANDED: "+", PART: "*"}.get(step["class"], "")
    return "_".join(letters(step["tag"]).values()) + mark


def add(row, *values):
    for index, value in enumerate(values):
        row[index] += value


def counts(row):
    return dict(zip(("count", "total_ns", "exclusive_ns"), row))


def main():
    folder, *options = sys.argv[1:]
    recording = Recording(Path(folder))
    if options == ["--sections"]:
        for section in recording.sections():
            print(json.dumps(section))
    else:
        parts = {"window": recording.state["window"]}
        for part in ("phases", "stacks", "functions", "cpus"):
            parts[part] = getattr(recording, part)()
        print(json.dumps(parts))


main()
