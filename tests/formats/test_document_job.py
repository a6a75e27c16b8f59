"""`docmt translate` of a format of documents: markup, parts, folders, jobs that go on, what is refused."""

import json
import re

import pytest
from support.commands import docmt

from hf_docmt.files import DataError
from hf_docmt.formats.document_file import DocumentFile, DocumentFolder, folder_files, options_of
from hf_docmt.formats.document_format import DocumentFormat, FormatOptions, Segment, Tag
