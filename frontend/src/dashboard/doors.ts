/** Three ways in, on a dashboard that has no report yet. */

import { h } from '../core/dom';
import { trans } from '../core/translation';

/** What the buttons do. */
export interface DoorActions {
  whySlow(): void;
  openTrace(): void;
  openLabs(): void;
  openQuiz(): void;
}

/** Make the section with the three of them. */
export function doors(actions: DoorActions): HTMLElement {
  const door = (
    title: string,
    words: string,
    ...buttons: [string, () => void][]
  ) =>
    h(
      'div',
      {},
      h('h3', {}, title),
      h('p', {}, words),
      ...buttons.map(([label, click]) =>
        h('button', { class: 'wb-button', click }, label)
      )
    );
  return h(
    'section',
    { class: 'wb-doors', 'aria-label': trans.__('Where to begin') },
    door(
      trans.__('Why is my cell slow?'),
      trans.__(
        'Profile the last cell of a notebook: what holds it back, and what to change.'
      ),
      [trans.__('Profile a cell…'), () => actions.whySlow()]
    ),
    door(
      trans.__('Open a trace'),
      trans.__(
        'The same report of a file that torch.profiler or Nsight Systems wrote. You can drop it here.'
      ),
      [trans.__('Open a file…'), () => actions.openTrace()]
    ),
    door(
      trans.__('Learn'),
      trans.__(
        'Write kernels and have them checked, without a GPU too; a quiz says where to begin.'
      ),
      [trans.__('Labs'), () => actions.openLabs()],
      [trans.__('Quiz'), () => actions.openQuiz()]
    )
  );
}
