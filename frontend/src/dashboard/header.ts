/** The top of the dashboard: where the data comes from, and what is missing. */

import type { Bands } from '../bands';
import { notebookName } from '../bands';
import { h, setText } from '../dom';
import { clip, clock } from '../format';
import type { Stream } from '../shared';
import { absenceWords, replayWords } from '../words';

const WINDOWS: readonly (readonly [number, string])[] = [
  [30, '30 s'],
  [60, '1 min'],
  [300, '5 min'],
  [600, '10 min']
];
/** More notebooks than this share the legend's last words. */
const LEGEND_MOST = 8;

export interface HeaderActions {
  readonly windowSeconds: number;
  setWindow(seconds: number): void;
  setPaused(paused: boolean): void;
}

export class Header {
  readonly node: HTMLElement;

  constructor(
    private readonly stream: Stream,
    private readonly bands: Bands | null,
    actions: HeaderActions
  ) {
    this.select = h(
      'select',
      {
        class: 'wb-select',
        'aria-label': 'Time window',
        change: () => actions.setWindow(Number(this.select.value))
      },
      ...WINDOWS.map(([seconds, label]) =>
        h('option', { value: String(seconds) }, label)
      )
    );
    this.select.value = String(actions.windowSeconds);
    this.pause = h(
      'button',
      {
        class: 'wb-button',
        'aria-pressed': 'false',
        click: () => {
          const paused = this.pause.getAttribute('aria-pressed') !== 'true';
          this.pause.setAttribute('aria-pressed', String(paused));
          const at = clock(this.stream.store.now());
          setText(this.pause, paused ? `Resume (paused ${at})` : 'Pause');
          actions.setPaused(paused);
        }
      },
      'Pause'
    );
    this.retry = h(
      'button',
      { class: 'wb-button', click: () => stream.connection.retry() },
      'Try now'
    );
    this.node = h(
      'header',
      { class: 'wb-header' },
      h(
        'div',
        { class: 'wb-bar' },
        this.origin,
        h('div', { class: 'wb-controls' }, this.select, this.pause)
      ),
      h('div', { class: 'wb-connection' }, this.connection, this.retry),
      this.absences,
      this.legend
    );
    this.update();
  }

  /** Write everything again from what is known now. */
  update(): void {
    const { connection, store } = this.stream;
    const { phase, why } = connection.status;
    this.writeOrigin();
    setText(
      this.connection,
      phase === 'open' ? '' : why || 'Connecting to the Jupyter server…'
    );
    this.retry.hidden = phase !== 'waiting' && phase !== 'refused';
    const { absences } = store;
    this.absences.hidden = absences.length === 0;
    const names = absences.map(absence => absence.what).join(', ');
    if (this.absences.dataset['names'] !== names) {
      this.absences.dataset['names'] = names;
      this.absences.replaceChildren(
        h('summary', {}, `Not available here: ${names}`),
        h('ul', {}, ...absences.map(each => h('li', {}, absenceWords(each))))
      );
      this.absences.open = store.devices.every(({ kind }) => kind !== 'gpu');
    }
    this.writeLegend();
  }

  private writeOrigin(): void {
    const { store } = this.stream;
    const { replay } = store;
    const gpus = store.devices.filter(({ kind }) => kind === 'gpu');
    const words = replay
      ? replayWords(replay)
      : gpus.length > 0
        ? 'measured now'
        : 'This server sees no GPU';
    const badge = replay ? 'REPLAY' : gpus.length > 0 ? 'LIVE' : '';
    const { label } = store;
    this.during.hidden = replay === null;
    setText(
      this.during,
      label === null ? '' : `recorded during: ${clip(label, 80)}`
    );
    if (this.origin.dataset['words'] === `${badge} ${words}`) {
      return;
    }
    this.origin.dataset['words'] = `${badge} ${words}`;
    const kind = replay ? 'wb-badge-replay' : 'wb-badge-live';
    this.origin.replaceChildren(
      h('h2', {}, 'GPU dashboard'),
      badge ? h('span', { class: `wb-badge ${kind}` }, badge) : '',
      h('span', { class: 'wb-origin-words' }, words),
      this.during
    );
    this.origin.title = replay?.description ?? '';
  }

  private writeLegend(): void {
    const notebooks = this.bands?.notebooks ?? [];
    this.legend.hidden = notebooks.length === 0;
    if (this.legend.dataset['count'] === String(notebooks.length)) {
      return;
    }
    this.legend.dataset['count'] = String(notebooks.length);
    const more = notebooks.length - LEGEND_MOST;
    this.legend.replaceChildren(
      h('span', {}, 'Cells of'),
      ...notebooks
        .slice(0, LEGEND_MOST)
        .map((path, index) =>
          h(
            'span',
            { class: 'wb-notebook', title: path },
            h('span', { class: `wb-swatch wb-band-${index % 6}` }),
            notebookName(path)
          )
        ),
      more > 0 ? `and ${more} more` : ''
    );
  }

  private readonly origin = h('div', { class: 'wb-origin' });
  private readonly during = h('span', { class: 'wb-during' });
  private readonly connection = h('span', { role: 'status' });
  private readonly absences = h('details', { class: 'wb-absences' });
  private readonly legend = h('div', {
    class: 'wb-notebooks',
    'aria-label': 'Colours of the notebooks whose cells ran'
  });
  private readonly select: HTMLSelectElement;
  private readonly pause: HTMLButtonElement;
  private readonly retry: HTMLButtonElement;
}
