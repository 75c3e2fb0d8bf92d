/** How a person has arranged the dashboard: which GPU, which lines, which order. */

import type { ChartSpec } from '../../chart/chart';

/** Where a workspace keeps it; null where nothing is kept. */
export interface Keeper {
  load(): Promise<unknown>;
  save(arrangement: SavedArrangement): Promise<unknown>;
}

/** As it is written into the workspace. */
export interface SavedArrangement {
  readonly gpu: string | null;
  /** By chart, the metrics whose lines are hidden. */
  readonly hidden: Readonly<Record<string, readonly string[]>>;
  /** By grid, the titles of its charts from first to last. */
  readonly order: Readonly<Record<string, readonly string[]>>;
}

/** Workspaces can be imported from files: what is longer is not ours. */
const MOST_ENTRIES = 100;
const LONGEST_NAME = 200;

export class Arrangement {
  private gpu: string | null = null;
  private readonly hidden = new Map<string, readonly string[]>();
  private readonly order = new Map<string, readonly string[]>();

  constructor(private readonly keeper: Keeper | null = null) {}

  /** Take what the workspace has kept; what can't be read is as if not there. */
  async load(): Promise<void> {
    let kept: unknown = null;
    try {
      kept = await this.keeper?.load();
    } catch {
      // a workspace that can't be read has nothing to say
    }
    const { gpu, hidden, order } = (kept ?? {}) as Partial<
      Record<keyof SavedArrangement, unknown>
    >;
    this.gpu = isName(gpu) ? gpu : null;
    entries(hidden).forEach(([chart, names]) => this.hidden.set(chart, names));
    entries(order).forEach(([grid, names]) => this.order.set(grid, names));
  }

  /** The id of the GPU whose charts are shown; null if none was chosen. */
  get chosenGpu(): string | null {
    return this.gpu;
  }

  chooseGpu(id: string): void {
    this.gpu = id;
    this.save();
  }

  isHidden(chart: string, metric: string): boolean {
    return this.hidden.get(chart)?.includes(metric) ?? false;
  }

  /** Hide a line of a chart, or show it again. */
  toggle(chart: string, metric: string): void {
    const before = this.hidden.get(chart) ?? [];
    const after = before.includes(metric)
      ? before.filter(name => name !== metric)
      : [...before, metric];
    if (after.length === 0) {
      this.hidden.delete(chart);
    } else {
      this.hidden.set(chart, after);
    }
    this.save();
  }

  /** Put charts in the person's order; those that it does not name come last. */
  inOrder(grid: string, specs: readonly ChartSpec[]): readonly ChartSpec[] {
    const titles = this.order.get(grid);
    if (titles === undefined) {
      return specs;
    }
    const place = ({ title }: ChartSpec) => {
      const at = titles.indexOf(title);
      return at < 0 ? titles.length : at;
    };
    return [...specs].sort((one, other) => place(one) - place(other));
  }

  /** Keep the order in which a grid's charts now stand. */
  reorder(grid: string, titles: readonly string[]): void {
    // charts that this device does not have keep their place at the end
    const others = (this.order.get(grid) ?? []).filter(
      title => !titles.includes(title)
    );
    this.order.set(grid, [...titles, ...others]);
    this.save();
  }

  private save(): void {
    void this.keeper
      ?.save({
        gpu: this.gpu,
        hidden: Object.fromEntries(this.hidden),
        order: Object.fromEntries(this.order)
      })
      .catch(() => {
        // the arrangement holds until the page is left
      });
  }
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value.length <= LONGEST_NAME;
}

/** The well-formed entries of what should be lists of names by name. */
function entries(value: unknown): [string, readonly string[]][] {
  if (typeof value !== 'object' || value === null) {
    return [];
  }
  return Object.entries(value)
    .slice(0, MOST_ENTRIES)
    .flatMap(([name, names]): [string, readonly string[]][] =>
      isName(name) && Array.isArray(names)
        ? [[name, names.slice(0, MOST_ENTRIES).filter(isName)]]
        : []
    );
}
