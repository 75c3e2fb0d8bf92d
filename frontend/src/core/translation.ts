/** The language of the page: what a person reads is looked up here, in English else. */

import type { ITranslator } from '@jupyterlab/translation';

/** By which a language pack of JupyterLab has our words. */
const DOMAIN = 'warpbook';

/** What a figure or a name takes the place of: %1 is the first. */
type Argument = string | number;

interface Bundle {
  __(msgid: string, ...args: Argument[]): string;
  _n(msgid: string, plural: string, n: number, ...args: Argument[]): string;
}

/** Without JupyterLab, as in a widget of another page: the words as they are written. */
const english: Bundle = {
  __: (msgid, ...args) => filled(msgid, args),
  _n: (msgid, plural, n, ...args) =>
    filled(n === 1 ? msgid : plural, [n, ...args])
};

let bundle = english;

/** Take the language that the person has chosen; it changes with a reload only. */
export function setTranslator(translator: ITranslator | null): void {
  bundle = translator === null ? english : bundleOf(translator);
}

/** What is read when it is shown, and never while a module is loaded. */
export const trans: Bundle = {
  __: (msgid, ...args) => bundle.__(msgid, ...args),
  _n: (msgid, plural, n, ...args) => bundle._n(msgid, plural, n, ...args)
};

/** Mark words of a table for the catalogue; `trans.__()` looks them up when shown. */
export function mark<T extends string>(msgid: T): T {
  return msgid;
}

/** Words with elements in their places, such as code: what `h()` takes. */
export function phrase(msgid: string, ...nodes: Node[]): (Node | string)[] {
  const places = nodes.map((_, index) => `%${index + 1}`);
  return trans
    .__(msgid, ...places)
    .split(/(%\d)/)
    .map(part => nodes[places.indexOf(part)] ?? part);
}

function bundleOf(translator: ITranslator): Bundle {
  const loaded = translator.load(DOMAIN);
  return {
    __: (msgid, ...args) => loaded.__(msgid, ...args),
    _n: (msgid, plural, n, ...args) => loaded._n(msgid, plural, n, ...args)
  };
}

function filled(words: string, args: readonly Argument[]): string {
  // in one pass: what a name brings is not looked at again
  return words.replace(/%(\d+)/g, (whole, place: string) => {
    const value = args[Number(place) - 1];
    return value === undefined ? whole : String(value);
  });
}
