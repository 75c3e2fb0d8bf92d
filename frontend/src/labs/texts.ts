/** Texts in the lab browser: what a lab can't run, to read and to answer questions on. */

import { h } from '../core/dom';
import { clip } from '../core/format';
import type { TextEntry } from '../shapes/protocol';
import { trans } from '../core/translation';

/**
 * Make the section of the texts; none without texts.
 *
 * @param texts - from the server
 * @param open - opens the notebook of a text
 * @param ask - shows its questions
 */
export function textSections(
  texts: readonly TextEntry[],
  open: (text: TextEntry, button: HTMLButtonElement) => void,
  ask: (text: TextEntry) => void
): HTMLElement[] {
  if (texts.length === 0) {
    return [];
  }
  const title = trans.__('Texts');
  return [
    h(
      'section',
      { 'aria-label': title },
      h('h3', {}, title),
      h(
        'ul',
        { class: 'wb-list wb-labs-list' },
        ...texts.map(text =>
          textRow(
            text,
            button => open(text, button),
            () => ask(text)
          )
        )
      )
    )
  ];
}

/** Make the row of a text: what it is about, and a button that opens it. */
export function textRow(
  text: TextEntry,
  open: (button: HTMLButtonElement) => void,
  ask: () => void
): HTMLElement {
  const title = clip(text.title, 120);
  const facts = [
    trans._n('%1 minute', '%1 minutes', text.minutes),
    trans._n('%1 question', '%1 questions', text.questions),
    ...(text.labs.length > 0
      ? [trans.__('goes with %1', text.labs.join(', '))]
      : [])
  ];
  return h(
    'li',
    { class: 'wb-card wb-lab', 'data-text': text.id },
    h(
      'div',
      { class: 'wb-lab-head' },
      h('h4', {}, title),
      h(
        'button',
        {
          class: 'wb-button',
          'aria-label': trans.__('Questions on the text %1', title),
          click: ask
        },
        trans.__('Questions')
      ),
      h(
        'button',
        {
          class: 'wb-button',
          'aria-label': trans.__('Open the text %1', title),
          click: event => open(event.currentTarget as HTMLButtonElement)
        },
        trans.__('Open')
      )
    ),
    h('p', {}, clip(text.about, 400)),
    h('p', { class: 'wb-note' }, clip(facts.join(' · '), 300))
  );
}
