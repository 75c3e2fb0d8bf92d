/** Opens the browser of labs: command, palette, restoring. */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import {
  ICommandPalette,
  MainAreaWidget,
  Notification,
  showErrorMessage,
  WidgetTracker
} from '@jupyterlab/apputils';
import type { ICodeCellModel } from '@jupyterlab/cells';
import type { Notebook } from '@jupyterlab/notebook';
import { INotebookTracker, NotebookActions } from '@jupyterlab/notebook';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { gpuIcon } from '../core/icon';
import { ASK_FOR_LAB } from '../labs/words';
import { LabBrowser } from '../labs/browser';
import { colourSources } from '../labs/colours';
import { ITranslator } from '@jupyterlab/translation';
import { LabsServer } from '../labs/server';
import { unrunLabs, unrunWords } from '../labs/unrun';
import { CATEGORY, OPEN_LABS } from './tokens';
import { setTranslator, trans } from '../core/translation';

const ID = 'warpbook-labs';
const UNRUN_SHOWN_MS = 10_000;

export const labsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'warpbook:labs',
  description: 'Labs by track, and how far one is.',
  autoStart: true,
  optional: [
    ICommandPalette,
    ILayoutRestorer,
    ILabShell,
    INotebookTracker,
    ITranslator
  ],
  activate: (
    app: JupyterFrontEnd,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null,
    labShell: ILabShell | null,
    notebooks: INotebookTracker | null,
    translator: ITranslator | null
  ) => {
    setTranslator(translator);
    const tracker = new WidgetTracker<MainAreaWidget<LabBrowser>>({
      namespace: ID
    });
    const server = new LabsServer(app.serviceManager.serverSettings);
    app.commands.addCommand(OPEN_LABS, {
      label: trans.__('Learn: GPU Labs'),
      caption: trans.__(
        'Exercises on kernels and memory, checked without a GPU too, and a quiz that says where to begin'
      ),
      icon: gpuIcon,
      execute: async args => {
        const present = tracker.currentWidget;
        if (present !== null) {
          app.shell.activateById(present.id);
          askQuiz(present.content, args);
          return present;
        }
        const content = new LabBrowser(server, path =>
          app.commands.execute('docmanager:open', { path })
        );
        const widget = new MainAreaWidget({ content });
        widget.id = ID;
        widget.toolbar.hide();
        widget.title.label = trans.__('GPU labs');
        widget.title.icon = gpuIcon;
        widget.title.closable = true;
        // only JupyterLab has room for a second document in its main area
        app.shell.add(widget, labShell === null ? 'right' : 'main');
        app.shell.activateById(widget.id);
        askQuiz(content, args);
        await tracker.add(widget);
        return widget;
      }
    });
    app.shell.node.addEventListener(ASK_FOR_LAB, event => {
      if (event instanceof CustomEvent && typeof event.detail === 'string') {
        server
          .open(encodeURIComponent(event.detail))
          .then(({ path }) => app.commands.execute('docmanager:open', { path }))
          .catch((problem: unknown) =>
            showErrorMessage(
              trans.__('The lab can’t be opened'),
              String(problem)
            )
          );
      }
    });
    palette?.addItem({ command: OPEN_LABS, category: CATEGORY });
    if (restorer !== null) {
      void restorer.restore(tracker, {
        command: OPEN_LABS,
        name: () => 'labs'
      });
    }
    if (notebooks !== null) {
      colourSources(notebooks);
      NotebookActions.executed.connect((_, { notebook, cell }) =>
        warnOfUnrun(notebook, cell.model.sharedModel.getSource())
      );
    }
  }
};

function askQuiz(
  browser: LabBrowser,
  { quiz }: ReadonlyPartialJSONObject
): void {
  if (typeof quiz === 'string') {
    browser.ask(quiz);
  }
}

/** Say of code that has graded a file that the file's cell is newer. */
function warnOfUnrun(notebook: Notebook, code: string): void {
  const cells = [...(notebook.model?.cells ?? [])]
    .filter(cell => cell.type === 'code')
    .map(cell => ({
      source: cell.sharedModel.getSource(),
      isDirty: (cell as ICodeCellModel).isDirty
    }));
  const labs = unrunLabs(code, cells);
  if (labs.length > 0) {
    Notification.warning(unrunWords(labs), { autoClose: UNRUN_SHOWN_MS });
  }
}
