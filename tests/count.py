"""Adds up test results: JUnit files of ctest (with cmocka's output inside) and of pytest.

Prints "PASSED FAILED", then a line for each case that failed.  A cmocka program counts by its
cases; one that died without a summary is one failure.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree


def count_cmocka(case):
    output = case.findtext("system-out") or ""
    passed = len(re.findall(r"^\[ +OK \]", output, re.MULTILINE))
    listed = re.search(r"^\[  FAILED  \] (\d+) test", output, re.MULTILINE)
    failed = int(listed.group(1)) if listed else 0
    if case.get("status") != "run":
        failed = max(failed, 1)
    return passed, failed


def count_pytest(case):
    if case.find("failure") is not None or case.find("error") is not None:
        return 0, 1
    return (0, 0) if case.find("skipped") is not None else (1, 0)


def count(path):
    """The cases that passed, those that failed, and the names of the programs or tests that did."""
    root = ElementTree.parse(path).getroot()
    cases = list(root.iter("testcase"))
    kind = count_cmocka if any(case.get("status") for case in cases) else count_pytest
    results = [kind(case) for case in cases]
    names = [f"{case.get('classname')}.{case.get('name')}" for case in cases if kind(case)[1]]
    return sum(passed for passed, _ in results), sum(failed for _, failed in results), names


if __name__ == "__main__":
    totals = [count(path) for path in sys.argv[1:]]
    print(sum(passed for passed, _, _ in totals), sum(failed for _, failed, _ in totals))
    for _, _, names in totals:
        print(*names, sep="\n", end="\n" if names else "")
