"""The handler of Inference Endpoints in an exported folder, in a process without this package."""

import json

from support.tiny_models import build, word_tokenizer

from hf_docmt.hub.export import export_model
from hf_docmt.hub.upload_files import upload_files

PROCESS = """
import json, sys
hide({"hf_docmt", "datasets", "peft"})
from importlib.util import module_from_spec, spec_from_file_location
(task,) = json.loads(sys.argv[1])
spec = spec_from_file_location("handler", task["folder"] + "/handler.py")
handler = module_from_spec(spec)
spec.loader.exec_module(handler)
endpoint = handler.EndpointHandler(task["folder"])
answers = [endpoint(data) for data in task["requests"]]
try:
    endpoint({"parameters": {}})
except ValueError as error:
    answers.append(str(error))
assert "hf_docmt" not in sys.modules
print("ANSWERS", json.dumps(answers), "END")
"""


def test_handler_without_this_package(tmp_path, run_elsewhere):
    model, tokenizer = build("concat", past_context=1), word_tokenizer()
    model.generation_config.max_new_tokens = 9
    folder = export_model(model, tokenizer, tmp_path / "hub")
    document = ["w7 w8 w9", "w10 w11"]
    requests = [
        {"inputs": document},
        {"inputs": [document, ["w12"]], "parameters": {"strategy": "sentence", "num_beams": 2}},
        {"inputs": "w7 w8. w9\n", "parameters": None},
    ]
    task = {"folder": str(folder), "requests": requests}
    printed = run_elsewhere(PROCESS, [task], tmp_path, {"HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"})
    one, two, text, error = json.loads(printed.partition("ANSWERS ")[2].partition(" END")[0])
    assert one == {"translation": model.translate_documents([document], tokenizer)[0]}
    alone = model.translate_documents([document, ["w12"]], tokenizer, strategy="sentence", num_beams=2)
    assert two == {"translation": alone} and text["translation"].endswith("\n") and error.startswith("no inputs")


def test_handler_goes_to_the_hub(tmp_path):
    folder = export_model(build("concat"), word_tokenizer(), tmp_path / "hub")
    assert "handler.py" in {file.path_in_repo for file in upload_files(folder)}
    assert not (export_model(build("concat"), None, tmp_path / "alone") / "handler.py").exists()
