"""What is refused, and in which words."""

import pytest


def refused(message, function, *arguments, error=ValueError, **options):
    with pytest.raises(error, match=message):
        function(*arguments, **options)
