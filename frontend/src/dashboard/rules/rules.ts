/** The alert rules on the dashboard: which there are, on and off, add, change, delete. */

import type { RulesServer } from '../../server/alert_rules';
import { h, setText } from '../../core/dom';
import { clip } from '../../core/format';
import type { AlertRule, AlertRules, Device } from '../../shapes/protocol';
import type { Settings } from './rule_draft';
import { draftOf, metricsOf, scaleOf } from './rule_draft';
import { RuleForm } from './rule_form';

/** What the built-in rules watch; docs/how-to/set-alerts.md says it at length. */
const BUILT_IN = new Map([
  ['xid', 'The driver reports an XID error.'],
  ['ecc_uncorrected', 'ECC found errors that it could not correct.'],
  ['ecc_corrected', 'ECC corrected a burst of errors.'],
  ['temperature', 'A GPU is close to its slowdown temperature.'],
  ['throttling', 'Heat or the power supply slows a GPU.'],
  ['gpu_lost', 'A GPU is gone.'],
  ['gpu_stale', 'A GPU gives no readings.'],
  ['memory_full', 'The memory is almost full.'],
  ['idle_while_busy', 'A cell runs, and no GPU of its kernel works.'],
  ['held_idle', 'An idle kernel holds memory for long.'],
  ['monitor', 'warpbook itself gives no readings.']
]);

export class RuleList {
  readonly node: HTMLElement;

  constructor(
    private readonly server: RulesServer,
    private readonly devices: () => readonly Device[]
  ) {
    this.node = h(
      'details',
      {
        class: 'wb-reports wb-rules',
        'aria-label': 'Alert rules',
        toggle: () => this.opened()
      },
      h('summary', {}, 'Alert rules'),
      this.words,
      this.list,
      this.place
    );
  }

  private opened(): void {
    if (this.known === null) {
      void this.read();
    }
  }

  private async read(): Promise<void> {
    setText(this.words, 'Asking the server…');
    try {
      this.known = await this.server.read();
      this.write('');
    } catch (error) {
      setText(
        this.words,
        `The rules can't be read. ${(error as Error).message} Fold this and unfold it to try again.`
      );
    }
  }

  /** Write all rules anew, and say what has happened. */
  private write(news: string): void {
    const { known } = this;
    if (known === null) {
      return;
    }
    const where = `The rules are kept in ${clip(known.file, 300)}.`;
    setText(this.words, [news, known.problem, where].filter(Boolean).join(' '));
    this.list.replaceChildren(
      ...known.rules.map(rule => this.row(rule, known.problem !== ''))
    );
    this.place.replaceChildren(
      ...(known.problem === '' ? [this.addButton()] : [])
    );
  }

  private row(rule: AlertRule, isLocked: boolean): HTMLElement {
    const name = clip(rule.name, 64);
    const on = h('input', {
      type: 'checkbox',
      'aria-label': `Rule ${name} is on`,
      change: () => void this.toggle(rule, on)
    });
    on.checked = rule.settings['enabled'] !== false;
    on.disabled = isLocked;
    const actions = h('span', { class: 'wb-rule-actions' });
    if (!isLocked) {
      actions.append(...this.actions(rule, name, actions));
    }
    return h(
      'li',
      { 'data-rule': name },
      on,
      h('strong', {}, name),
      h('span', { class: 'wb-note' }, this.describe(rule)),
      actions
    );
  }

  private actions(rule: AlertRule, name: string, place: HTMLElement): Node[] {
    const isWritten = rule.is_own || rule.written.length > 0;
    const verb = rule.is_own ? 'Delete' : 'Defaults';
    return [
      button('Change', `Change rule ${name}`, () => this.edit(rule)),
      ...(isWritten
        ? [
            button(verb, `${verb}: rule ${name}`, () =>
              this.confirm(rule, verb, place)
            )
          ]
        : [])
    ];
  }

