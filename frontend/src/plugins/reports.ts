/** Reports in the main area: trace files as documents, and cells' reports as tabs. */

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import {
  ICommandPalette,
  MainAreaWidget,
  Notification,
  WidgetTracker
} from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import { IDocumentManager } from '@jupyterlab/docmanager';
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import {
  ABCWidgetFactory,
  DocumentWidget,
  TextModelFactory
} from '@jupyterlab/docregistry';
import { FileDialog } from '@jupyterlab/filebrowser';
import type { Contents } from '@jupyterlab/services';
import type { Widget } from '@lumino/widgets';
import { whose } from '../dashboard/reports/whose';
import { ReportTab } from '../dashboard/reports/report_tab';
import { h } from '../core/dom';
import { clip } from '../core/format';
import { gpuIcon } from '../core/icon';
import type { CellReport } from '../shapes/protocol';
import { Records } from '../server/records';
import type { Stream } from '../core/page_stream';
import { CATEGORY, IWarpbook, OPEN_REPORT, TRACE_FACTORY } from './tokens';
import { TraceFiles } from '../server/traces';
import { trans } from '../core/translation';

const FILE_TYPE = 'warpbook-trace';
const MODEL = 'warpbook-trace';
/** What torch.profiler writes; any other `.json` keeps its own viewer first. */
const EXTENSIONS = ['.pt.trace.json', '.json.gz'];

type Document = DocumentWidget<ReportTab>;

export const reportsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'warpbook:reports',
  description: 'Reports of trace files and of cells, in the main area.',
  autoStart: true,
  requires: [IWarpbook],
  optional: [IDocumentManager, ILayoutRestorer, ILabShell, ICommandPalette],
  activate: (
    app: JupyterFrontEnd,
    { stream }: IWarpbook,
    documents: IDocumentManager | null,
    restorer: ILayoutRestorer | null,
    labShell: ILabShell | null,
    palette: ICommandPalette | null
  ) => {
    const traces = new TraceFiles(stream.connection);
    const chooseFile =
      documents === null
        ? null
        : (folder = '') => chosenFile(documents, traces, folder);
    openFiles(app, stream, traces, chooseFile, restorer);
    openCells(app, stream, traces, chooseFile, restorer, labShell);
    palette?.addItem({
      command: OPEN_REPORT,
      category: CATEGORY,
      args: { isPalette: true }
    });
  }
};

type Chooser = ((folder?: string) => Promise<CellReport | null>) | null;

/** Let the file browser open trace files. */
function openFiles(
  app: JupyterFrontEnd,
  stream: Stream,
  traces: TraceFiles,
  chooseFile: Chooser,
  restorer: ILayoutRestorer | null
): void {
  const { contents } = app.serviceManager;
  const tracker = new WidgetTracker<Document>({ namespace: 'warpbook-traces' });
  const factory = new TraceFactory(
    {
      name: TRACE_FACTORY,
      modelName: MODEL,
      fileTypes: [FILE_TYPE, 'json'],
      defaultFor: [FILE_TYPE],
      readOnly: true
    },
    context => {
      const { path } = context;
      const asText = () =>
        void app.commands.execute('docmanager:open', {
          path: context.path,
          factory: 'Editor'
        });
      return new ReportTab(stream, {
        load: waiting =>
          traces.report(contents.localPath(context.path), waiting),
        instead: () =>
          path.endsWith('.gz')
            ? []
            : [
                h(
                  'button',
                  { class: 'wb-button', click: asText },
                  trans.__('Open as text')
                )
              ],
        chooseFile:
          chooseFile && (() => chooseFile(PathExt.dirname(context.path))),
        get files() {
          return traces.known;
        },
        download: () => context.download()
      });
    }
  );
  app.docRegistry.addFileType({
    name: FILE_TYPE,
    displayName: trans.__('Profiler trace'),
    extensions: EXTENSIONS,
    mimeTypes: ['application/json'],
    fileFormat: null,
    icon: gpuIcon
  });
  app.docRegistry.addModelFactory(new TraceModelFactory());
  // its types do without exactOptionalPropertyTypes
  app.docRegistry.addWidgetFactory(factory as DocumentRegistry.WidgetFactory);
  factory.widgetCreated.connect((_, widget) => {
    returnFocus(app, widget);
    void tracker.add(widget);
  });
  if (restorer !== null) {
    void restorer.restore(tracker, {
      command: 'docmanager:open',
      args: ({ context }) => ({ path: context.path, factory: TRACE_FACTORY }),
      name: ({ context }) => context.path
    });
  }
}

