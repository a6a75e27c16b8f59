"""The tests of transformers for its own models, run on ours and on Marian; see `make test-transformers`.

A class for every model, made of the mixins of transformers. What they look up by class name in the tables of auto
classes is put there first. Tests of pipelines are none of them: transformers 5 has no pipeline for translation, and its
test of feature extraction skips encoder-decoder models.
"""

import unittest
from copy import copy

import torch
from artefacts import reason
from mixins import FOLDER, ConfigTester, GenerationTesterMixin, ModelTesterMixin, has_generation
from model_testers import SIZES, TESTERS, MarianTester
from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM, EncoderDecoderCache
from transformers.models.auto import modeling_auto

from hf_docmt.loading import registry

MIXINS = (ModelTesterMixin, GenerationTesterMixin) if has_generation(FOLDER) else (ModelTesterMixin,)


class ContractTest:
    """What is the same for every model."""

    subject: type  # of `model_testers`
    is_encoder_decoder = True
    test_can_init_all_missing_weights_before_2023 = True

    def setUp(self):
        self.model_tester = self.subject(self)
        self.config_tester = ConfigTester(self, config_class=self.subject.config_class, **SIZES)

    def test_config(self):
        self.config_tester.run_common_tests()

    @classmethod
    def artefact(cls, test: str) -> str | None:
        """Why a test of this name is skipped."""
        return reason(test, cls.subject.name)


class DocumentContractTest(ContractTest):
    """What ours refuse with an error of their own, in place of tests that ask for it."""

    @property
    def test_all_params_have_gradient(self) -> bool:
        """Not of what reads separate context, without any; the last memory is for the next sentence."""
        entry = registry.get(self.subject.architecture)
        return not entry.carries_state and (self.subject.with_context or not entry.separate_context)

    def _check_past_key_values_for_generate(self, batch_size, past_key_values, seq_length, config):
        """Attention to context has layers of its own behind those of attention to the source, of any length.

        G-Transformer has the heads of group and global self-attention in one.
        """
        if seq_length is None:
            past_key_values = copy(past_key_values)
            past_key_values.layers = past_key_values.layers[: config.get_text_config(decoder=True).num_hidden_layers]
        elif self.subject.architecture == "gtransformer" and not isinstance(past_key_values, EncoderDecoderCache):
            config = copy(config)
            config.num_key_value_heads = 2 * SIZES["decoder_attention_heads"]
        super()._check_past_key_values_for_generate(batch_size, past_key_values, seq_length, config)

    def test_reentrant_checkpointing_is_refused(self):
        config, _ = self.model_tester.prepare_config_and_inputs_for_common()
        for model_class in self.all_model_classes:
            model = model_class(config)
            with self.assertRaisesRegex(ValueError, "use use_reentrant=False"):
                model.activation_checkpointing_enable(activation_checkpointing_kwargs={"use_reentrant": True})

    def test_source_embeddings_and_target_ids(self):
        """Embeddings of the source are as good as its ids, or refused; those of the target are refused."""
        config, inputs = self.model_tester.prepare_config_and_inputs_for_common()
        for model_class in self.all_model_classes:
            model = model_class(config).eval()
            given = self._prepare_for_class(inputs, model_class)
            embedded = dict(given, inputs_embeds=model.get_input_embeddings()(given["input_ids"]))
            del embedded["input_ids"]
            if (model.get_encoder() if model.can_generate() else model.encoder).finds_sentences:
                with self.assertRaisesRegex(ValueError, "give input_ids"):
                    model(**embedded)
            else:
                torch.testing.assert_close(model(**embedded)[0], model(**given)[0])
            with self.assertRaisesRegex(ValueError, "give decoder_input_ids"):
                model(**given, decoder_inputs_embeds=model.get_input_embeddings()(given["decoder_input_ids"]))


def contract(tester: type) -> type:
    """The class of tests of a model."""
    name = "".join(word.capitalize() for word in tester.name.split()) + "Test"
    base = ContractTest if tester is MarianTester else DocumentContractTest
    fields = {"subject": tester, "all_model_classes": tester.model_classes, "__module__": __name__}
    return type(name, (base, *MIXINS, unittest.TestCase), fields)


def register(config_class, model_class, head_class) -> None:
    """Make the classes known by name, as those of transformers are."""
    AutoConfig.register(config_class.model_type, config_class)
    AutoModel.register(config_class, model_class)
    AutoModelForSeq2SeqLM.register(config_class, head_class)
    modeling_auto.MODEL_MAPPING_NAMES[config_class.model_type] = model_class.__name__
    modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES[config_class.model_type] = head_class.__name__


for found in TESTERS:
    if found.config_class.model_type not in modeling_auto.MODEL_MAPPING_NAMES:
        register(found.config_class, *found.model_classes)
globals().update({made.__name__: made for made in map(contract, TESTERS)})
