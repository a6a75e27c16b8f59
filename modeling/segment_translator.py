"""Strategies of models that read segments, decoded by `generate`."""

from collections.abc import Sequence

import torch

from .decoding import Translator
from .row_processors import pad_rows
from .strategies import Segment, SegmentStrategies, rest_of
from .translation_jobs import CurrentSentence, Job, Output


class SegmentTranslator(SegmentStrategies, Translator):
    """For a model that reads segments, and writes them whole or the current sentence alone (`context_sides`)."""

    def force_prefixes_together(self, group: Sequence[Segment]) -> list[Segment]:
        """One batch of `force_prefixes`, longest first; returns the rest of a segment without room.

        New prefix tokens are appended as columns, padded on the left inside them; the mask hides the holes, and
        positions count tokens only, so that rows of different length keep their cache without being moved.
        """
        model, jobs = self.model, [self.segment_job(*segment) for segment in group]
        source = self.source_inputs(jobs)  # whose ids an assistant and processors read
        with torch.no_grad():
            encoder_outputs = model.get_encoder()(**source, return_dict=True)
        prompts = [[self.start, *job.prefix] for job in jobs]
        # padded by the start token, or `generate` puts one more in front
        ids, mask = pad_rows(prompts, self.start, self.device, side="left")
        cache = model.prompt_cache()
        for step in range(group[0].end - group[0].first):
            rows = [row for row, segment in enumerate(group) if segment.first + step < segment.end]
            if len(rows) < len(group):
                index = torch.tensor(rows, device=ids.device)
                ids, mask = ids[index], mask[index]
                source = {name: states[index] for name, states in source.items()}
                for name, value in encoder_outputs.items():
                    encoder_outputs[name] = value[index] if torch.is_tensor(value) else value
                if cache is not None:
                    cache.batch_select_indices(index)
                group = [group[row] for row in rows]
            sentences = [CurrentSentence(segment.document, segment.first + step) for segment in group]
            if step and len(group) == 1 and not self.fits(0, ids.shape[1] - 1, len(sentences[0].part.ids)):
                return [rest_of(self, group[0], step)]
            jobs = [Job([], [], 1, len(sentence.part.ids), sentence) for sentence in sentences]
            inputs = source | {
                "decoder_input_ids": ids,
                "decoder_attention_mask": mask,
                "encoder_outputs": encoder_outputs,
            }
            inputs |= {} if cache is None else {"cache": cache}
            if sentences[0].part.is_known:  # of the only row
                outputs = [Output(sentences[0].part.target, True)]
            else:
                outputs = self.generate(inputs, jobs, stop_at_sep=True, use_cache=True)
                if cache is not None and cache.get_seq_length():  # else the prompt is read again
                    cache.keep(*ids.shape)
            written = pad_rows([[*output.ids, self.sep] for output in outputs], self.pad, ids.device, "left")
            ids, mask = (torch.cat(pair, dim=1) for pair in zip((ids, mask), written))
            for sentence, output in zip(sentences, outputs):
                if not sentence.part.is_known:
                    sentence.part.take(output)
                self.check_end(sentence, output)
        return []
