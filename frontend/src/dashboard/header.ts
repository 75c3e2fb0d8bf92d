/** The top of the dashboard: where the data comes from, and what is missing. */

import type { Bands } from '../notebook/bands';
import { notebookName } from '../notebook/bands';
import { h, setText } from '../core/dom';
import { clip } from '../core/format';
import type { Stream } from '../core/page_stream';
import { absenceWords, replayWords } from '../core/words';
import type { Controls } from './controls';
import { trans } from '../core/translation';

/** More notebooks than this share the legend's last words. */
const LEGEND_MOST = 8;

export class Header {
  readonly node: HTMLElement;

  constructor(
    private readonly stream: Stream,
    private readonly bands: Bands | null,
    private readonly controls: Controls
  ) {
    this.retry = h(
      'button',
      { class: 'wb-button', click: () => stream.connection.retry() },
      trans.__('Try now')
    );
    this.node = h(
      'header',
      { class: 'wb-header' },
      h('div', { class: 'wb-bar' }, this.origin, controls.node),
      h('div', { class: 'wb-connection' }, this.connection, this.retry),
      this.problem,
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
      phase === 'open'
        ? ''
        : why || trans.__('Connecting to the Jupyter server…')
    );
    this.retry.hidden = phase !== 'waiting' && phase !== 'refused';
    const { absences } = store;
    this.absences.hidden = absences.length === 0;
    const names = absences.map(absence => absence.what).join(', ');
    // a replay's charts have values, whatever is missing on this machine
    const words = store.replay
      ? trans.__('No live GPU here: %1', names)
      : trans.__('Not available here: %1', names);
    if (this.absences.dataset['words'] !== words) {
      this.absences.dataset['words'] = words;
      this.absences.replaceChildren(
        h('summary', {}, words),
        h(
          'ul',
          {},
          ...absences.map(absence => h('li', {}, absenceWords(absence)))
        )
      );
      this.absences.open = store.devices.every(({ kind }) => kind !== 'gpu');
    }
    this.writeLegend();
  }

  /** Say why the charts don't show all that they should; nothing if they do. */
  setProblem(words: string): void {
    setText(this.problem, words);
  }

  private writeOrigin(): void {
    const { store } = this.stream;
    const { replay } = store;
    const gpus = store.devices.filter(({ kind }) => kind === 'gpu');
    const words = replay
      ? replayWords(replay)
      : gpus.length > 0
        ? trans.__('measured now')
        : trans.__('This server sees no GPU');
    const badge = replay ? 'REPLAY' : gpus.length > 0 ? 'LIVE' : '';
    const { label } = store;
    this.during.hidden = replay === null;
    setText(
      this.during,
      label === null ? '' : trans.__('Recording: %1', clip(label, 80))
    );
    if (this.origin.dataset['words'] === `${badge} ${words}`) {
      return;
    }
    this.origin.dataset['words'] = `${badge} ${words}`;
    const kind = replay ? 'wb-badge-replay' : 'wb-badge-live';
    this.origin.replaceChildren(
      h('h2', {}, trans.__('GPU dashboard')),
      badge ? h('span', { class: `wb-badge ${kind}` }, badge) : '',
      this.controls.badge,
      h('span', { class: 'wb-origin-words', title: words }, words),
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
      h('span', {}, trans.__('Cells of')),
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
  private readonly problem = h('p', { class: 'wb-warning', role: 'status' });
  private readonly absences = h('details', { class: 'wb-absences' });
  private readonly legend = h('div', {
    class: 'wb-notebooks',
    'aria-label': trans.__('Colours of the notebooks whose cells ran')
  });
  private readonly retry: HTMLButtonElement;
}
