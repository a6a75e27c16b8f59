"""What is refused, and in which words."""

import pytest


def refused(message, function, *arguments, **options):
    with pytest.raises(ValueError, match=message):
        function(*arguments, **options)
