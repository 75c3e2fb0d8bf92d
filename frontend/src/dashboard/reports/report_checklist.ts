/** The optimisation checklist of a report, asked for when it is first opened. */

import { h } from '../../core/dom';
import { clip } from '../../core/format';
import type {
  ChecklistEntry,
  ChecklistGroup,
  ChecklistView
} from '../../shapes/protocol';
import { StatusLine } from '../../core/status';
import { trans } from '../../core/translation';
import { teacher } from './report_parts';
import { word } from '../parts/server_words';

const MOST_WORDS = 800;

/** @param load - asks the server for the answers */
export function checklistPart(load: () => Promise<ChecklistView>): HTMLElement {
  const place = h('div', { class: 'wb-checklist', tabindex: '-1' });
  const ask = async (): Promise<void> => {
    if (place.contains(document.activeElement)) {
      // the button that has the focus goes
      place.focus();
    }
    place.replaceChildren(new StatusLine(trans.__('Asking the server…')).node);
    let nodes: Node[];
    try {
      nodes = checklistNodes(await load());
    } catch (error) {
      nodes = [
        h(
          'p',
          { class: 'wb-warning', role: 'alert' },
          clip((error as Error).message, MOST_WORDS)
        ),
        h(
          'button',
          { class: 'wb-button', click: () => void ask() },
          trans.__('Try again')
        )
      ];
    }
    place.replaceChildren(...nodes);
  };
  const opened = (): void => {
    if (place.firstChild === null) {
      void ask();
    }
  };
  return h(
    'details',
    { class: 'wb-folded', toggle: opened },
    h('summary', {}, trans.__('Checklist')),
    place
  );
}

/** The answers in the server's order; what does not apply is folded. */
export function checklistNodes({
  groups
}: Pick<ChecklistView, 'groups'>): HTMLElement[] {
  return groups.map(group => {
    const title = titleOf(group);
    const rows = h(
      'ul',
      { 'aria-label': title, 'data-answer': clip(group.answer, 40) },
      ...group.entries.map(entryRow)
    );
    return group.answer === 'not applicable'
      ? h('details', {}, h('summary', {}, title), rows)
      : h('section', {}, h('h4', {}, title), rows);
  });
}

/** What the questions of a group have in common, and how many they are. */
function titleOf({ title, entries }: ChecklistGroup): string {
  const count = entries.reduce((sum, { items }) => sum + items.length, 0);
  return `${word(title)} (${count})`;
}

function entryRow({ items, evidence, advice }: ChecklistEntry): HTMLElement {
  return h(
    'li',
    {},
    ...items.map(({ question, lab }) =>
      h('div', {}, h('strong', {}, word(question)), ...teacher(lab))
    ),
    ...(advice === '' ? [] : [h('div', {}, clip(advice, MOST_WORDS))]),
    h('div', { class: 'wb-note' }, clip(evidence, MOST_WORDS))
  );
}
