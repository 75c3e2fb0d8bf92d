/** The person's settings, with the defaults of schema/plugin.json until they load. */

import type { ISettingRegistry } from '@jupyterlab/settingregistry';

const NOTIFY = ['all', 'faults', 'none'] as const;
/** Which alerts are shown as notifications. */
export type Notify = (typeof NOTIFY)[number];

export class Settings {
  rateHz = 10;
  windowSeconds = 60;
  panel = true;
  statusBar = true;
  notify: Notify = 'all';
  /** From how many seconds on a cell is long; 0 is never. */
  longCellSeconds = 60;

  /** Follow the registry; without one (or without a schema) the defaults hold. */
  async load(registry: ISettingRegistry, id: string): Promise<void> {
    const loaded = await registry.load(id);
    const read = () => {
      // the schema bounds what a person writes, but not what an administrator's
      // overrides.json says
      const value = (name: string) => loaded.get(name).composite;
      this.rateHz = bounded(value('rate_hz'), 1, 10, 10);
      this.windowSeconds = bounded(value('window_s'), 30, 2_592_000, 60);
      this.panel = value('panel') !== false;
      this.statusBar = value('status_bar') !== false;
      this.notify = NOTIFY.find(choice => choice === value('notify')) ?? 'all';
      this.longCellSeconds = bounded(
        value('notify_long_cell_s'),
        0,
        86_400,
        60
      );
      this.listeners.forEach(listener => listener());
    };
    loaded.changed.connect(read);
    read();
  }

  /** Be told when a setting changes; returns how to stop. */
  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  private readonly listeners = new Set<() => void>();
}

function bounded(
  value: unknown,
  least: number,
  most: number,
  otherwise: number
): number {
  return typeof value === 'number' && Number.isFinite(value)
    ? Math.min(most, Math.max(least, value))
    : otherwise;
}
