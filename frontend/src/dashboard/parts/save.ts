/** The history as a file: fetched as the page may, then given to the browser. */

import type { Span } from '../../core/viewport';
import { h, saveFile, setText } from '../../core/dom';
import type { ExportFormat, History } from '../../server/history';
import { mark, trans } from '../../core/translation';

export const FORMATS: readonly (readonly [ExportFormat, string])[] = [
  ['csv', 'CSV'],
  ['jsonl', 'JSONL'],
  ['chrome', mark('Chrome trace')]
];

/** Buttons that save a span, and beside them how it went. */
export function saveButtons(history: History, span: Span): HTMLElement {
  const words = h('span', { role: 'status' });
  return h(
    'div',
    { class: 'wb-controls' },
    trans.__('Save this span as'),
    ...FORMATS.map(([format, label]) =>
      h(
        'button',
        {
          class: 'wb-button',
          click: () =>
            void save(history, format, span, progress =>
              setText(words, progress)
            )
        },
        trans.__(label)
      )
    ),
    words
  );
}

/** Fetch a file and save it; say meanwhile what happens. */
export async function save(
  history: History,
  format: ExportFormat,
  span: Span | null,
  tell: (words: string) => void
): Promise<void> {
  tell(trans.__('Fetching…'));
  try {
    const file = await history.export(format, span);
    saveFile(file);
    tell('');
  } catch (error) {
    tell(trans.__('It could not be saved. %1', (error as Error).message));
  }
}
