/** The status-bar item: what each GPU does now, or in words why that is unknown. */

import { Widget } from '@lumino/widgets';
import { activityOf, hasGpm } from '../core/activity';
import { h } from '../core/dom';
import { clip, text, usedOfTotal } from '../core/format';
import { gpusAndInstances, instancesOf } from '../core/instances';
import type { Device } from '../shapes/protocol';
import type { Stream } from '../core/page_stream';
import { deviceLabel, replayWords, stateName } from '../core/words';
import { trans } from '../core/translation';

/** Often enough to be live, seldom enough to be read. */
const PERIOD_MS = 500;
const MOST_HZ = 2;
/** From this many GPUs on, each is only its activity; the rest is on hover. */
const COMPACT_FROM = 3;
/** More than this are told together: their line would be cut off. */
const MOST_NAMED = 8;
/** So many of those in trouble are named. */
const MOST_WRONG = 2;

/** A piece of the line; a value has a width, in digits, that it never leaves. */
interface Piece {
  readonly text: string;
  readonly width?: number;
}

export class StatusItem extends Widget {
  constructor(
    private readonly stream: Stream,
    open: () => void
  ) {
    super({ node: h('div', { class: 'wb-status' }) });
    this.button = h('button', { class: 'wb-status-button', click: open });
    this.node.append(this.button);
    this.write();
  }

  /** Watch, at no more than this rate; null stops. */
  watch(rateHz: number | null): void {
    window.clearInterval(this.timer);
    this.stream.connection.demand(
      this,
      rateHz === null
        ? null
        : { rateHz: Math.min(rateHz, MOST_HZ), historySeconds: 0 }
    );
    if (rateHz !== null) {
      this.timer = window.setInterval(() => {
        this.write();
      }, PERIOD_MS);
    }
  }

  override dispose(): void {
    this.watch(null);
    super.dispose();
  }

  private write(): void {
    if (document.hidden) {
      return;
    }
    const [pieces, more] = this.pieces();
    this.button.replaceChildren(
      ...pieces.map(({ text, width }) => {
        const node = h('span', {}, text);
        if (width !== undefined) {
          node.className = 'wb-status-value';
          node.style.minWidth = `${width}ch`;
        }
        return node;
      })
    );
    const title = `${more}\n${trans.__('Open the GPU dashboard')}`;
    // a name that changes while a screen reader is on it is read again and again
    if (this.button.title !== title && document.activeElement !== this.button) {
      this.button.title = title;
      this.button.setAttribute('aria-label', title);
    }
  }

  /** The line, and what is told on hover. */
  private pieces(): [Piece[], string] {
    const { connection, store } = this.stream;
    const { phase, why } = connection.status;
    if (phase === 'connecting' && !why) {
      return [
        [{ text: trans.__('GPU: connecting') }],
        trans.__('Connecting to the Jupyter server.')
      ];
    }
    if (phase !== 'open') {
      return [[{ text: trans.__('GPU: disconnected') }], why];
    }
    const gpus = gpusAndInstances(store.devices);
    if (gpus.length === 0) {
      const reason =
        store.absences[0]?.message ?? trans.__('This server sees no GPU.');
      return [[{ text: trans.__('No GPU') }], clip(reason)];
    }
    // of a GPU that is split, its instances tell what runs
    const shown = gpus.filter(gpu => instancesOf(gpu, gpus).length === 0);
    const pieces =
      shown.length > MOST_NAMED
        ? this.together(shown, gpus)
        : shown.length >= COMPACT_FROM
          ? this.shortLines(shown, gpus)
          : this.fullLines(shown, gpus);
    const details = gpus.map(gpu => {
      const words = this.line(gpu).map(piece => piece.text);
      return `${deviceLabel(gpu, gpus)}: ${words.join('')}`;
    });
    if (store.replay !== null) {
      pieces.unshift({ text: `${trans.__('Replay:')} ` });
      details.unshift(trans.__('Replay of %1', replayWords(store.replay)));
    }
    return [pieces, details.join('\n')];
  }

