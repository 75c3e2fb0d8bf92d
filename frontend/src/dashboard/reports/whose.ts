/** The name of a report's cell or file, the same wherever it is named. */

import { notebookName } from '../../notebook/bands';
import type { CellReport } from '../../shapes/protocol';

/** Name the cell or the file of a report: "train.ipynb [7]". */
export function whose(report: CellReport): string {
  const { notebook, execution_count: count, file } = report;
  if (typeof file === 'string') {
    return notebookName(file);
  }
  const name = notebook === null ? 'a kernel' : notebookName(notebook);
  return count === null ? name : `${name} [${count}]`;
}
