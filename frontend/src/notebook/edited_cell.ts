/** Places edited cells below the one that was profiled, and runs nothing. */

import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { h } from '../core/dom';
import { clip } from '../core/format';
import { trans } from '../core/translation';
import type { CellReport } from '../shapes/protocol';

/** An event that bubbles to the shell; its detail is an `EditedCell`. */
export const PLACE_CELL = 'warpbook:place-cell';

/** Characters of a cell; sources of edits are shorter. */
const MOST_SOURCE = 40_000;

export class EditedCell {
  constructor(
    private readonly kernelId: string,
    private readonly cellId: string,
    private readonly sources: readonly string[]
  ) {}

  /** Insert them below the profiled cell; returns whether that is open. */
  place(notebooks: INotebookTracker): boolean {
    const isMine = ({ sessionContext, content }: NotebookPanel) =>
      sessionContext.session?.kernel?.id === this.kernelId &&
      content.widgets.some(({ model }) => model.id === this.cellId);
    const panel = notebooks.find(isMine);
    const model = panel?.content.model;
    if (panel === undefined || model === undefined || model === null) {
      return false;
    }
    const { widgets } = panel.content;
    const at = widgets.findIndex(cell => cell.model.id === this.cellId) + 1;
    model.sharedModel.insertCells(
      at,
      this.sources.map(source => ({
        cell_type: 'code',
        source,
        metadata: {}
      }))
    );
    panel.content.activeCellIndex = at;
    return true;
  }
}

/** The button for one change of a report; none where it has no edit. */
export function changeButtons(
  report: CellReport,
  index: number
): HTMLElement[] {
  const change = report.profile.changes[index];
  if (change === undefined || change.code === '') {
    return [];
  }
  // how the cell was profiled is no part of it
  const plain = change.code.replace(/^%%gpuprof.*\r?\n/, '');
  return buttons(report, [change.name], [plain]);
}

/** The button for the cell that `--apply` has edited; none where it has not. */
export function editedButtons(report: CellReport): HTMLElement[] {
  const { edited } = report.profile;
  if (edited === null || edited.code === '') {
    return [];
  }
  const { once, code } = edited;
  return buttons(report, edited.changes, once === '' ? [code] : [once, code]);
}

/** What was measured, or else what each change of a report would make. */
export function applyButtons(report: CellReport): HTMLElement[] {
  const { changes } = report.profile;
  const measured = editedButtons(report);
  return measured.length > 0
    ? measured
    : changes.flatMap((_, index) => changeButtons(report, index));
}

function buttons(
  { cell_id: cellId, kernel_id: kernelId }: CellReport,
  names: readonly string[],
  sources: readonly string[]
): HTMLElement[] {
  if (cellId === null || sources.join('').length > MOST_SOURCE) {
    return [];
  }
  const detail = new EditedCell(kernelId, cellId, sources);
  const ask = ({ currentTarget }: Event) =>
    currentTarget?.dispatchEvent(
      new CustomEvent(PLACE_CELL, { bubbles: true, detail })
    );
  const label = trans.__('Apply %1', clip(names.join(', '), 80));
  return [h('button', { class: 'wb-button', click: ask }, label)];
}
