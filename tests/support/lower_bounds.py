"""Print `name==lowest` for every `name>=lowest` of setup.cfg, as pip constraints."""

import configparser
import re
import sys


def lower_bounds(path: str) -> list[str]:
    """Pins of the lowest versions that the file declares, in its order."""
    parser = configparser.ConfigParser()
    parser.read(path, encoding="utf-8")
    texts = [parser["options"]["install_requires"], *parser["options.extras_require"].values()]
    matches = [re.match(r"([\w.-]+)\s*>=\s*([\w.]+)", line) for text in texts for line in text.splitlines()]
    return [f"{match[1]}=={match[2]}" for match in matches if match]


if __name__ == "__main__":
    print("\n".join(lower_bounds(sys.argv[1])))
