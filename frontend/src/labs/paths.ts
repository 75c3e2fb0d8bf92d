/** Learning paths in the lab browser: a choice of one, and its labs in order. */

import { h, setText } from '../dom';
import { clip } from '../format';
import type { LabEntry, LabList, PathEntry, TextEntry } from '../protocol';
import { trans } from '../translation';

/** Labs that are shown together: those of a track, or of a part of a path. */
export interface LabGroup {
  readonly title: string;
  readonly label: string;
  readonly labs: readonly LabEntry[];
  /** To go through after the labs. */
  readonly texts: readonly TextEntry[];
}

/** Put the labs in groups: by the parts of the path that is followed, or by track. */
export function groupsOf({ labs, paths, path, texts }: LabList): LabGroup[] {
  const chosen = paths.find(({ id }) => id === path);
  if (chosen === undefined) {
    const tracks = [...new Set(labs.map(({ track }) => track))];
    return tracks.map(track => ({
      title: track,
      label: trans.__('Track %1', clip(track, 40)),
      labs: labs.filter(lab => lab.track === track),
      texts: []
    }));
  }
  const byId = new Map(labs.map(lab => [lab.id, lab]));
  return chosen.parts.map(part => ({
    title: part.title,
    label: clip(part.title, 200),
    labs: part.labs.flatMap(id => byId.get(id) ?? []),
    texts: texts.filter(({ id }) => part.texts.includes(id))
  }));
}

/** How far one is on a path, in words. */
export function pathWords(path: PathEntry): string {
  const of = path.parts.reduce((sum, { labs }) => sum + labs.length, 0);
  return path.passed === null || path.minutes_left === null
    ? trans.__('%1 labs, about %2 minutes', of, path.minutes)
    : trans.__(
        '%1 of %2 labs are passed, about %3 of %4 minutes are left',
        path.passed,
        of,
        path.minutes_left,
        path.minutes
      );
}

/** The choice of a path, with how far one is on it. */
export class PathChoice {
  /** @param choose - called with the id of another path, or '' for none */
  constructor(private readonly choose: (path: string) => void) {}

  /** Offer the paths, and say how far one is on the one that is followed. */
  write({ paths, path }: LabList): void {
    this.node.hidden = paths.length === 0;
    const options: [string, string][] = [
      ['', trans.__('none: all labs by track')],
      ...paths.map(({ id, title, minutes }): [string, string] => [
        id,
        trans.__('%1 (%2 minutes)', clip(title, 100), minutes)
      ])
    ];
    const state = JSON.stringify(options);
    if (state !== this.state) {
      this.state = state;
      this.select.replaceChildren(
        ...options.map(([value, words]) => h('option', { value }, words))
      );
    }
    this.select.value = path ?? '';
    const chosen = paths.find(({ id }) => id === path);
    setText(
      this.words,
      chosen === undefined
        ? ''
        : `${clip(chosen.about, 300)} ${pathWords(chosen)}.`
    );
  }

  private readonly select = h('select', {
    'aria-label': trans.__('Learning path'),
    change: () => this.choose(this.select.value)
  });
  private readonly words = h('span', { class: 'wb-note', role: 'status' });
  private state = '';

  readonly node = h(
    'div',
    { class: 'wb-labs-filters wb-labs-path' },
    h('span', {}, trans.__('Path:')),
    this.select,
    this.words
  );
}
