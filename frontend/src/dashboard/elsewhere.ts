/** The dashboard's part for GPUs of machines where kernels run, but not the server. */

import { notebookName } from '../notebook/bands';
import { h } from '../core/dom';
import type { Machines, RemoteMachine } from '../notebook/machines';
import { Store } from '../core/store';
import { trans } from '../core/translation';
import { KernelConnection } from '../widget/kernel';
import type { Options } from '../widget/view';
import { Monitor } from '../widget/view';

const WINDOW_S = 60;
const HEIGHT = 120;
const SHOWN: Options = {
  get: name => ({ window_s: WINDOW_S, height: HEIGHT })[name] ?? null,
  on: () => undefined,
  off: () => undefined
};

interface Section {
  readonly machine: RemoteMachine;
  readonly node: HTMLElement;
  readonly monitor: Monitor;
}

export class Elsewhere {
  readonly node = h('div', { class: 'wb-elsewhere' });

  constructor(private readonly machines: Machines) {
    this.stop = machines.onChange(() => this.update());
    this.update();
  }

  dispose(): void {
    this.stop();
    this.sections.splice(0).forEach(section => this.remove(section));
  }

  private update(): void {
    const now = this.machines.elsewhere;
    for (const section of [...this.sections]) {
      if (!now.includes(section.machine)) {
        this.sections.splice(this.sections.indexOf(section), 1);
        this.remove(section);
      }
    }
    for (const machine of now) {
      if (this.sections.every(section => section.machine !== machine)) {
        this.add(machine);
      }
    }
  }

  private add(machine: RemoteMachine): void {
    const connection = new KernelConnection(machine.comm);
    const store = new Store();
    connection.listen(store);
    const monitor = new Monitor(SHOWN, {
      connection,
      store,
      reader: 'kernel',
      note: ''
    });
    const heading = trans.__(
      'GPUs of %1, where the kernel of %2 runs',
      machine.name,
      notebookName(machine.notebook)
    );
    const node = h(
      'section',
      { class: 'wb-section', 'aria-label': heading },
      h('h3', {}, heading),
      monitor.node
    );
    this.sections.push({ machine, node, monitor });
    this.node.append(node);
  }

  private remove({ node, monitor }: Section): void {
    monitor.dispose();
    node.remove();
  }

  private readonly sections: Section[] = [];
  private readonly stop: () => void;
}
