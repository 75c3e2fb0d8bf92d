import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { INotebookTracker } from '@jupyterlab/notebook';
import { Machines } from '../src/notebook/machines';

/** What the other side of a comm has heard, and how it speaks and ends. */
class FakeComm {
  readonly sent: unknown[] = [];
  isDisposed = false;
  onMsg: (message: unknown) => void = () => undefined;
  onClose: () => void = () => undefined;

  send(content: unknown): void {
    this.sent.push(content);
  }
}

type Opened = (comm: FakeComm, message: object) => void;

/** A notebook with a kernel that says where it is. */
function notebook(path: string) {
  let opened: Opened = () => undefined;
  const statuses = new Set<(_: unknown, status: string) => void>();
  const old = new FakeComm();
  const kernel = {
    handleComms: true,
    registerCommTarget: (_: string, callback: Opened) => (opened = callback),
    requestCommInfo: () =>
      Promise.resolve({ content: { status: 'ok', comms: { old: {} } } }),
    hasComm: () => false,
    createComm: () => old
  };
  const nothing = { connect: () => undefined };
  const panel = {
    context: { path },
    disposed: nothing,
    sessionContext: {
      session: { kernel },
      kernelChanged: nothing,
      statusChanged: {
        connect: (heard: (_: unknown, status: string) => void) =>
          statuses.add(heard)
      }
    }
  };
  return {
    panel,
    old,
    says: (machine: unknown) => {
      const comm = new FakeComm();
      opened(comm, { content: { data: { machine } } });
      return comm;
    },
    becomes: (status: string) => statuses.forEach(heard => heard(null, status))
  };
}

function followed(...panels: object[]) {
  const tracker = {
    forEach: (each: (panel: object) => void) => panels.forEach(each),
    widgetAdded: { connect: () => undefined }
  };
  return new Machines(tracker as unknown as INotebookTracker, () =>
    Promise.resolve('here')
  );
}

const settled = () => new Promise(done => setTimeout(done));

test('a machine is shown once, by the kernel that lasts', async () => {
  const [one, two] = [notebook('a.ipynb'), notebook('b.ipynb')];
  const machines = followed(one.panel, two.panel);
  const first = one.says({ id: 'far', name: 'node-7' });
  two.says({ id: 'far', name: 'node-7' });
  two.says({ id: 'here', name: 'server' });
  await settled();
  const notebooks = () => machines.elsewhere.map(each => each.notebook);
  assert.deepEqual(notebooks(), ['a.ipynb']);
  // a kernel that can't be reached has not ended
  one.becomes('unknown');
  assert.deepEqual(notebooks(), ['a.ipynb']);
  first.onClose();
  assert.deepEqual(notebooks(), ['b.ipynb']);
  two.becomes('autorestarting');
  assert.deepEqual(notebooks(), []);
});

test('a page that comes later asks, and gets telemetry over the same comm', async () => {
  const one = notebook('a.ipynb');
  const machines = followed(one.panel);
  await settled();
  assert.deepEqual(one.old.sent, [{ view: 'who' }]);
  one.old.onMsg({ content: { data: { machine: { id: 'far', name: 'x' } } } });
  await settled();
  // the kernel answers another page, and all hear it
  const before = machines.elsewhere[0];
  one.old.onMsg({ content: { data: { machine: { id: 'far', name: 'x' } } } });
  await settled();
  assert.equal(machines.elsewhere[0], before);
  const heard: unknown[] = [];
  machines.elsewhere[0]?.comm.on('msg:custom', each => void heard.push(each));
  one.old.onMsg({ content: { data: { telemetry: '{}' } } });
  assert.deepEqual(heard, [{ telemetry: '{}' }]);
});

test('what a kernel says is bounded, and nonsense names no machine', async () => {
  const one = notebook('a.ipynb');
  const machines = followed(one.panel);
  const names = () => machines.elsewhere.map(each => each.name);
  for (const nonsense of [null, 7, {}, { id: 1, name: 'x' }, { id: 'far' }]) {
    one.says(nonsense);
  }
  await settled();
  assert.deepEqual(names(), []);
  one.says({ id: 'far', name: 'n'.repeat(5_000) });
  await settled();
  assert.deepEqual(
    names().map(name => name.length <= 63),
    [true]
  );
  for (let index = 0; index < 50; index += 1) {
    one.says({ id: `far ${index}`, name: 'x' });
  }
  await settled();
  assert.equal(names().length, 8);
});
