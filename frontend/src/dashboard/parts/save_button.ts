/** A button that saves a file, and says why it could not. */

import { h, setText } from '../../core/dom';
import { trans } from '../../core/translation';

/**
 * @param label - of the button
 * @param save - fetches the file and gives it to the browser
 */
export function saveButton(
  label: string,
  save: () => Promise<void>
): HTMLElement {
  const words = h('span', { role: 'status' });
  const saved = async () => {
    setText(words, trans.__('Fetching…'));
    try {
      await save();
      setText(words, '');
    } catch (error) {
      setText(
        words,
        trans.__('It could not be saved. %1', (error as Error).message)
      );
    }
  };
  return h(
    'span',
    { class: 'wb-controls' },
    h('button', { class: 'wb-button', click: () => void saved() }, label),
    words
  );
}
