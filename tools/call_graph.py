#!/usr/bin/env python3
"""Checks who needs whom among the object files of a build: folders of src/ form no circle, and no
circle of files is larger than ten.

    tools/call_graph.py BUILD_FOLDER [--edges FOLDER FOLDER]

An edge A -> B means that an object of A has an undefined symbol that B defines (functions and data,
by `nm`). With --edges, prints the symbols behind the edge between two folders and ends.
"""

import argparse
import collections
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_FILES_IN_CIRCLE = 10


def objects(build):
    """Object files below src/, as {path without .c.o relative to src: object}."""
    found = {}
    for path in sorted(pathlib.Path(build).glob("CMakeFiles/stc_objects.dir/src/**/*.c.o")):
        name = path.as_posix().split("stc_objects.dir/src/")[1].removesuffix(".c.o")
        # an object of a file that is gone may still lie there
        if (ROOT / "src" / f"{name}.c").exists():
            found[name] = path
    return found


def symbols(path):
    """Names that an object defines, and names that it needs."""
    defined, needed = set(), set()
    lines = subprocess.run(
        ["nm", path], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for line in lines:
        *_, kind, name = line.split()
        if kind == "U":
            needed.add(name)
        elif kind.isupper():
            defined.add(name)
    return defined, needed


def file_edges(build):
    """{(user, owner): symbols}, of files."""
    owner, needs = {}, {}
    for name, path in objects(build).items():
        defined, needs[name] = symbols(path)
        owner.update(dict.fromkeys(defined, name))
    edges = collections.defaultdict(set)
    for user, names in needs.items():
        for name in names:
            if owner.get(name, user) != user:
                edges[user, owner[name]].add(name)
    return edges


def folder_of(name):
    return name.rpartition("/")[0] or "main"


def folder_edges(edges):
    found = collections.defaultdict(set)
    for (user, owner), names in edges.items():
        if folder_of(user) != folder_of(owner):
            found[folder_of(user), folder_of(owner)] |= names
    return found


def circles(edges):
    """Strongly connected components of several nodes, by Tarjan's algorithm without recursion."""
    after = collections.defaultdict(list)
    for user, owner in sorted(edges):
        after[user].append(owner)
    index, low, stack, found = {}, {}, [], []

    def enter(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        return node, iter(after[node])

    def leave(node):
        if low[node] != index[node]:
            return
        at = stack.index(node)
        component = stack[at:]
        del stack[at:]
        for member in component:
            index[member] = len(after) + len(edges) + 1
        if len(component) > 1:
            found.append(sorted(component))

    for root in sorted(after):
        if root in index:
            continue
        path = [enter(root)]
        while path:
            node, rest = path[-1]
            target = next(rest, None)
            if target is None:
                path.pop()
                leave(node)
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
            elif target not in index:
                path.append(enter(target))
            elif target in stack:
                low[node] = min(low[node], index[target])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("build")
    parser.add_argument("--edges", nargs=2, metavar="FOLDER")
    options = parser.parse_args()
    edges = file_edges(options.build)
    if options.edges:
        for (user, owner), names in sorted(edges.items()):
            if [folder_of(user), folder_of(owner)] == options.edges:
                print(f"{user} -> {owner}: {', '.join(sorted(names))}")
        return 0
    bad = [f"circle of folders: {' '.join(found)}" for found in circles(folder_edges(edges))]
    bad += [
        f"circle of {len(found)} files: {' '.join(found)}"
        for found in circles(edges)
        if len(found) > MOST_FILES_IN_CIRCLE
    ]
    print(*bad, sep="\n", end="\n" if bad else "")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
