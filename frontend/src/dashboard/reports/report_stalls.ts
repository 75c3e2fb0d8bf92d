/** Where the warps of kernels waited: reasons, and the source with its samples. */

import { h } from '../../core/dom';
import { clip } from '../../core/format';
import { nameAttributes } from '../../core/table';
import { trans } from '../../core/translation';
import type { KernelStallsView, ReportView } from '../../shapes/protocol';
import type { Links } from './links';
import { TABS } from './links';
import { explained } from './report_parts';
import { sortableTable } from './sortable';

const MOST_WORDS = 800;
const MOST_NAME = 120;

/** The kernels, one below the other; nothing where nobody asked for them. */
export function stallNodes(
  { stalls }: Pick<ReportView, 'stalls'>,
  links: Links
): Node[] {
  return stalls === null
    ? []
    : [
        ...[stalls.sentence, ...stalls.notes].map(note),
        ...stalls.kernels.map(kernel => kernelNode(kernel, links))
      ];
}

function kernelNode(kernel: KernelStallsView, links: Links): HTMLElement {
  const name = clip(kernel.name, MOST_NAME);
  const title = h('h4', nameAttributes(kernel.name), name);
  links.add(kernel.id, TABS.stalls, () => title);
  return h(
    'section',
    { class: 'wb-stalls', 'aria-label': name },
    title,
    h('p', {}, clip(kernel.sentence, MOST_WORDS)),
    ...links.to(trans.__('Row'), kernel.rows),
    h(
      'ol',
      { class: 'wb-findings', 'aria-label': trans.__('What its warps do') },
      ...kernel.reasons.map(reason =>
        explained(reason, h('strong', {}, clip(reason.words, MOST_NAME)))
      )
    ),
    ...kernel.sources.map(source => sortableTable(source)),
    ...kernel.notes.map(note)
  );
}

function note(words: string): HTMLElement {
  return h('p', { class: 'wb-note' }, clip(words, MOST_WORDS));
}
