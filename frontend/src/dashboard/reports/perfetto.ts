/** How a trace gets to Perfetto: a person takes it there, this page sends nothing. */

import { h } from '../../core/dom';
import { trans } from '../../core/translation';
import { saveButton } from '../parts/save_button';

const PERFETTO = 'https://ui.perfetto.dev';

/** @param download - saves the trace as a file */
export function perfettoPart(download: () => Promise<void>): HTMLElement {
  return h(
    'details',
    { class: 'wb-folded' },
    h('summary', {}, trans.__('Open in Perfetto')),
    h(
      'ol',
      { class: 'wb-steps' },
      h('li', {}, saveButton(trans.__('Download the trace'), download)),
      h(
        'li',
        {},
        'Open ',
        h(
          'a',
          { href: PERFETTO, target: '_blank', rel: 'noopener noreferrer' },
          'ui.perfetto.dev'
        ),
        ', choose “Open trace file”, and take the downloaded file.'
      )
    ),
    h(
      'p',
      { class: 'wb-note' },
      trans.__(
        'This page sends nothing there. Perfetto says that it reads the file within ' +
          'your browser.'
      )
    )
  );
}
