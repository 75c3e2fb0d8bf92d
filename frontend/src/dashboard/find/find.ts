/** Finds what happened: reports, cells, alerts, by name, notebook, verdict or day. */

import { h, setText } from '../../core/dom';
import { clip, date, duration, NONE, when } from '../../core/format';
import type { KeptRecord } from '../../shapes/protocol';
import type { RecordKind, Records, Search } from '../../server/records';
import { ANYTHING } from '../../server/records';
import { table } from '../../core/table';
import { mark, trans } from '../../core/translation';
import { cellTitle } from '../parts/server_words';

const DAY_MS = 86_400_000;
const PAGE = 20;
/** Of the years that the server takes. */
const DAY = /^(19[7-9]|20[0-9])\d-\d\d-\d\d$/;

/** What can be searched for, and what a person calls it. */
const KINDS: readonly (readonly [string, string, readonly RecordKind[]])[] = [
  ['', mark('Anything'), []],
  ['report', mark('Reports'), ['report']],
  ['cell', mark('Cells'), ['cell', 'receipt']],
  ['alert', mark('Alerts'), ['alert']],
  ['post_mortem', mark('Out of memory'), ['post_mortem']]
];
const NAMES: Record<RecordKind, string> = {
  report: mark('report'),
  receipt: mark('receipt'),
  cell: mark('cell'),
  alert: mark('alert'),
  post_mortem: mark('out of memory')
};

export interface FindActions {
  /** Open what a record is about. */
  open(record: KeptRecord): void;
  /** Show the time of a record on the charts. */
  show(record: KeptRecord): void;
}

export class Find {
  readonly node: HTMLElement;

  constructor(
    private readonly records: Pick<Records, 'find'>,
    private readonly actions: FindActions
  ) {
    const kinds = KINDS.map(([value, label]) =>
      h('option', { value }, trans.__(label))
    );
    this.kind.append(...kinds);
    this.node = h(
      'details',
      { class: 'wb-reports wb-find', 'aria-label': trans.__('Find') },
      h('summary', {}, trans.__('Find a report, a cell or an alert')),
      h(
        'form',
        {
          class: 'wb-controls',
          role: 'search',
          submit: event => {
            event.preventDefault();
            void this.search(null);
          }
        },
        labelled(trans.__('Text'), this.text),
        labelled(trans.__('Kind'), this.kind),
        labelled(trans.__('Notebook'), this.notebook),
        labelled(trans.__('Verdict'), this.verdict),
        labelled(trans.__('From'), this.from),
        labelled(trans.__('To'), this.to),
        h('button', { class: 'wb-button', type: 'submit' }, trans.__('Find'))
      ),
      this.words,
      this.list,
      this.more
    );
  }

  private async search(beforeMs: number | null): Promise<void> {
    const request = (this.requests += 1);
    const wrong = [this.from, this.to].find(({ value }) => !isDayOrNone(value));
    if (wrong !== undefined) {
      setText(
        this.words,
        trans.__(
          '%1 is not a day: write one such as 2026-06-15.',
          clip(wrong.value.trim(), 40)
        )
      );
      this.list.replaceChildren();
      this.more.replaceChildren();
      return;
    }
    setText(this.words, trans.__('Looking…'));
    try {
      const { records, has_more: hasMore } = await this.records.find({
        ...this.wanted(),
        beforeMs
      });
      if (request !== this.requests) {
        return;
      }
      this.shown = beforeMs === null ? records : [...this.shown, ...records];
      this.write(hasMore);
    } catch (error) {
      if (request === this.requests) {
        setText(
          this.words,
          trans.__('Nothing can be found. %1', (error as Error).message)
        );
      }
    }
  }

  private wanted(): Search {
    const chosen = KINDS.find(([value]) => value === this.kind.value);
    return {
      ...ANYTHING,
      text: this.text.value.trim(),
      kinds: chosen?.[2] ?? [],
      notebook: this.notebook.value.trim(),
      verdict: this.verdict.value.trim(),
      fromMs: dayBegin(this.from.value),
      toMs: dayEnd(this.to.value),
      limit: PAGE
    };
  }