  /** All that fits, of one or two. */
  private fullLines(shown: readonly Device[], gpus: readonly Device[]) {
    return shown.flatMap((gpu, index) => [
      { text: index === 0 ? '' : '  |  ' },
      {
        text:
          shown.length > 1 || this.isWrong(gpu) || gpu.kind === 'mig'
            ? `${deviceLabel(gpu, gpus)} `
            : ''
      },
      ...this.line(gpu, shown.length > 1)
    ]);
  }

  /** The activity of each, by its index: "SM  0: 93 %  1: 4 %  2: lost". */
  private shortLines(shown: readonly Device[], gpus: readonly Device[]) {
    const pieces: Piece[] = shown.flatMap(gpu => [
      { text: `  ${deviceLabel(gpu, gpus).replace(/^GPU /, '')}: ` },
      ...this.shortLine(gpu)
    ]);
    return [{ text: trans.__('GPUs, SM') }, ...pieces];
  }

  /** How busy they are, and which are in trouble. */
  private together(shown: readonly Device[], gpus: readonly Device[]): Piece[] {
    const { store } = this.stream;
    const known = shown.flatMap(gpu => {
      const value = store.value(gpu, activityOf(gpu).metric);
      return value === null ? [] : [value];
    });
    const mean = known.reduce((sum, value) => sum + value, 0) / known.length;
    const wrong = gpus.filter(gpu => this.isWrong(gpu));
    const names = wrong.slice(0, MOST_WRONG).map(gpu => {
      const state = stateName(this.stream.store.latest(gpu).state);
      return `, ${deviceLabel(gpu, gpus)} ${state}`;
    });
    const more = wrong.length - names.length;
    const count = gpus.filter(({ kind }) => kind === 'gpu').length;
    return [
      { text: `${trans.__('%1 GPUs, SM mean', count)} ` },
      { text: text(known.length > 0 ? mean : null, 'ratio'), width: 4.5 },
      { text: `${names.join('')}${more > 0 ? ` and ${more} more` : ''}` }
    ];
  }

  private isWrong(gpu: Device): boolean {
    return this.stream.store.latest(gpu).state !== 'ok';
  }

  private line(gpu: Device, isShort = false): Piece[] {
    const { store } = this.stream;
    const { state, why } = store.latest(gpu);
    if (state !== 'ok') {
      const reason = why ? `: ${clip(why, 60)}` : '';
      return [{ text: `${stateName(state)}${reason}` }];
    }
    const total = gpu.facts['memory_total_bytes'];
    const used = store.value(gpu, 'memory_used_bytes');
    const memory =
      typeof total === 'number' && total > 0
        ? usedOfTotal(used, total)
        : text(used, 'bytes');
    const line: Piece[] = [{ text: memory, width: 10.5 }];
    // an instance has no power of its own, and maybe nothing that tells activity
    if (gpu.kind === 'gpu' || hasGpm(gpu)) {
      const name = { text: `${activityOf(gpu).short} ` };
      line.unshift(name, this.activity(gpu), { text: ' · ' });
    }
    if (gpu.kind === 'gpu' && !isShort) {
      const watts = text(store.value(gpu, 'power_watts'), 'watts');
      line.push({ text: ' · ' }, { text: watts, width: 5 });
    }
    return line;
  }

  private shortLine(gpu: Device): Piece[] {
    const { state } = this.stream.store.latest(gpu);
    if (state !== 'ok') {
      return [{ text: stateName(state) }];
    }
    const activity = this.activity(gpu);
    return hasGpm(gpu)
      ? [activity]
      : [{ text: `${trans.__('GPU util.')} ` }, activity];
  }

  private activity(gpu: Device): Piece {
    const { store } = this.stream;
    const value = store.value(gpu, activityOf(gpu).metric);
    return { text: text(value, 'ratio'), width: 4.5 };
  }

  private readonly button: HTMLButtonElement;
  private timer = 0;
}
