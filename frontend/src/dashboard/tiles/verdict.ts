/** Under a GPU's heading, of now: what holds it back, its memory, what slowed it. */

import type { Drawable } from '../../chart/loop';
import { h, setText } from '../../core/dom';
import { clip, duration, unbroken } from '../../core/format';
import type { Device, Verdict } from '../../shapes/protocol';
import type { Stream } from '../../core/page_stream';
import { deviceLabel } from '../../core/words';
import { Pill, sinceWords } from './pill';
import { trans } from '../../core/translation';

const PERIOD_MS = 500;
/** Memory that is full sooner is worth a colour. */
const SOON_S = 600;
/** Worst first; more would push the charts out of sight. */
const MOST_CONDITIONS = 3;

export class VerdictLine implements Drawable {
  readonly node: HTMLElement;
  readonly isOfNow = true;

  constructor(
    private readonly device: Device,
    private readonly stream: Stream
  ) {
    this.node = h(
      'div',
      {
        class: 'wb-verdict',
        role: 'group',
        'aria-label': trans.__(
          'What holds %1 back',
          deviceLabel(device, stream.store.devices)
        )
      },
      h(
        'p',
        { class: 'wb-verdict-words' },
        this.pill.node,
        ' ',
        this.since,
        ' ',
        this.sentence,
        ' ',
        this.rule
      ),
      h('div', { class: 'wb-verdict-below' }, this.conditions, this.outlook)
    );
  }

  /** Write what is known now; the room stays where nothing is. */
  write(): void {
    const now = performance.now();
    if (now - this.drawnAt < PERIOD_MS) {
      return;
    }
    this.drawnAt = now;
    const { statements } = this.stream;
    const verdict = statements.verdict(this.device);
    this.pill.write(verdict);
    setText(this.since, sinceWords(verdict));
    setText(this.sentence, shownWords(verdict?.sentence));
    setText(this.rule, verdict === null ? '' : ruleWords(verdict));
    const outlook = statements.outlook(this.device);
    const soon = outlook?.full_in_s ?? Infinity;
    setText(this.outlook, shownWords(outlook?.sentence));
    this.outlook.dataset['severity'] = soon < SOON_S ? 'warning' : 'normal';
    this.drawConditions();
    // what the room cuts off
    const title = [
      this.since,
      this.sentence,
      this.rule,
      this.conditions,
      this.outlook
    ]
      .map(({ textContent }) => textContent)
      .filter(Boolean)
      .join('\n');
    if (this.node.title !== title) {
      this.node.title = title;
    }
  }

  private drawConditions(): void {
    const conditions = this.stream.statements
      .health(this.device)
      .slice(0, MOST_CONDITIONS);
    while (this.conditions.children.length > conditions.length) {
      this.conditions.lastElementChild?.remove();
    }
    conditions.forEach(({ severity, sentence }, index) => {
      const item =
        this.conditions.children[index] ??
        this.conditions.appendChild(h('li', {}));
      (item as HTMLElement).dataset['severity'] = severity;
      setText(item, shownWords(sentence));
    });
  }

  private readonly pill = new Pill();
  private readonly since = h('small', {});
  private readonly sentence = h('span', {});
  private readonly rule = h('small', { class: 'wb-rule' });
  private readonly outlook = h('span', { class: 'wb-outlook' });
  private readonly conditions = h('ul', {
    class: 'wb-conditions',
    'aria-label': trans.__('Health')
  });
  private drawnAt = -Infinity;
}

/** The comparison that decided, and over how long: the charts show this moment. */
function ruleWords({ rule, window_s, is_changing }: Verdict): string {
  const words = shownWords(rule);
  if (rule === '' || window_s === null) {
    return words;
  }
  const over = duration(1000 * window_s);
  return is_changing
    ? trans.__('Over %1 before the change: %2', over, words)
    : trans.__('Over the last %1: %2', over, words);
}

function shownWords(words: string | undefined): string {
  return unbroken(clip(words ?? '', 300));
}
