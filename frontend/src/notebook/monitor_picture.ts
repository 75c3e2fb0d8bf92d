/**
 * A widget of ours in a saved notebook, a Monitor or the memory calculator, that is gone:
 * what it showed, in the place of "model not found".
 */

import type { NotebookPanel } from '@jupyterlab/notebook';
import { CodeCell } from '@jupyterlab/cells';
import { MimeModel } from '@jupyterlab/rendermime';
import { h } from '../core/dom';

const MIME = 'application/vnd.warpbook.monitor+json';
/** What Jupyter widgets write where a model is not there. */
const NOT_FOUND = /model not found/i;
const LONGEST_ERROR = 200;

/** Watch a notebook's outputs; returns how to stop. */
export function showPictures(panel: NotebookPanel): () => void {
  const observer = new MutationObserver(changes => {
    for (const { target } of changes) {
      if (target instanceof HTMLElement && isNotFound(target)) {
        void showPicture(panel, target);
      }
    }
  });
  observer.observe(panel.content.node, { childList: true, subtree: true });
  return () => observer.disconnect();
}

/** Whether Jupyter widgets say here that there is none; of few words, so cheap. */
function isNotFound(node: HTMLElement): boolean {
  const { childNodes, textContent } = node;
  return (
    childNodes.length === 1 &&
    childNodes[0] instanceof Text &&
    textContent.length < LONGEST_ERROR &&
    NOT_FOUND.test(textContent) &&
    node.closest('.jp-OutputArea-output') !== null
  );
}

async function showPicture(
  panel: NotebookPanel,
  node: HTMLElement
): Promise<void> {
  const data = dataOf(panel, node);
  const html = data?.['text/html'];
  if (data === null || data[MIME] === undefined || html === undefined) {
    return;
  }
  // as untrusted HTML: Jupyter takes out what could run
  const renderer = panel.content.rendermime.createRenderer('text/html');
  await renderer.renderModel(
    new MimeModel({ data: { 'text/html': html }, trusted: false })
  );
  node.replaceChildren(
    renderer.node,
    h('p', {}, 'Run the cell again to bring its view back.')
  );
}

/** The MIME bundle of the output that a node is in. */
function dataOf(panel: NotebookPanel, node: HTMLElement) {
  const cell = panel.content.widgets.find(widget => widget.node.contains(node));
  if (!(cell instanceof CodeCell)) {
    return null;
  }
  const { outputArea } = cell;
  const at = outputArea.widgets.findIndex(widget => widget.node.contains(node));
  return at < 0 || at >= outputArea.model.length
    ? null
    : outputArea.model.get(at).data;
}
