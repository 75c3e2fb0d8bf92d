import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { INotebookTracker } from '@jupyterlab/notebook';
import { Bands, titleOf } from '../src/notebook/bands';

type Slot = (sender: unknown, message: object) => void;

/** A notebook of which only the kernel's messages are heard. */
function notebook() {
  let hear: Slot = () => undefined;
  const silent = { connect: () => true };
  const panel = {
    sessionContext: {
      iopubMessage: { connect: (slot: Slot) => (hear = slot) },
      statusChanged: silent
    },
    context: { path: 'a/b.ipynb' },
    content: { widgets: [] },
    disposed: silent
  };
  const tracker = {
    forEach: (follow: (tracked: object) => void) => follow(panel),
    widgetAdded: silent
  };
  const bands = new Bands(tracker as unknown as INotebookTracker);
  const say = (type: string, content: object) =>
    hear(null, {
      header: { msg_type: type },
      parent_header: { msg_id: 'm' },
      content
    });
  return { bands, say };
}

test('a band says how its cell ended; who interrupts makes no error', () => {
  for (const [ename, status] of [
    ['', /s$/],
    ['ValueError', /, error/],
    ['KeyboardInterrupt', /, interrupted/]
  ] as const) {
    const { bands, say } = notebook();
    say('execute_input', { execution_count: 3, code: '\nx = 1\ny' });
    assert.match(bands.marks(0, Infinity, 0)[0]?.label ?? '', /, running/);
    if (ename) {
      say('error', { ename });
    }
    say('status', { execution_state: 'idle' });
    const [mark] = bands.marks(0, Infinity, 0);
    const ended = (mark?.label ?? '').replace(', from another client', '');
    assert.match(ended, /^b\.ipynb \[3\]/);
    assert.match(ended, status);
  }
});

test('a cell is named by its first line that says something', () => {
  for (const [code, title] of [
    ['\n# data\nimport time\nfrom a import b\n\nfit(model)\n', 'fit(model)'],
    ['%%gpuprof\ntry:\n    slow()\nexcept E:\n    pass', 'slow()'],
    ['with open(p) as f:\n    text = f.read()', 'text = f.read()'],
    ['with open(p) as f: load(f)', 'with open(p) as f: load(f)'],
    ['!pip list\nimportant = 1', 'important = 1'],
    ['\nimport time\nimport os', 'import time'],
    ['rows = []\nfor row in x:\n    y = f(row)', 'y = f(row)'],
    ['try:\n    import torch\nexcept E:\n    t = analyze(p)', 't = analyze(p)'],
    ['%gpu', '%gpu'],
    ['', '']
  ] as const) {
    assert.equal(titleOf(code), title);
  }
});
