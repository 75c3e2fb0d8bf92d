/** One lab in the browser: what it is, whether it can be done here, and how far one is. */

import { h, setText } from '../core/dom';
import { clip } from '../core/format';
import type { LabEntry, LabHints, LabMark, SoFar } from '../shapes/protocol';
import { StatusLine } from '../core/status';
import { labCard } from './card';
import { languageName } from './filters';
import type { LabsServer } from './server';
import { blocks, marked } from './words';
import { mark, trans } from '../core/translation';

const STATES: Record<string, string> = {
  new: mark('not begun'),
  begun: mark('begun'),
  passed: mark('passed')
};

/** In a word or two, how far a person is. */
export function howFar(progress: SoFar | null): string {
  if (progress === null) {
    return trans.__('not known');
  }
  return progress.state === 'tried'
    ? trans.__('%1 of %2 cases', progress.right, progress.of)
    : trans.__(STATES[progress.state] ?? progress.state);
}

/**
 * Make the row of a lab.
 *
 * @param lab - from the server
 * @param server - asked for hints and submissions when they are unfolded
 * @param open - opens the notebook
 */
export function labRow(
  lab: LabEntry,
  server: LabsServer,
  open: (button: HTMLButtonElement) => void
): HTMLElement {
  const state = lab.progress?.state ?? 'unknown';
  const facts = [
    trans._n('%1 minute', '%1 minutes', lab.minutes),
    ...(lab.difficulty === null ? [] : [clip(lab.difficulty, 20)]),
    languageName(lab.language),
    lab.needs.length > 0
      ? trans.__('needs %1', lab.needs.join(', '))
      : trans.__('needs nothing'),
    ...(lab.after.length > 0
      ? [trans.__('after %1', lab.after.join(', '))]
      : [])
  ];
  const name = `${lab.number} ${clip(lab.title, 100)}`;
  return h(
    'li',
    { class: 'wb-card wb-lab', 'data-lab': lab.id, 'data-state': state },
    h(
      'div',
      { class: 'wb-lab-head' },
      h('h4', {}, name),
      h('span', { class: 'wb-lab-next' }, trans.__('next')),
      h('span', { class: 'wb-lab-state' }, howFar(lab.progress)),
      h(
        'button',
        {
          class: 'wb-button',
          'aria-label': trans.__('Open lab %1', name),
          click: event => open(event.currentTarget as HTMLButtonElement)
        },
        trans.__('Open')
      )
    ),
    h('p', {}, ...marked(lab.goal, 400)),
    h('p', { class: 'wb-note' }, clip(facts.join(' · '), 300)),
    lab.why === ''
      ? null
      : h(
          'p',
          {
            class: 'wb-notice',
            'data-severity': lab.can_check ? 'normal' : 'warning'
          },
          ...marked(
            lab.can_check
              ? lab.why
              : trans.__("It can't be checked here. %1", lab.why),
            400
          )
        ),
    folded(trans.__('Hints of %1', name), trans.__('Hints'), place => {
      void showHints(place, lab.id, server, () => server.hints(lab.id));
    }),
    folded(
      trans.__('Submissions of %1', name),
      trans.__('Submissions'),
      place => {
        void showCards(place, lab.id, server);
      }
    ),
    state === 'passed'
      ? folded(
          trans.__('Solution of %1', name),
          trans.__('Reference and discussion'),
          place => {
            void showSolution(place, lab.id, server);
          }
        )
      : null
  );
}

/** Words that unfold; what is inside is fetched each time. */
function folded(label: string, words: string, fill: (place: Element) => void) {
  const place = h('div');
  const node = h(
    'details',
    {
      class: 'wb-folded',
      toggle: () => {
        if (node.open) {
          fill(place);
        }
      }
    },
    h('summary', { 'aria-label': label }, words),
    place
  );
  return node;
}

async function showHints(
  place: Element,
  lab: string,
  server: LabsServer,
  ask: () => Promise<LabHints>
): Promise<void> {
  try {
    const { of, hints } = await ask();
    const more = h(
      'button',
      {
        class: 'wb-button',
        click: () =>
          void showHints(place, lab, server, () => server.openHint(lab))
      },
      trans.__('Open one more hint')
    );
    place.replaceChildren(
      new StatusLine(trans.__('%1 of %2 are open.', hints.length, of)).node,
      h('ol', {}, ...hints.map(hint => h('li', {}, ...blocks(hint)))),
      ...(hints.length < of ? [more] : [])
    );
  } catch (error) {
    place.replaceChildren(problem(error));
  }
}

async function showSolution(
  place: Element,
  lab: string,
  server: LabsServer
): Promise<void> {
  try {
    const solution = await server.solution(lab);
    const wrong = solution.mistakes.map(({ name, reason }) =>
      h('li', {}, ...marked(`${name}: ${reason}`, 2000))
    );
    place.replaceChildren(
      h('p', {}, trans.__('Reference solution (%1)', clip(solution.file, 60))),
      h(
        'pre',
        { tabindex: '0', class: 'wb-lab-reference' },
        clip(solution.reference, 200_000)
      ),
      ...blocks(solution.discussion),
      ...(wrong.length === 0
        ? []
        : [
            h('p', {}, trans.__('What often goes wrong')),
            h('ul', {}, ...wrong)
          ])
    );
  } catch (error) {
    place.replaceChildren(problem(error));
  }
}

async function showCards(
  place: Element,
  lab: string,
  server: LabsServer
): Promise<void> {
  try {
    const { cards, newest } = await server.cards(lab);
    const list =
      cards.length === 0
        ? h(
            'p',
            {},
            trans.__('None yet. Hand one in from a notebook or a terminal.')
          )
        : h('ul', { class: 'wb-list' }, ...cards.map(markRow));
    place.replaceChildren(...(newest === null ? [] : [labCard(newest)]), list);
  } catch (error) {
    place.replaceChildren(problem(error));
  }
}

function markRow(from: LabMark): HTMLElement {
  const when = new Date(from.graded_ms).toLocaleString();
  return h(
    'li',
    { class: 'wb-lab-mark' },
    h(
      'span',
      {},
      [
        from.passed ? '✓' : '✗',
        trans.__('Submission %1, %2:', from.number, when),
        `${clip(from.status, 40)}. `
      ].join(' '),
      ...marked(from.message, 300)
    ),
    from.first_failure === ''
      ? null
      : h('p', { class: 'wb-note' }, ...marked(from.first_failure, 400))
  );
}

/** Why it can't be done, in words. */
export function problem(error: unknown): HTMLElement {
  const words = h('p', { class: 'wb-notice', role: 'alert' });
  words.dataset['severity'] = 'warning';
  setText(words, clip((error as Error).message, 400));
  return words;
}