  /** What is written is gone then: asked once more. */
  private confirm(rule: AlertRule, verb: string, place: HTMLElement): void {
    const before = [...place.childNodes];
    const question =
      verb === 'Delete' ? 'Delete it?' : 'Put it back to its defaults?';
    const yes = button('Yes', `${question} Yes`, () => {
      void this.send(rule.name, rule.is_own, null, 'Done.');
    });
    place.replaceChildren(
      question,
      yes,
      button('No', `${question} No`, () => place.replaceChildren(...before))
    );
    yes.focus();
  }

  private async toggle(rule: AlertRule, on: HTMLInputElement): Promise<void> {
    const words = `${clip(rule.name, 64)} is ${on.checked ? 'on' : 'off'}.`;
    const settings = { ...rule.settings, enabled: on.checked };
    await this.send(rule.name, rule.is_own, settings, words);
    this.find(rule.name)?.querySelector('input')?.focus();
  }

  private edit(rule: AlertRule | null): void {
    const { known } = this;
    if (known === null) {
      return;
    }
    const form = new RuleForm({
      rule,
      taken: known.rules.map(({ name }) => name),
      metrics: metricsOf(this.devices()),
      save: async (name, settings) => {
        await this.change(name, rule?.is_own ?? true, settings);
        this.write(`${clip(name, 64)} is saved.`);
        this.find(name)?.querySelector<HTMLElement>('button')?.focus();
      },
      cancel: () => {
        this.write('');
        (rule === null ? this.place : this.find(rule.name))
          ?.querySelector<HTMLElement>('button')
          ?.focus();
      }
    });
    const row = rule === null ? null : this.find(rule.name);
    if (row === null) {
      this.place.replaceChildren(form.node);
    } else {
      row.append(form.node);
    }
    form.focus();
  }

  private async send(
    name: string,
    isOwn: boolean,
    settings: Settings | null,
    news: string
  ): Promise<void> {
    try {
      await this.change(name, isOwn, settings);
      this.write(news);
    } catch (error) {
      this.write((error as Error).message);
    }
  }

  private async change(
    name: string,
    isOwn: boolean,
    settings: Settings | null
  ): Promise<void> {
    const version = this.known?.version ?? '';
    try {
      this.known = await this.server.change({
        version,
        name,
        is_own: isOwn,
        settings
      });
    } catch (error) {
      // the file may be another one by now: the next try is made on that
      this.known = await this.server.read().catch(() => this.known);
      throw error;
    }
  }

  /** What a rule watches, in a line. */
  private describe(rule: AlertRule): string {
    const { settings } = rule;
    const seconds = Number(settings['for_s']);
    const lasts = seconds > 0 ? ` for ${seconds}\u00a0s` : '';
    if (!rule.is_own) {
      const what = BUILT_IN.get(rule.name) ?? 'Built in.';
      return rule.written.length > 0
        ? `${what} Changed: ${rule.written.map(key => clip(key, 40)).join(', ')}.`
        : what;
    }
    const metrics = metricsOf(this.devices());
    const { metric, side, threshold, title } = draftOf(rule, metrics);
    const [unit] = scaleOf(metric, metrics);
    const label = metrics.find(({ name }) => name === metric)?.label ?? metric;
    return clip(
      `“${title}”: ${label} ${side} ${threshold}\u00a0${unit}${lasts}`,
      300
    );
  }

  private addButton(): HTMLElement {
    return button('Add a rule', 'Add a rule', () => this.edit(null));
  }

  private find(name: string): HTMLElement | null {
    return (
      [...this.list.children]
        .filter(row => row instanceof HTMLElement)
        .find(({ dataset }) => dataset['rule'] === clip(name, 64)) ?? null
    );
  }

  private readonly words = h('p', { class: 'wb-note', role: 'status' });
  private readonly list = h('ul', { class: 'wb-rule-list' });
  private readonly place = h('div', {});
  private known: AlertRules | null = null;
}

function button(label: string, name: string, click: () => void) {
  return h(
    'button',
    { class: 'wb-button', type: 'button', 'aria-label': name, click },
    label
  );
}
