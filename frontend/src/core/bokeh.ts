/**
 * BokehJS for figures that people explore, loaded when the first one opens.
 *
 * It comes from the server's own bokeh, so it fits the figures that come from
 * there. The bundle assigns itself to its `this`; it is given a root of its own,
 * so that a notebook's Bokeh, of whatever version, keeps `window.Bokeh`, before
 * or after.
 */

import type { Connection } from './connection';
import { LinkedRanges } from './time_links';

interface BokehRoot {
  Bokeh?: {
    embed: {
      embed_item(item: unknown, target: HTMLElement): Promise<Figure>;
    };
  };
}

/** A plain wheel scrolls the page, over a figure too; with Ctrl it zooms. */
function leaveToPage(event: WheelEvent): void {
  if (!event.ctrlKey && !event.metaKey) {
    event.stopPropagation();
  }
}

/** A figure on the page. */
export interface Figure {
  /** Take it off the page and stop its listeners. */
  clear(): void;
  /** BokehJS's own views of what was drawn. */
  readonly roots: readonly { readonly model: unknown }[];
}

export class BokehLoader {
  constructor(readonly connection: Connection) {}

  /** Fetch a figure's description and draw it into an element. */
  async show(path: string, target: HTMLElement): Promise<Figure> {
    const [, item] = await Promise.all([this.load(), this.item(path)]);
    return this.draw(item, target);
  }

  /** Draw a description into an element. */
  async draw(item: unknown, target: HTMLElement): Promise<Figure> {
    const bokeh = await this.load();
    const figure = await bokeh.embed.embed_item(item, target);
    target.addEventListener('wheel', leaveToPage, { capture: true });
    const { roots } = figure;
    const drawn = {
      roots,
      clear: () => {
        this.linked.leave(drawn);
        figure.clear();
      }
    };
    this.linked.join(drawn);
    return drawn;
  }

  /** Fetch a figure's description. */
  async item(path: string): Promise<unknown> {
    const answer = await this.connection.read(path);
    return answer.json();
  }

  /** Load BokehJS, once. */
  load(): Promise<NonNullable<BokehRoot['Bokeh']>> {
    this.loading ??= this.fetchBundle().catch((error: unknown) => {
      this.loading = null;
      throw error;
    });
    return this.loading;
  }

  private async fetchBundle(): Promise<NonNullable<BokehRoot['Bokeh']>> {
    // a figure may say in words why it is none, and words are a widget
    const bundles = await Promise.all(
      ['bokeh', 'bokeh-widgets'].map(async name => {
        const answer = await this.connection.read(`bokehjs/${name}.min.js`);
        return answer.text();
      })
    );
    const root: BokehRoot = {};
    for (const bundle of bundles) {
      // eslint-disable-next-line @typescript-eslint/no-implied-eval -- see above; same server as this very module
      new Function(bundle).call(root);
    }
    if (root.Bokeh === undefined) {
      throw new Error("The server's BokehJS has an unknown form.");
    }
    return root.Bokeh;
  }

  /** Ranges over the same time; one that no figure of Bokeh's has can join them. */
  readonly linked = new LinkedRanges();
  private loading: Promise<NonNullable<BokehRoot['Bokeh']>> | null = null;
}
