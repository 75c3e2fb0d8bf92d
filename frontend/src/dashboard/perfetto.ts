/** How a trace gets to Perfetto: a person takes it there, this page sends nothing. */

import { h, setText } from '../dom';

const PERFETTO = 'https://ui.perfetto.dev';

/** @param download - saves the trace as a file */
export function perfettoPart(download: () => Promise<void>): HTMLElement {
  const words = h('span', { role: 'status' });
  const save = async () => {
    setText(words, 'Fetching…');
    try {
      await download();
      setText(words, '');
    } catch (error) {
      setText(words, `It could not be saved. ${(error as Error).message}`);
    }
  };
  return h(
    'details',
    { class: 'wb-folded' },
    h('summary', {}, 'Open in Perfetto'),
    h(
      'ol',
      { class: 'wb-steps' },
      h(
        'li',
        {},
        h(
          'button',
          { class: 'wb-button', click: () => void save() },
          'Download the trace'
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
      'This page sends nothing there. Perfetto says that it reads the file within ' +
        'your browser.'
    )
  );
}
