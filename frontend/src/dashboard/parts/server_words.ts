/** Figures and notes that the server has worded, with their labels looked up. */

import { h } from '../../core/dom';
import { clip } from '../../core/format';
import type { LabelledFigure } from '../../shapes/protocol';
import { mark, trans } from '../../core/translation';

/** The server's words that the catalogue has; what a program is called is no word. */
const WORDS: ReadonlySet<string> = new Set([
  mark('Wall time'),
  mark('GPU time'),
  mark('GPU utilization (NVML)'),
  mark('SM active'),
  mark('Tensor'),
  mark('DRAM'),
  mark('CPU'),
  mark('Peak memory'),
  mark('Mean power'),
  mark('Energy'),
  mark('This run'),
  mark('Before'),
  mark('Against the same cell’s run before'),
  mark('not known'),
  mark('not known without a trace'),
  mark('Nobody else held memory on it.'),
  mark('The energy is estimated from the power that was read.'),
  mark("The figures are the whole device's, whoever used it."),
  mark('Peak in the cell'),
  mark('Allocated after it'),
  mark('Reserved after it'),
  mark('Allocation retries'),
  mark('No: not used, though it applies'),
  mark('Yes: in use'),
  mark('Unknown: the recording does not show it'),
  mark('Not applicable'),
  mark('Has the bottleneck been measured?'),
  mark('Are settings for debugging off (anomaly mode, launch blocking)?'),
  mark('Do worker processes prepare the batches?'),
  mark('Is input copied from pinned memory?'),
  mark('Does the host run ahead, without waits for the GPU?'),
  mark('Is the batch large enough to fill the GPU?'),
  mark('Are short kernels launched together, as a CUDA graph?'),
  mark('Are chains of operations fused?'),
  mark('Do products run on tensor cores?'),
  mark('Are products in half precision (AMP)?'),
  mark('Are sizes multiples of eight?'),
  mark('Does cuDNN benchmark its algorithms (cudnn.benchmark)?'),
  mark('Are convolutions in channels_last?'),
  mark('Are activations checkpointed where memory is short?'),
  mark('Does the optimizer update all tensors at once?'),
  mark('Are gradients dropped (zero_grad(set_to_none=True))?'),
  mark('Is autograd off (inference_mode, no_grad)?'),
  mark('Is the model in eval mode?'),
  mark('Do products run in 8 bits (FP8, INT8)?')
]);

/** Words of the server in the language of the page, where it has them. */
export function word(words: string): string {
  return WORDS.has(words) ? trans.__(words) : clip(words, 300);
}

/** How a cell ended, where it did not end well. */
const ENDINGS: Record<string, string> = {
  error: mark('error'),
  interrupted: mark('interrupted')
};

/** How a cell ended, in the language of the page. */
export function ending(status: string): string {
  const words = ENDINGS[status];
  return words === undefined ? status : trans.__(words);
}

/** A cell's first line, or that it has none. */
export function cellTitle(title: string): string {
  return clip(title, 80) || trans.__('(empty)');
}

/** Rows of figures: what the server calls them in the language of the page. */
export function labelled(
  figures: readonly LabelledFigure[]
): [string, string][] {
  return figures.map(({ label, value }) => [word(label), word(value)]);
}

/** What makes figures unsure, a paragraph each. */
export function notes(sentences: readonly string[]): HTMLElement[] {
  return sentences.map(sentence =>
    h('p', { class: 'wb-note' }, word(sentence))
  );
}
