"""Part `tests` of scripts/gpu-check: the test programs, several processes at a time on the same GPU. A test that ends
its process fails; the tests after it run in another process."""

import os
import queue
import re
import threading
import time

from gpu_soak import last_line

PROGRAMS = (("test_layers", "-*OnACpu:Winograd.*:MaxPooling.*", "cuda"), ("test_cuda", "*", "cpu"))
CHUNK = 20  # tests of one process: a failure of CUDA ends all that is left of one, and each start costs a second


def names_of(text):
    """The tests of --gtest_list_tests."""
    names, suite = [], ""
    for line in text.splitlines():
        word = line.split("#")[0].rstrip()
        if word.startswith("  "):
            names.append(suite + word.strip())
        elif word.endswith("."):
            suite = word
    return names


class Results:
    """What became of each test, collected by several threads."""

    def __init__(self, log):
        self.log, self.lock = log, threading.Lock()
        self.passed, self.skipped, self.failed = [], [], []
        self.times = []  # milliseconds and name

    def add(self, output, wanted, is_late):
        """Reads the output of one process, which may have been ended for its time. Returns the tests of `wanted` that
        have not run."""
        ended = {"OK": [], "SKIPPED": [], "FAILED": []}
        started = None
        for word, name in re.findall(r"^\[ *(RUN|OK|SKIPPED|FAILED) *\] ([\w/.]+\.[\w/]+)(?: \(\d+ ms\)|, where.*)?$",
                                     output, re.MULTILINE):
            if word == "RUN":
                started = name
            elif name == started:
                ended[word].append(name)
                started = None
        if started is not None and not is_late:
            ended["FAILED"].append(started)  # it ended the process
        times = [(int(time), name) for name, time in
                 re.findall(r"^\[ *(?:OK|FAILED) *\] ([\w/.]+)(?:, where.*)? \((\d+) ms\)$", output, re.MULTILINE)]
        with self.lock:
            self.times += times
            self.passed += ended["OK"]
            self.skipped += ended["SKIPPED"]
            self.failed += ended["FAILED"]
            if ended["FAILED"]:
                self.log.write(output)
                self.log.flush()
        done = {name for names in ended.values() for name in names}
        return [name for name in wanted if name not in done]


def work(check, program, environment, chunks, results, deadline):
    while True:
        try:
            wanted = chunks.get_nowait()
        except queue.Empty:
            return
        while wanted and time.time() < deadline:
            result = check.run([program, "--gtest_filter=" + ":".join(wanted)], deadline - time.time(), environment)
            is_late = result.returncode == 124
            left = results.add(result.stdout, wanted, is_late)
            if is_late:
                return
            if len(left) == len(wanted):  # it ended before its first test
                with results.lock:
                    results.log.write(result.stdout)
                    results.failed += wanted[:1]
                left = wanted[1:]
            wanted = left


def run_tests(check, name, pattern, kernels, deadline):
    program = check.program(name)
    if not os.path.exists(program):
        check.skip(name, "not in the folder")
        return
    environment = {"TANDEM_TEST_KERNELS": kernels, "TANDEM_TEST_DEMANDS_GPU": "1"}
    listed = check.run([program, f"--gtest_filter={pattern}", "--gtest_list_tests"], 60, environment)
    names = names_of(listed.stdout)
    if listed.returncode or not names:
        check.ok(name, False, f"exit code {listed.returncode}, no tests: {last_line(listed.stdout)}")
        return
    chunks = queue.Queue()
    for begin in range(0, len(names), CHUNK):
        chunks.put(names[begin:begin + CHUNK])
    log = check.work / f"{name}.log"
    with open(log, "w") as file:
        results = Results(file)
        threads = [threading.Thread(target=work, args=(check, program, environment, chunks, results, deadline))
                   for _ in range(max(1, min(12, (os.cpu_count() or 1) - 2)))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    left = len(names) - len(results.passed) - len(results.skipped) - len(results.failed)
    check.ok(name, bool(results.passed) and not results.failed and left == 0,
             f"{len(results.passed)} passed, {len(results.skipped)} skipped, {len(results.failed)} failed"
             + (f", {left} not run in time" if left else "")
             + (": " + ", ".join(sorted(results.failed)[:4]) + f"; see {log}" if results.failed else ""))
    (check.work / f"{name}.failed").write_text("\n".join(sorted(results.failed)) + "\n")
    slow = sorted(results.times, reverse=True)
    (check.work / f"{name}.times").write_text("".join(f"{time} ms {name}\n" for time, name in slow))


def tests(check, arguments):
    deadline = time.time() + arguments.test_seconds
    for name, pattern, kernels in PROGRAMS:
        run_tests(check, name, pattern, kernels, deadline)
