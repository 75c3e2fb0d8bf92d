/** The cells that ran, newest first: each opens what it cost. */

import type { Band, Bands } from '../../notebook/bands';
import { notebookName } from '../../notebook/bands';
import { h, rewrite } from '../../core/dom';
import { when, duration } from '../../core/format';
import type { RunOfCell } from '../../server/history';
import type { Receipt } from '../../shapes/protocol';
import type { Stream } from '../../core/page_stream';
import type { PointerPress } from '../parts/pointer_press';
import { table } from '../../core/table';
import { trans } from '../../core/translation';
import { cellTitle, ending } from '../parts/server_words';

const MOST_CELLS = 8;
const PERIOD_MS = 500;

export interface CellActions {
  receipt(receipt: Receipt): void;
  /** Ask the server for what a run cost that no kernel told. */
  ask(run: RunOfCell): void;
}

/** One line of the list: a run that a page saw, a kernel told, or both. */
interface Run {
  readonly startMs: number;
  readonly cells: readonly string[];
  readonly open: (() => void) | null;
}

export class CellList {
  readonly node = h('section', {
    class: 'wb-reports wb-cells',
    'aria-label': trans.__('Cells')
  });

  constructor(
    private readonly stream: Stream,
    private readonly bands: Bands | null,
    private readonly pressed: PointerPress,
    private readonly actions: CellActions
  ) {
    this.update();
  }

  /** Show what a cell cost; null while it runs. */
  opener(band: Band): (() => void) | null {
    const receipt = this.receiptOf(band);
    if (receipt !== undefined) {
      return () => this.actions.receipt(receipt);
    }
    const { endMs, startMs, kernelId, cellId, title } = band;
    const { offsetMs } = this.stream.store;
    return endMs === null || kernelId === ''
      ? null
      : () =>
          this.actions.ask({
            fromMs: startMs - offsetMs,
            toMs: endMs - offsetMs,
            kernelId,
            cellId,
            title
          });
  }

  /** Write the list soon; cells may come by the hundred. */
  update(): void {
    this.timer ||= window.setTimeout(() => {
      this.timer = 0;
      this.write();
    }, PERIOD_MS);
  }

  dispose(): void {
    window.clearTimeout(this.timer);
  }

  private write(): void {
    if (this.pressed.isDown) {
      return;
    }
    const runs = this.runs();
    this.node.hidden = runs.length === 0;
    const written = JSON.stringify(
      runs.map(({ cells, open }) => [cells, open !== null])
    );
    if (written === this.written) {
      return;
    }
    this.written = written;
    rewrite(
      this.node,
      h('h3', {}, trans.__('Cells')),
      table(
        trans.__('What the newest cells cost: open one for its receipt'),
        [
          trans.__('Cell'),
          trans.__('Notebook'),
          trans.__('Started'),
          trans.__('Wall time')
        ],
        runs.map(({ cells: [title = '', ...rest], open }) => [
          open === null
            ? title
            : h(
                'button',
                {
                  class: 'wb-link',
                  'data-opens': [title, ...rest].join(' '),
                  click: open
                },
                title
              ),
          ...rest
        ])
      )
    );
  }

  private runs(): Run[] {
    const bands = this.bands?.newest(MOST_CELLS) ?? [];
    const receipts = [...this.stream.statements.receipts.values()];
    const seen = new Set(bands.map(band => this.receiptOf(band)));
    const ofBands = bands.map((band): Run => {
      const { endMs, startMs } = band;
      const wall =
        endMs === null
          ? trans.__('running')
          : duration(endMs - startMs) +
            (band.status === 'ok' ? '' : `, ${ending(band.status)}`);
      return {
        startMs: startMs - this.stream.store.offsetMs,
        cells: cells(
          band.title,
          band.notebook,
          band.executionCount,
          startMs,
          wall
        ),
        // asked when it is clicked: a receipt may have come by then
        open: this.opener(band) && (() => this.opener(band)?.())
      };
    });
    const ofKernels = receipts
      .filter(receipt => !seen.has(receipt))
      .map((receipt): Run => {
        const { cell } = receipt;
        return {
          startMs: cell.started_ms,
          cells: cells(
            cell.title,
            cell.notebook ?? trans.__('a kernel'),
            cell.execution_count,
            cell.started_ms,
            duration(receipt.wall_ms)
          ),
          open: () => this.actions.receipt(receipt)
        };
      });
    return [...ofBands, ...ofKernels]
      .sort((one, other) => other.startMs - one.startMs)
      .slice(0, MOST_CELLS);
  }

  /** The newest receipt of the same execution in the same kernel. */
  private receiptOf(band: Band): Receipt | undefined {
    return [...this.stream.statements.receipts.values()]
      .reverse()
      .find(
        ({ cell }) =>
          cell.kernel_id === band.kernelId &&
          cell.execution_count === band.executionCount &&
          (cell.cell_id ?? band.cellId) === band.cellId
      );
  }

  private written = '';
  private timer = 0;
}

function cells(
  title: string,
  notebook: string,
  executionCount: number | null,
  startMs: number,
  wall: string
): string[] {
  const count = executionCount === null ? '' : ` [${executionCount}]`;
  return [
    cellTitle(title),
    `${notebookName(notebook)}${count}`,
    when(startMs),
    wall
  ];
}
