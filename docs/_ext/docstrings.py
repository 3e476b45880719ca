"""Docstrings as Sphinx reads them: their code marked, and their formulas' signs kept as they are.

Docstrings are written for `help()`, as plain text: `|x|`, `a * b` and `normal_` mean what they say,
and lines that are indented after a colon are code.
"""

import re

# What has a meaning of its own stays: `code`, ``code``, **bold words**, and the star of a list.
KEPT = re.compile(r"(``.+?``|`[^`]+`|(?<!\S)\*\*[a-z][^*]+\*\*|^\s*\* )")
SIGN = re.compile(r"[*|]|(?<=\w)_(?!\w)")


def escaped(line):
    """Return a line in which a star, a bar, and an underscore that ends a name, are themselves."""
    parts = KEPT.split(line)
    return "".join(
        part if number % 2 else SIGN.sub(r"\\\g<0>", part) for number, part in enumerate(parts)
    )


def indentation(line):
    return len(line) - len(line.lstrip())


def begins_code(lines, number):
    """Return whether what follows a line is indented after its colon, and so code."""
    if not lines[number].endswith(":") or any(
        line.strip() for line in lines[number + 1 : number + 2]
    ):
        return False
    following = next((line for line in lines[number + 1 :] if line.strip()), "")
    deeper = indentation(following) >= indentation(lines[number]) + 4
    return deeper and not following.lstrip().startswith(("- ", "* ", ">>> "))


def prepare(app, what, name, value, options, lines):
    """Mark and escape the lines of a docstring, in place."""
    code = None  # the indentation of the line that the code follows
    example = False
    for number, line in enumerate(lines):
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        if line.strip() and code is not None and indentation(line) <= code:
            code = None
        if code is not None or example:
            continue
        if begins_code(lines, number):
            code = indentation(line)
            lines[number] = escaped(line) + ("" if line.endswith("::") else ":")
        else:
            lines[number] = escaped(line)


def setup(app):
    app.connect("autodoc-process-docstring", prepare, priority=100)  # before numpydoc
    return {"parallel_read_safe": True, "parallel_write_safe": True}
