"""The documents that the tests of the commands translate and score."""

DOCUMENTS = [
    {"doc_id": "a", "translation": [{"en": "The lamp is old.", "de": "Die Lampe ist alt."}, {"en": "", "de": ""}]},
    {"doc_id": "b", "translation": [{"en": "It is new.", "de": "Sie ist neu."}]},
]