  private write(hasMore: boolean): void {
    const { shown } = this;
    setText(
      this.words,
      shown.length === 0
        ? trans.__('Nothing kept matches.')
        : hasMore
          ? trans.__('%1 found, and there are older ones.', shown.length)
          : trans.__('%1 found.', shown.length)
    );
    this.list.replaceChildren(
      ...(shown.length === 0
        ? []
        : [
            table(
              trans.__('Found, the newest first'),
              [
                trans.__('What'),
                trans.__('Kind'),
                trans.__('Notebook'),
                trans.__('Verdict'),
                trans.__('Began'),
                trans.__('Took'),
                ''
              ],
              shown.map(record => this.row(record)),
              shown.length
            )
          ])
    );
    const last = shown.at(-1);
    this.more.replaceChildren(
      ...(hasMore && last !== undefined
        ? [
            h(
              'button',
              {
                class: 'wb-button',
                type: 'button',
                click: () => void this.search(last.started_ms)
              },
              trans.__('Older ones')
            )
          ]
        : [])
    );
  }

  private row(record: KeptRecord): (string | Node)[] {
    const { ended_ms: endedMs, started_ms: startedMs, status } = record;
    const took =
      endedMs === null ? status || NONE : duration(endedMs - startedMs);
    return [
      h(
        'button',
        {
          class: 'wb-link',
          title: clip(record.sentence, 300),
          click: () => this.actions.open(record)
        },
        cellTitle(record.title)
      ),
      trans.__(NAMES[record.kind]) +
        (record.is_replay ? `, ${trans.__('replay')}` : ''),
      clip(record.notebook ?? NONE, 60),
      clip(record.verdict ?? NONE, 40),
      when(startedMs),
      took,
      h(
        'button',
        { class: 'wb-button', click: () => this.actions.show(record) },
        trans.__('Show in time')
      )
    ];
  }

  private readonly text = input(
    'search',
    trans.__('Title, notebook or sentence')
  );
  private readonly notebook = input('search', trans.__('Any'));
  private readonly verdict = input('search', trans.__('Any'));
  private readonly from = input('text', 'YYYY-MM-DD');
  private readonly to = input('text', 'YYYY-MM-DD');
  private readonly kind = h('select', { class: 'wb-select' });
  private readonly words = h('p', { class: 'wb-note', role: 'status' });
  private readonly list = h('div', { class: 'wb-report-list' });
  private readonly more = h('div', {});
  private shown: readonly KeptRecord[] = [];
  private requests = 0;
}

/** Whether a field holds a day, or nothing. */
export function isDayOrNone(text: string): boolean {
  return text.trim() === '' || dayBegin(text) !== null;
}

/** Begin of a day in the browser's zone; null without one. */
export function dayBegin(text: string): number | null {
  const day = text.trim();
  const ms = DAY.test(day) ? new Date(`${day}T00:00:00`).getTime() : NaN;
  // a browser takes the 31st of June for the 1st of July
  return Number.isFinite(ms) && date(ms) === day ? ms : null;
}

/** End of a day in the browser's zone, whose length may be another than 24 h. */
export function dayEnd(day: string): number | null {
  const begin = dayBegin(day);
  if (begin === null) {
    return null;
  }
  const next = new Date(begin + 1.5 * DAY_MS);
  next.setHours(0, 0, 0, 0);
  return next.getTime() - 1;
}

function input(type: string, placeholder: string): HTMLInputElement {
  return h('input', {
    class: 'wb-select',
    type,
    placeholder,
    maxlength: '200'
  });
}

function labelled(label: string, control: HTMLElement): HTMLElement {
  return h('label', { class: 'wb-labelled' }, `${label} `, control);
}
