/** Cells with a kernel in CUDA C++ get the colours of C++. */

import type { ICellModel } from '@jupyterlab/cells';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';

const MAGIC = '%%lab ';
const CPP = 'text/x-c++src';
const ENTRY = /\b__global__\b|^\s*\/\//m;

/** Follow every notebook that opens. */
export function colourSources(notebooks: INotebookTracker): void {
  notebooks.widgetAdded.connect((_, panel) => {
    void panel.context.ready.then(() => follow(panel));
  });
}

function follow(panel: NotebookPanel): void {
  const cells = panel.model?.cells;
  if (cells === undefined) {
    return;
  }
  const colourAll = () => [...cells].forEach(colour);
  cells.changed.connect(colourAll);
  colourAll();
}

function colour(cell: ICellModel): void {
  const look = () => {
    const source = cell.sharedModel.getSource();
    if (
      cell.type === 'code' &&
      source.startsWith(MAGIC) &&
      ENTRY.test(source) &&
      cell.mimeType !== CPP
    ) {
      cell.mimeType = CPP;
    }
  };
  if (!watched.has(cell)) {
    watched.add(cell);
    // the notebook sets the kernel's language once that is known
    cell.mimeTypeChanged.connect(look);
    cell.contentChanged.connect(look);
  }
  look();
}

const watched = new WeakSet<ICellModel>();
