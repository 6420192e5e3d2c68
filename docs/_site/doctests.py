"""Examples in docstrings are shown as code, also where no section says that they are examples."""

import re

import griffe


class Doctests(griffe.Extension):
    """Put fences around doctests, which Markdown would read as text."""

    def on_object(self, *, obj, **_):
        """Change a docstring before it is parsed."""
        if obj.is_alias or obj.docstring is None or re.search(r"^Examples\n-+$", obj.docstring.value, re.MULTILINE):
            return
        obj.docstring.value = re.sub(
            r"^>>> .*?(?=\n\s*\n|\Z)", r"```python\n\g<0>\n```", obj.docstring.value, flags=re.DOTALL | re.MULTILINE
        )
