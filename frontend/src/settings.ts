/** The person's settings, with the defaults of schema/plugin.json until they load. */

import type { ISettingRegistry } from '@jupyterlab/settingregistry';

export class Settings {
  rateHz = 10;
  windowSeconds = 60;
  statusBar = true;

  /** Follow the registry; without one (or without a schema) the defaults hold. */
  async load(registry: ISettingRegistry, id: string): Promise<void> {
    const loaded = await registry.load(id);
    const read = () => {
      // the schema bounds the values, whoever wrote them
      this.rateHz = loaded.get('rate_hz').composite as number;
      this.windowSeconds = loaded.get('window_s').composite as number;
      this.statusBar = loaded.get('status_bar').composite as boolean;
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
