"""Has processes that are forked without exec mark through a library: the path of the library, how many."""

import ctypes
import multiprocessing
import sys


def main() -> int:
    library = ctypes.CDLL(sys.argv[1])
    library.work(0)
    forking = multiprocessing.get_context("fork")
    children = [forking.Process(target=library.work, args=(number,)) for number in range(1, int(sys.argv[2]) + 1)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    print([child.exitcode for child in children])
    return 0 if all(child.exitcode in (0, 1) for child in children) else 1


if __name__ == "__main__":
    sys.exit(main())
