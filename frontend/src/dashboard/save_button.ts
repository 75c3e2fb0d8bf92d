/** A button that saves a file, and says why it could not. */

import { h, setText } from '../dom';

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
    setText(words, 'Fetching…');
    try {
      await save();
      setText(words, '');
    } catch (error) {
      setText(words, `It could not be saved. ${(error as Error).message}`);
    }
  };
  return h(
    'span',
    { class: 'wb-controls' },
    h('button', { class: 'wb-button', click: () => void saved() }, label),
    words
  );
}
