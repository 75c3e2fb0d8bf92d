/** The top of the dashboard: where the data comes from, and what is missing. */

import type { Bands } from '../notebook/bands';
import { notebookName } from '../notebook/bands';
import { h, setText } from '../core/dom';
import { clip } from '../core/format';
import type { Stream } from '../core/page_stream';
import type { Latest } from '../core/store';
import { NOTHING_READ } from '../core/store';
import { absenceWords, replayWords } from '../core/words';
import type { Controls } from './controls';
import { Badge } from './tiles/badge';
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
      ? trans.__('No live GPU here (%1): the GPUs below are a recording', names)
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
    // the best of them: of each GPU its own badge tells
    const states = gpus.map(gpu => store.latest(gpu));
    const best = states.find(({ state }) => state === 'ok') ?? states[0];
    const words = replay
      ? replayWords(replay)
      : best === undefined
        ? trans.__('This server sees no GPU')
        : this.measuredWords(states);
    const { label } = store;
    this.during.hidden = replay === null;
    const during =
      label === null ? '' : trans.__('Recording: %1', clip(label, 80));
    setText(this.during, during);
    this.during.title = during;
    const badge = new Badge({ origin: replay ? 'replay' : 'live' });
    badge.update(best ?? NOTHING_READ);
    const written = `${badge.node.textContent} ${words}`;
    if (this.origin.dataset['words'] === written) {
      return;
    }
    this.origin.dataset['words'] = written;
    this.origin.replaceChildren(
      h('h2', {}, trans.__('GPU dashboard')),
      best === undefined && replay === null ? '' : badge.node,
      this.controls.badge,
      h('span', { class: 'wb-origin-words', title: words }, words),
      this.during
    );
    this.origin.title = replay?.description ?? '';
  }

  private measuredWords(states: readonly Latest[]): string {
    const count = states.filter(({ state }) => state === 'ok').length;
    return count === states.length
      ? trans.__('measured now')
      : trans.__('%1 of %2 GPUs measured now', count, states.length);
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