/** Open reports of cells in tabs, each once. */
function openCells(
  app: JupyterFrontEnd,
  stream: Stream,
  traces: TraceFiles,
  chooseFile: Chooser,
  restorer: ILayoutRestorer | null,
  labShell: ILabShell | null
): void {
  const { statements } = stream;
  const records = new Records(stream.connection);
  const tracker = new WidgetTracker<MainAreaWidget<ReportTab>>({
    namespace: 'warpbook-reports'
  });
  const ids = new WeakMap<object, string>();
  const newest = () =>
    [...statements.reports.values()]
      .sort((one, other) => one.started_ms - other.started_ms)
      .at(-1);
  app.commands.addCommand(OPEN_REPORT, {
    label: args =>
      args['isPalette']
        ? trans.__('Open the Newest Report')
        : trans.__('Open a Report in a Tab'),
    execute: async args => {
      const id = args['id'] ?? newest()?.id;
      if (typeof id !== 'string') {
        Notification.info(trans.__('No cell has been profiled yet.'));
        return null;
      }
      const present = tracker.find(widget => ids.get(widget) === id);
      if (present !== undefined) {
        app.shell.activateById(present.id);
        return present;
      }
      const content = new ReportTab(stream, {
        load: async () => {
          const report =
            statements.reports.get(id) ?? (await records.report(id));
          widget.title.label = clip(whose(report), 40);
          widget.title.caption = clip(report.title, 200);
          return report;
        },
        instead: () => [],
        chooseFile,
        get files() {
          return traces.known;
        },
        download: null
      });
      const widget = new MainAreaWidget({ content });
      ids.set(widget, id);
      returnFocus(app, widget);
      widget.id = `warpbook-report-${id}`;
      widget.toolbar.hide();
      widget.title.label = 'Report';
      widget.title.icon = gpuIcon;
      widget.title.closable = true;
      // only JupyterLab has room for a second document in its main area
      app.shell.add(widget, labShell === null ? 'right' : 'main');
      app.shell.activateById(widget.id);
      void content.load('Report');
      await tracker.add(widget);
      return widget;
    }
  });
  if (restorer !== null) {
    void restorer.restore(tracker, {
      command: OPEN_REPORT,
      args: widget => ({ id: ids.get(widget) ?? '' }),
      name: widget => ids.get(widget) ?? ''
    });
  }
}

/** When a report is closed that has the focus, what had it before has it again. */
function returnFocus({ shell }: JupyterFrontEnd, report: Widget): void {
  const { currentWidget } = shell;
  const opener = document.activeElement as HTMLElement | null;
  report.disposed.connect(() => {
    if (report.node.contains(document.activeElement)) {
      if (currentWidget?.isDisposed === false) {
        shell.activateById(currentWidget.id);
      }
      opener?.focus();
    }
  });
}

/** Let a person choose a trace file, first of a folder; null if they choose none. */
async function chosenFile(
  manager: IDocumentManager,
  traces: TraceFiles,
  folder: string
): Promise<CellReport | null> {
  const { value } = await FileDialog.getOpenFiles({
    manager,
    defaultPath: folder,
    title: trans.__('Compare with a trace file'),
    filter: ({ type, name }) =>
      type === 'directory' || /\.json(\.gz)?$/i.test(name) ? {} : null
  });
  const chosen = value?.find(({ type }) => type === 'file');
  return chosen === undefined
    ? null
    : traces.report(manager.services.contents.localPath(chosen.path));
}

/** The server reads the file: its content never comes to the page. */
class TraceModelFactory extends TextModelFactory {
  override get name(): string {
    return MODEL;
  }

  override get fileFormat(): Contents.FileFormat {
    return null;
  }

  override get collaborative(): boolean {
    return false;
  }
}

class TraceFactory extends ABCWidgetFactory<Document> {
  constructor(
    options: DocumentRegistry.IWidgetFactoryOptions<Document>,
    private readonly tab: (context: DocumentRegistry.Context) => ReportTab
  ) {
    super(options);
  }

  protected override createNewWidget(
    context: DocumentRegistry.Context
  ): Document {
    const content = this.tab(context);
    const widget = new DocumentWidget({ content, context });
    widget.toolbar.hide();
    widget.title.icon = gpuIcon;
    const read = () => {
      if (!widget.isDisposed) {
        void content.load(PathExt.basename(context.path));
      }
    };
    let savedAt: string | undefined;
    // "Reload from Disk" tells when a program has written it anew
    context.fileChanged.connect((_, { last_modified: newest }) => {
      if (context.isReady && newest !== savedAt) {
        read();
      }
      savedAt = newest;
    });
    void context.ready.then(read);
    return widget;
  }
}
