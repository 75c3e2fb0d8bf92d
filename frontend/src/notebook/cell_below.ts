/** Runs a cell's source under the profiler, in one cell below it that is kept for that. */

import { CodeCell } from '@jupyterlab/cells';
import type {
  INotebookTracker,
  Notebook,
  NotebookPanel
} from '@jupyterlab/notebook';
import { clip } from '../core/format';
import type { Statements } from '../core/statements';
import { trans } from '../core/translation';
import { REPORT_MIME } from '../dashboard/reports/output';
import type { CellReport } from '../shapes/protocol';

export const MAGIC = '%%gpuprof';
/** In a cell's metadata: the id of the cell whose source it runs. */
const COPY_OF = 'warpbook_copy_of';
/** From the end of a cell to its report: the kernel hands it to the server. */
const REPORT_MS = 20_000;
const MOST_ERROR = 300;

/** A cell of an open notebook that an assistant asked about. */
export interface Target {
  readonly panel: NotebookPanel;
  readonly cell: CodeCell;
}

/** What can't be done, in words for a person. */
export class CannotRun extends Error {}

/**
 * The cell of a kernel's notebook, as far as it is open here. A copy stands for its
 * original.
 *
 * @param cellId - null is the cell that ran last
 */
export function targetOf(
  notebooks: INotebookTracker,
  kernelId: string,
  cellId: string | null
): Target | null {
  const panel = notebooks.find(
    ({ sessionContext }) => sessionContext.session?.kernel?.id === kernelId
  );
  const asked = panel && (cellId === null ? last : byId)(panel.content, cellId);
  if (panel === undefined || !asked) {
    return null;
  }
  const original = asked.model.getMetadata(COPY_OF) as unknown;
  const cell =
    typeof original === 'string' ? byId(panel.content, original) : asked;
  return cell === null ? null : { panel, cell };
}

/** A cell's source without the line that profiles it. */
export function plainSource(cell: CodeCell): string {
  const source = cell.model.sharedModel.getSource();
  return source.startsWith(MAGIC)
    ? source.slice(source.indexOf('\n') + 1 || source.length)
    : source;
}

/** Put other code into a cell; a first line that profiles it stays. */
export function replaceSource(cell: CodeCell, code: string): void {
  const { sharedModel } = cell.model;
  const source = sharedModel.getSource();
  const first = source.startsWith(MAGIC) ? `${source.split('\n', 1)[0]}\n` : '';
  sharedModel.setSource(first + code);
}

/**
 * Load warpbook into a notebook's kernel.
 *
 * @throws CannotRun where it is not installed there
 */
export async function loadExtension(panel: NotebookPanel): Promise<void> {
  const loaded = await panel.sessionContext.session?.kernel?.requestExecute({
    code: '%load_ext warpbook',
    silent: true,
    store_history: false
  }).done;
  if (loaded?.content.status !== 'ok') {
    throw new CannotRun(
      trans.__(
        'This notebook’s kernel has no warpbook: run "%pip install warpbook" in it.'
      )
    );
  }
}

/**
 * Run a cell's source below it with options of the magic, and give the report. The
 * kernel has warpbook.
 *
 * @param source - of the cell, as the person saw it
 * @throws CannotRun where there is none
 */
export async function profileBelow(
  { panel, cell }: Target,
  source: string,
  options: string,
  statements: Statements
): Promise<CellReport> {
  const first = `${MAGIC} ${options}`.trimEnd();
  const copy = copyBelow(panel, cell, `${first}\n${source}`);
  const failure = await run(copy, panel);
  const shown = outputOf(copy);
  const report =
    shown.reportId === null ? null : await reportOf(statements, shown.reportId);
  if (report === null) {
    throw new CannotRun(
      failure ||
        trans.__('The cell ran, and no report of it came. %1', shown.errors)
    );
  }
  return report;
}

/**
 * Run code in a new cell above another one.
 *
 * @returns why it failed; empty if it did not
 */
export async function runAbove(
  { panel, cell }: Target,
  source: string
): Promise<string> {
  return run(
    inserted(panel.content, placeOf(panel.content, cell), source),
    panel
  );
}

function copyBelow(
  { content }: NotebookPanel,
  cell: CodeCell,
  source: string
): CodeCell {
  const at = placeOf(content, cell) + 1;
  const below = content.widgets[at];
  if (
    below instanceof CodeCell &&
    below.model.getMetadata(COPY_OF) === cell.model.id
  ) {
    below.model.sharedModel.setSource(source);
    return below;
  }
  return inserted(content, at, source, { [COPY_OF]: cell.model.id });
}

function inserted(
  content: Notebook,
  at: number,
  source: string,
  metadata: Record<string, string> = {}
): CodeCell {
  content.model?.sharedModel.insertCell(at, {
    cell_type: 'code',
    source,
    metadata
  });
  const cell = content.widgets[at];
  if (!(cell instanceof CodeCell)) {
    throw new CannotRun(trans.__('The notebook takes no new cell.'));
  }
  return cell;
}

/** Run a cell where it is: what the person has selected stays as it is. */
async function run(cell: CodeCell, { sessionContext }: NotebookPanel) {
  const reply = await CodeCell.execute(cell, sessionContext);
  const said = reply?.content;
  return said?.status === 'error'
    ? clip(`${said.ename}: ${said.evalue}`, MOST_ERROR)
    : '';
}

/** What a cell shows: the id of its report, and what it wrote of errors. */
function outputOf(cell: CodeCell) {
  let reportId: string | null = null;
  let errors = '';
  for (const output of cell.model.sharedModel.getOutputs()) {
    if (output.output_type === 'stream' && output.name === 'stderr') {
      const text = output['text'] as string | string[];
      errors = clip([text].flat().join(''), MOST_ERROR);
    }
    const data = output['data'] as Record<string, unknown> | undefined;
    const report = data?.[REPORT_MIME] as { id?: unknown } | undefined;
    if (typeof report?.id === 'string') {
      reportId = report.id;
    }
  }
  return { reportId, errors };
}

/** The report comes through the server, after the output that names it. */
function reportOf(
  statements: Statements,
  id: string
): Promise<CellReport | null> {
  return new Promise(resolve => {
    const settle = (report: CellReport | null) => {
      window.clearTimeout(timer);
      stop();
      resolve(report);
    };
    const look = () => {
      const report = statements.reports.get(id);
      if (report !== undefined && report.status !== 'running') {
        settle(report);
      }
    };
    const timer = window.setTimeout(() => settle(null), REPORT_MS);
    const stop = statements.onChange(look);
    look();
  });
}

function byId(content: Notebook, id: string | null): CodeCell | null {
  return codeCells(content).find(({ model }) => model.id === id) ?? null;
}

function last(content: Notebook): CodeCell | null {
  const count = ({ model }: CodeCell) => model.executionCount ?? 0;
  return codeCells(content).reduce<CodeCell | null>(
    (best, cell) =>
      count(cell) > (best === null ? 0 : count(best)) ? cell : best,
    null
  );
}

function codeCells({ widgets }: Notebook): CodeCell[] {
  return widgets.filter(cell => cell instanceof CodeCell);
}

function placeOf({ widgets }: Notebook, cell: CodeCell): number {
  return widgets.indexOf(cell);
}
