/** The Bokeh figure of a timeline: what the page reads of it and writes into it. */

import type { Figure } from '../core/bokeh';
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
  readonly y_range: Range;
  readonly inner_width?: number;
  readonly inner_height?: number;
  readonly outer_height?: number;
  readonly min_border_left: number | null;
  readonly min_border_top: number | null;
  readonly document: { get_model_by_name(name: string): Model | null };
  on_event(name: string, listener: (event: Geometry) => void): void;
}

interface Palette extends Model {
  readonly palette: readonly unknown[];
}

interface Geometry {
  readonly final?: boolean;
  readonly geometry?: {
    readonly type: string;
    readonly x0?: number;
    readonly x1?: number;
  };
}

/** Where bars are drawn, in pixels from the figure's corner. */
export interface Frame {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

const NS_PER_MS = 1e6;
const ROW_PIXELS = 20;

export class TimelinePlot {
  /**
   * @param figure - drawn by Bokeh from the server's description
   * @param moved - another part is seen
   * @param selected - a person has drawn a box
   * @param resized - the frame has another size
   */
  constructor(
    figure: Figure,
    moved: () => void,
    selected: (part: Part) => void,
    resized: () => void
  ) {
    this.model = figure.roots[0]?.model as PlotModel;
    const { x_range: range, document } = this.model;
    const named = (name: string): Model => {
      const model = document.get_model_by_name(name);
      if (model === null) {
        throw new Error("The server's figure has an unknown form.");
      }
      return model;
    };
    this.bars = named('bars');
    this.matches = named('found');
    this.selection = named('selection');
    this.palette = (named('colours') as Palette).palette.map(String);
    const { start, end } = range.properties;
    range.on_change([start, end], moved);
    const { inner_width: width, inner_height: height } = this.model.properties;
    this.model.on_change([width, height], () => {
      this.fitHeight();
      resized();
    });
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

  /** The figure has at least these borders, and nothing in them needs more. */
  get frame(): Frame {
    const { min_border_left: left, min_border_top: top } = this.model;
    return {
      left: left ?? 0,
      top: top ?? 0,
      width: this.pixels,
      height: this.model.inner_height ?? 0
    };
  }

  /** Make room for rows, in units of a row's usual height. */
  setHeight(rows: number): void {
    this.rows = rows;
    this.model.y_range.setv({ start: rows, end: 0 });
    this.fitHeight();
  }

  private fitHeight(): void {
    const { outer_height: outer = 0, inner_height: inner = 0 } = this.model;
    const wanted = this.rows * ROW_PIXELS;
    if (inner > 0 && this.rows > 0 && Math.abs(inner - wanted) > 1) {
      this.model.setv({ height: Math.ceil(outer - inner + wanted) });
    }
  }

  show({ fromNs, toNs }: Part): void {
    this.model.x_range.setv({
      start: fromNs / NS_PER_MS,
      end: toNs / NS_PER_MS
    });
  }

  fill(bars: Columns, matches: Columns): void {
    this.bars.setv({ data: bars });
    this.matches.setv({ data: matches });
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

  /** Colours of bars, as "#1f77b4". */
  readonly palette: readonly string[];
  private rows = 0;
  private readonly model: PlotModel;
  private readonly bars: Model;
  private readonly matches: Model;
  private readonly selection: Model;
}

/** Before Bokeh has laid the figure out. */
const USUAL_WIDTH = 1000;
