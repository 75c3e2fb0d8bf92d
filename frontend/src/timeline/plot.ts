/** The Bokeh figure of a timeline: what the page reads of it and writes into it. */

import type { Figure } from '../bokeh';
import type { Columns } from './bars';
import type { Part } from './reach';

/** The little of BokehJS's models that is used here. */
interface Model {
  readonly properties: Readonly<Record<string, unknown>>;
  setv(values: Readonly<Record<string, unknown>>): void;
  on_change(properties: readonly unknown[], listener: () => void): void;
}

interface Range extends Model {
  readonly start: number;
  readonly end: number;
}

interface PlotModel extends Model {
  readonly x_range: Range;
  readonly inner_width?: number;
  readonly document: { get_model_by_name(name: string): Model | null };
  on_event(name: string, listener: (event: Geometry) => void): void;
}

interface Geometry {
  readonly final?: boolean;
  readonly geometry?: {
    readonly type: string;
    readonly x0?: number;
    readonly x1?: number;
  };
}

const NS_PER_MS = 1e6;

export class TimelinePlot {
  /**
   * @param figure - drawn by Bokeh from the server's description
   * @param moved - another part is seen
   * @param selected - a person has drawn a box
   */
  constructor(
    private readonly figure: Figure,
    moved: () => void,
    selected: (part: Part) => void
  ) {
    this.model = figure.roots[0]?.model as PlotModel;
    const { x_range: range, document } = this.model;
    const named = (name: string): Model => {
      const found = document.get_model_by_name(name);
      if (found === null) {
        throw new Error("The server's figure has an unknown form.");
      }
      return found;
    };
    this.bars = named('bars');
    this.found = named('found');
    this.selection = named('selection');
    const { start, end } = range.properties;
    range.on_change([start, end], moved);
    this.model.on_event('selectiongeometry', ({ geometry, final }) => {
      const { x0, x1 } = geometry ?? {};
      if (final !== false && x0 !== undefined && x1 !== undefined && x0 < x1) {
        selected({ fromNs: x0 * NS_PER_MS, toNs: x1 * NS_PER_MS });
      }
    });
  }

  get seen(): Part {
    const { start, end } = this.model.x_range;
    return { fromNs: start * NS_PER_MS, toNs: end * NS_PER_MS };
  }

  /** How many pixels that has. */
  get pixels(): number {
    const width = this.model.inner_width ?? 0;
    return width > 0 ? width : USUAL_WIDTH;
  }

  show({ fromNs, toNs }: Part): void {
    this.model.x_range.setv({
      start: fromNs / NS_PER_MS,
      end: toNs / NS_PER_MS
    });
  }

  fill(bars: Columns, found: Columns): void {
    this.bars.setv({ data: bars });
    this.found.setv({ data: found });
  }

  select(part: Part | null): void {
    this.selection.setv(
      part === null
        ? { visible: false }
        : {
            left: part.fromNs / NS_PER_MS,
            right: part.toNs / NS_PER_MS,
            visible: true
          }
    );
  }

  clear(): void {
    this.figure.clear();
  }

  private readonly model: PlotModel;
  private readonly bars: Model;
  private readonly found: Model;
  private readonly selection: Model;
}

/** Before Bokeh has laid the figure out. */
const USUAL_WIDTH = 1000;
