/** The controls of the history: how much, which part, what to do with it. */

import { STORED_MS } from '../chart/loop';
import { HOUR_MS, MONTH_MS } from '../core/viewport';
import type { Viewport } from '../core/viewport';
import { h, setText } from '../core/dom';
import { clip, duration, when } from '../core/format';
import type { ExportFormat, History } from '../server/history';
import type { Keeping } from '../shapes/protocol';
import { keyList } from './parts/keys';
import { FORMATS, save } from './parts/save';
import { mark, trans } from '../core/translation';

const WINDOWS: readonly (readonly [number, string])[] = [
  [30, '30 s'],
  [60, '1 min'],
  [300, '5 min'],
  [STORED_MS / 1000, '10 min'],
  [1800, '30 min'],
  [HOUR_MS / 1000, '1 h'],
  [6 * 3600, '6 h'],
  [24 * 3600, mark('1 day')],
  [7 * 24 * 3600, mark('7 days')],
  [MONTH_MS / 1000, mark('30 days')]
];
const ZOOM = 2;
const PAN = 0.5;

export class Controls {
  readonly node: HTMLElement;
  /** Whether a plain drag selects. */
  selecting = false;

  constructor(
    private readonly viewport: Viewport,
    private readonly history: History
  ) {
    this.select = h(
      'select',
      {
        class: 'wb-select',
        'aria-label': trans.__('Time window'),
        change: () => viewport.setWindow(Number(this.select.value) * 1000)
      },
      ...WINDOWS.map(([seconds, label]) =>
        h('option', { value: String(seconds) }, trans.__(label))
      )
    );
    this.export = h(
      'select',
      {
        class: 'wb-select',
        'aria-label': trans.__('Save all of the history'),
        title: trans.__('Save all of the history; JSONL can be replayed'),
        change: () => this.saveAll()
      },
      h('option', { value: '' }, trans.__('Save…')),
      ...FORMATS.map(([format, label]) =>
        h('option', { value: format }, trans.__(label))
      )
    );
    this.node = h(
      'div',
      {
        class: 'wb-controls',
        role: 'toolbar',
        'aria-label': trans.__('History')
      },
      this.pause,
      this.select,
      h(
        'span',
        { class: 'wb-button-row' },
        this.button('◂', trans.__('Back in time'), () => viewport.pan(-PAN)),
        this.button('▸', trans.__('On in time'), () => viewport.pan(PAN)),
        this.button('−', trans.__('Show more time'), () => viewport.zoom(ZOOM)),
        this.button('+', trans.__('Show less time'), () =>
          viewport.zoom(1 / ZOOM)
        )
      ),
      h(
        'label',
        { class: 'wb-labelled' },
        `${trans.__('Go to')} `,
        this.moment
      ),
      this.tool,
      this.export,
      ...keyList(),
      this.words,
      this.kept
    );
    this.update();
  }

  /** Write what holds now. */
  update(): void {
    const { following } = this.viewport;
    const { fromMs, toMs } = this.viewport.span();
    this.writeWindow();
    setText(this.pause, following ? trans.__('Pause') : trans.__('Resume'));
    this.pause.setAttribute('aria-pressed', String(!following));
    setText(
      this.badge,
      following ? '' : `PAUSED ${when(fromMs)} to ${when(toMs)}`
    );
    this.tool.setAttribute('aria-pressed', String(this.selecting));
  }

  /** What was zoomed to, or the settings ask for, may have no entry of its own. */
  private writeWindow(): void {
    const { following, windowMs } = this.viewport;
    const { fromMs, toMs } = this.viewport.span();
    const shownMs = following ? windowMs : Math.round(toMs - fromMs);
    const seconds = String(shownMs / 1000);
    this.other.remove();
    if (![...this.select.options].some(({ value }) => value === seconds)) {
      this.other.value = seconds;
      setText(this.other, duration(shownMs));
      this.select.prepend(this.other);
    }
    this.select.value = seconds;
  }

  /** Say how far back the history goes, and what is wrong with it. */
  setKeeping(keeping: Keeping | null): void {
    const fromMs = keeping?.from_ms ?? null;
    const since =
      fromMs === null ? '' : `${trans.__('Kept since %1.', when(fromMs))} `;
    const problem =
      keeping?.state === 'stopped' ? '' : (keeping?.message ?? '');
    setText(this.kept, clip(`${since}${problem}`, 300));
  }

  /** Show the chosen moment in the middle, as much time as now. */
  private goTo(): void {
    const atMs = new Date(this.moment.value).getTime();
    const { fromMs, toMs } = this.viewport.span();
    if (Number.isFinite(atMs)) {
      const halfMs = (toMs - fromMs) / 2;
      this.viewport.show({ fromMs: atMs - halfMs, toMs: atMs + halfMs });
      setText(this.words, '');
    } else if (this.moment.value !== '') {
      setText(this.words, trans.__('Write a time as YYYY-MM-DD hh:mm.'));
    }
  }

  /** Stand still, or go on with now. */
  togglePause(): void {
    if (this.viewport.following) {
      this.viewport.hold();
    } else {
      this.viewport.follow();
    }
  }

  /** Let a plain drag zoom again. */
  disarm(): void {
    this.selecting = false;
    this.update();
  }

  private saveAll(): void {
    const format = this.export.value as ExportFormat;
    this.export.value = '';
    void save(this.history, format, null, words => setText(this.words, words));
  }

  private button(sign: string, name: string, click: () => void) {
    return h(
      'button',
      { class: 'wb-button', 'aria-label': name, title: name, click },
      sign
    );
  }

  /** That the view stands still; not beside the buttons, which must not move. */
  readonly badge = h('span', {
    class: 'wb-badge wb-badge-paused',
    role: 'status'
  });
  private readonly pause = h('button', {
    class: 'wb-button wb-pause',
    click: () => this.togglePause()
  });
  private readonly tool = h(
    'button',
    {
      class: 'wb-button',
      title: trans.__(
        'Drag over a chart to select a span (or hold Shift and drag)'
      ),
      click: () => {
        this.selecting = !this.selecting;
        this.update();
      }
    },
    trans.__('Select'),
    h('span', { class: 'wb-wide' }, ` ${trans.__('a span')}`)
  );
  private readonly words = h('span', { role: 'status' });
  private readonly kept = h('span', { class: 'wb-note' });
  private readonly moment = h('input', {
    class: 'wb-select',
    type: 'text',
    placeholder: 'YYYY-MM-DD hh:mm',
    size: '16',
    maxlength: '30',
    'aria-label': trans.__('Go to a time'),
    change: () => this.goTo()
  });
  private readonly select: HTMLSelectElement;
  /** The length of time that is none of those to choose from. */
  private readonly other = h('option', {});
  private readonly export: HTMLSelectElement;
}
