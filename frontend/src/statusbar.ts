/** The status-bar item: what each GPU does now, or in words why that is unknown. */

import { Widget } from '@lumino/widgets';
import { activityOf, hasGpm } from './activity';
import { h } from './dom';
import { clip, text, usedOfTotal } from './format';
import { gpusAndInstances, instancesOf } from './instances';
import type { Device } from './protocol';
import type { Stream } from './shared';
import { deviceLabel, replayWords, stateName } from './words';
import { trans } from './translation';

/** Often enough to be live, seldom enough to be read. */
const PERIOD_MS = 500;
const MOST_HZ = 2;
/** From this many GPUs on, each is only its activity; the rest is on hover. */
const COMPACT_FROM = 3;

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
    const compact = gpus.length >= COMPACT_FROM;
    // of a GPU that is split, its instances tell what runs
    const shown = gpus.filter(gpu => instancesOf(gpu, gpus).length === 0);
    const pieces = shown.flatMap((gpu, index) => [
      { text: index === 0 ? '' : compact ? ' · ' : '  |  ' },
      { text: this.isNamed(gpu) ? `${deviceLabel(gpu, gpus)} ` : '' },
      ...(compact ? this.shortLine(gpu) : this.line(gpu))
    ]);
    if (compact) {
      const count = gpus.filter(({ kind }) => kind === 'gpu').length;
      pieces.unshift({
        text: `${trans._n('%1 GPU, SM:', '%1 GPUs, SM:', count)} `
      });
    }
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

  /** Whether its place in the line does not tell which it is, or it is in trouble. */
  private isNamed(gpu: Device): boolean {
    return gpu.kind === 'mig' || this.stream.store.latest(gpu).state !== 'ok';
  }

  private line(gpu: Device): Piece[] {
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
    if (gpu.kind === 'gpu') {
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
