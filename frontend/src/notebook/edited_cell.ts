/** Leads to lines of a profiled cell, and places edited ones below it; runs nothing. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { h } from '../core/dom';
import { clip } from '../core/format';
import { trans } from '../core/translation';
import type { CellReport } from '../shapes/protocol';

/** An event that bubbles to the shell; its detail is an `EditedCell`. */
export const PLACE_CELL = 'warpbook:place-cell';

/** As it; its detail is a `CellLine`. */
export const SHOW_LINE = 'warpbook:show-line';

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
    const panel = panelOf(notebooks, this.kernelId, this.cellId);
    const model = panel?.content.model;
    if (panel === undefined || model === undefined || model === null) {
      return false;
    }
    const at = placeOf(panel, this.cellId) + 1;
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

export class CellLine {
  constructor(
    private readonly kernelId: string,
    private readonly cellId: string,
    private readonly line: number
  ) {}

  /** Put the cursor on it; returns whether the notebook is open. */
  show(notebooks: INotebookTracker, shell: JupyterFrontEnd.IShell): boolean {
    const panel = panelOf(notebooks, this.kernelId, this.cellId);
    if (panel === undefined) {
      return false;
    }
    shell.activateById(panel.id);
    const { content } = panel;
    content.activeCellIndex = placeOf(panel, this.cellId);
    const { editor } = content.activeCell ?? {};
    // the cell may have been edited since
    const last = (editor?.lineCount ?? 1) - 1;
    editor?.setCursorPosition({
      line: Math.min(Math.max(this.line - 1, 0), last),
      column: 0
    });
    content.mode = 'edit';
    editor?.focus();
    return true;
  }
}

/** The buttons for one change of a report: its line in the cell, and its edit. */
export function changeButtons(
  report: CellReport,
  index: number
): HTMLElement[] {
  const change = report.profile.changes[index];
  if (change === undefined) {
    return [];
  }
  const { cell_id: cellId, kernel_id: kernelId } = report;
  const { name, line, code } = change;
  const shown =
    line === null || cellId === null
      ? []
      : [
          button(
            trans.__('Line %1: %2', line, clip(name, 40)),
            SHOW_LINE,
            new CellLine(kernelId, cellId, line)
          )
        ];
  // how the cell was profiled is no part of it
  const plain = code.replace(/^%%gpuprof.*\r?\n/, '');
  return [...shown, ...(code === '' ? [] : buttons(report, [name], [plain]))];
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
  const label = trans.__('Apply %1', clip(names.join(', '), 80));
  return [button(label, PLACE_CELL, new EditedCell(kernelId, cellId, sources))];
}

function button(label: string, event: string, detail: object): HTMLElement {
  const ask = ({ currentTarget }: Event) =>
    currentTarget?.dispatchEvent(
      new CustomEvent(event, { bubbles: true, detail })
    );
  return h('button', { class: 'wb-button', click: ask }, label);
}

function panelOf(
  notebooks: INotebookTracker,
  kernelId: string,
  cellId: string
): NotebookPanel | undefined {
  return notebooks.find(
    panel =>
      panel.sessionContext.session?.kernel?.id === kernelId &&
      placeOf(panel, cellId) >= 0
  );
}

function placeOf({ content }: NotebookPanel, cellId: string): number {
  return content.widgets.findIndex(({ model }) => model.id === cellId);
}
