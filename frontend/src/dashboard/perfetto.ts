/** How a trace gets to Perfetto: a person takes it there, this page sends nothing. */

import { h, setText } from '../dom';
import { trans } from '../translation';

const PERFETTO = 'https://ui.perfetto.dev';

/** @param download - saves the trace as a file */
export function perfettoPart(download: () => Promise<void>): HTMLElement {
  const words = h('span', { role: 'status' });
  const save = async () => {
    setText(words, trans.__('Fetching…'));
    try {
      await download();
      setText(words, '');
    } catch (error) {
      setText(
        words,
        trans.__('It could not be saved. %1', (error as Error).message)
      );
    }
  };
  return h(
    'details',
    { class: 'wb-folded' },
    h('summary', {}, trans.__('Open in Perfetto')),
    h(
      'ol',
      { class: 'wb-steps' },
      h(
        'li',
        {},
        h(
          'button',
          { class: 'wb-button', click: () => void save() },
          trans.__('Download the trace')
        ),
        ' ',
        words
      ),
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
