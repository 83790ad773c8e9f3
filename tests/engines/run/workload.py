"""What each script of this folder does: load a model, run it, print one line of JSON."""

import argparse
import json
import os
import sys
import time


def arguments(*modes):
    """Model, number of runs and the other options; `modes` are the ways in which the engine can be run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("runs", type=int)
    parser.add_argument("--seconds", type=float, default=0, help="go on after these runs for so long")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--mode", choices=modes, default=modes[0])
    parser.add_argument("--wait", choices=("engine", "model"), help="load it, print `ready`, go on after a line on stdin")
    parser.add_argument("--operators", action="store_true", help="also the engine's own times of operators")
    chosen = parser.parse_args()
    if chosen.wait == "engine":
        wait()
    return chosen


def wait():
    """Waits for a line."""
    print("ready", flush=True)
    sys.stdin.readline()


def hurry():
    """Takes the CPU before others, if that is allowed: what they take meanwhile would be a part of the loop's time."""
    try:
        for thread in os.listdir("/proc/self/task"):
            os.setpriority(os.PRIO_PROCESS, int(thread), -20)
    except PermissionError:
        pass


def measure(engine, chosen, run):
    """Calls `run` as often as wanted; returns what is to be printed."""
    if chosen.wait == "model":
        wait()
    hurry()
    runs = 0
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    end = begin
    while runs < chosen.runs or end - begin < chosen.seconds * 1e9:
        run()
        runs += 1
        end = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return {"engine": engine, "mode": chosen.mode, "pid": os.getpid(), "runs": runs, "loop_ns": end - begin}


def operator(name, kind, nanoseconds, provider=None):
    """One operator of one run, as the engine itself measured it, and who ran it."""
    return {"name": name, "type": kind, "ns": round(nanoseconds), "provider": provider}


def finish(result):
    """Prints the line."""
    print(json.dumps(result), flush=True)
