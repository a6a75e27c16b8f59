"""Handler of a HuggingFace Inference Endpoint: the pipeline "document-translation", with transformers alone.

https://huggingface.co/docs/inference-endpoints/guides/custom_handler
"""

from typing import Any

from transformers import pipeline


class EndpointHandler:
    """`{"inputs": ..., "parameters": {"strategy": "sliding", "num_beams": 4}}` in, `{"translation": ...}` out.

    `inputs` is a text, a list of sentences, or a list of such lists; the translation has the same form.
    """

    def __init__(self, path: str = "") -> None:
        self.pipeline = pipeline("document-translation", model=path, trust_remote_code=True)

    def __call__(self, data: dict[str, Any]) -> dict[str, Any]:
        """ValueError: no inputs, or what the pipeline refuses."""
        if "inputs" not in data:
            raise ValueError("no inputs: send {'inputs': text or list of sentences, 'parameters': {...}}")
        return {"translation": self.pipeline(data["inputs"], **data.get("parameters") or {})}
