#!/usr/bin/env python3
"""Prints the largest errors that tests recorded (tests/support/record_error.h) as a table.

    python largest_errors.py RESULTS.json...

RESULTS.json is what `test_layers --gtest_output=json:RESULTS.json` wrote. A cell has the largest error of each file.
"""

import json
import re
import sys


def read(path):
    """The largest error of each (layer or algorithm, result)."""
    largest = {}
    with open(path) as file:
        suites = json.load(file)["testsuites"]
    for suite in suites:
        for test in suite["testsuite"]:
            for key, value in test.items():
                if isinstance(value, str) and re.fullmatch(r"\d\.\de[+-]\d\d", value):
                    place = tuple(key.rsplit(" ", 1))
                    largest[place] = max(largest.get(place, 0), float(value))
    return largest


def main():
    files = [read(path) for path in sys.argv[1:]]
    if not files:
        raise SystemExit(__doc__)
    places = {place for errors in files for place in errors}
    columns = ["output", "input_gradient", "weight_gradient", "bias_gradient"]
    columns += sorted({column for _, column in places} - set(columns))

    def cell(row, column):
        if (row, column) not in places:
            return "-"
        return ", ".join(f"{errors[row, column]:.1e}".replace("e-0", "e-") if (row, column) in errors else "-"
                          for errors in files)

    print("| | " + " | ".join(column.replace("_", " ") for column in columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for row in sorted({row for row, _ in places}):
        print(f"| {row} | " + " | ".join(cell(row, column) for column in columns) + " |")


if __name__ == "__main__":
    main()
