/** The form of one alert rule: a person's own, or one that is built in. */

import { h, setText } from '../../core/dom';
import { clip } from '../../core/format';
import type { AlertRule } from '../../shapes/protocol';
import type { Draft, MetricChoice, Settings } from './rule_draft';
import {
  draftOf,
  NEW,
  numberOf,
  problemsOf,
  scaleOf,
  secondsProblem,
  settingsOf
} from './rule_draft';

export interface FormOptions {
  /** The rule to change; null is a new one. */
  readonly rule: AlertRule | null;
  /** Names that a new rule can't have. */
  readonly taken: readonly string[];
  readonly metrics: readonly MetricChoice[];
  /** Save it; what is refused is thrown in words. */
  save(name: string, settings: Settings): Promise<void>;
  cancel(): void;
}

type Field = HTMLInputElement | HTMLSelectElement;

const SEVERITIES = ['warning', 'fault', 'normal'] as const;
const KINDS = [
  ['gpu', 'every GPU'],
  ['mig', 'every MIG instance'],
  ['host', 'the host'],
  ['monitor', 'warpbook itself']
] as const;
/** What every rule has; the rest of a built-in one's are its own figures. */
const COMMON = ['enabled', 'severity', 'for_s', 'clear_s'];

let forms = 0;

export class RuleForm {
  readonly node: HTMLFormElement;

  constructor(private readonly options: FormOptions) {
    const { rule } = options;
    forms += 1;
    this.id = `warpbook-rule-${forms}`;
    const isOwn = rule === null || rule.is_own;
    const title = rule === null ? 'A new rule' : `Rule ${clip(rule.name, 64)}`;
    this.node = h(
      'form',
      {
        class: 'wb-rule-form',
        'aria-label': title,
        novalidate: '',
        submit: event => {
          event.preventDefault();
          void (isOwn ? this.saveOwn() : this.saveBuiltIn());
        },
        keydown: event => {
          const { key } = event as KeyboardEvent;
          if (key === 'Escape') {
            event.stopPropagation();
            options.cancel();
          }
        }
      },
      h('h4', {}, title),
      ...(isOwn ? this.ownFields() : this.builtInFields(rule.settings)),
      this.refusal,
      h(
        'div',
        { class: 'wb-controls' },
        h('button', { class: 'wb-button', type: 'submit' }, 'Save'),
        h(
          'button',
          {
            class: 'wb-button',
            type: 'button',
            click: () => options.cancel()
          },
          'Cancel'
        )
      )
    );
  }

  focus(): void {
    this.node
      .querySelector<HTMLElement>('input:not([readonly]), select')
      ?.focus();
  }

  private ownFields(): Node[] {
    const { rule, metrics } = this.options;
    const draft = rule === null ? NEW : draftOf(rule, metrics);
    const known = metrics.some(({ name }) => name === draft.metric);
    const devices = KINDS.some(([kind]) => kind === draft.device)
      ? KINDS
      : [...KINDS, [draft.device, clip(draft.device, 60)] as const];
    const name = this.input('name', 'Name', draft.name, '64');
    if (rule !== null) {
      this.field('name').setAttribute('readonly', '');
    }
    const nodes = [
      name,
      this.input('title', 'Title of the alert', draft.title, '100'),
      this.select('metric', 'Metric', draft.metric, [
        ...metrics.map(
          ({ name: value, label }) => [value, `${label} (${value})`] as const
        ),
        ...(known ? [] : [[draft.metric, draft.metric] as const])
      ]),
      this.select('side', 'Is', draft.side, [
        ['above', 'above'],
        ['below', 'below']
      ]),
      this.input('threshold', 'Threshold', draft.threshold, '30', this.unit),
      this.input('clear', 'Ends at (optional)', draft.clear, '30'),
      this.input('for_s', 'Begins after, in s', draft.for_s, '10'),
      this.input('clear_s', 'Ends after, in s', draft.clear_s, '10'),
      this.select('device', 'Of', draft.device, devices),
      this.severity(draft.severity),
      this.input('text', 'What to do (optional)', draft.text, '300')
    ];
    const writeUnit = () =>
      setText(this.unit, scaleOf(this.field('metric').value, metrics)[0]);
    this.field('metric').addEventListener('change', writeUnit);
    writeUnit();
    return nodes;
  }

  private builtInFields(settings: Settings): Node[] {
    const own = Object.entries(settings).filter(
      ([key, value]) =>
        !COMMON.includes(key) && (value === null || typeof value === 'number')
    );
    const word = (value: Settings[string] | undefined) => String(value ?? '');
    return [
      this.select('severity', 'Severity', word(settings['severity']), [
        ['', 'as the rule judges'],
        ...SEVERITIES.map(severity => [severity, severity] as const)
      ]),
      this.input('for_s', 'Begins after, in s', word(settings['for_s']), '10'),
      this.input(
        'clear_s',
        'Ends after, in s',
        word(settings['clear_s']),
        '10'
      ),
      ...own.map(([key, value]) => this.input(key, key, word(value), '30'))
    ];
  }

  private severity(value: string): Node {
    return this.select(
      'severity',
      'Severity',
      value,
      SEVERITIES.map(severity => [severity, severity] as const)
    );
  }

  private async saveOwn(): Promise<void> {
    const { rule, taken, metrics } = this.options;
    const draft = Object.fromEntries(
      Object.keys(NEW).map(key => [key, this.field(key).value])
    ) as unknown as Draft;
    const problems = problemsOf(draft, rule === null ? taken : []);
    if (!this.show(problems)) {
      return;
    }
    const enabled = rule?.settings['enabled'] !== false;
    await this.send(draft.name, settingsOf(draft, enabled, metrics));
  }

  private async saveBuiltIn(): Promise<void> {
    const { rule } = this.options;
    const before = rule?.settings ?? {};
    const problems: Record<string, string> = {};
    const settings: Settings = { ...before };
    for (const [key, field] of this.fields) {
      const text = field.value.trim();
      if (key === 'severity') {
        settings[key] = text === '' ? null : text;
        continue;
      }
      const value = numberOf(text);
      // what may be left out is so now; what was written may be cleared again
      const mayBeEmpty = before[key] === null;
      settings[key] = value;
      const wrong =
        key === 'for_s' || key === 'clear_s'
          ? secondsProblem(text)
          : value === null && !(mayBeEmpty && text === '')
            ? 'Write a number.'
            : null;
      if (wrong !== null) {
        problems[key] = wrong;
      }
    }
    if (this.show(problems)) {
      await this.send(rule?.name ?? '', settings);
    }
  }

  private async send(name: string, settings: Settings): Promise<void> {
    setText(this.refusal, '');
    try {
      await this.options.save(name, settings);
    } catch (error) {
      setText(this.refusal, (error as Error).message);
    }
  }

  /** Write what is wrong beside its field; whether nothing is. */
  private show(problems: Partial<Record<string, string>>): boolean {
    let first: Field | null = null;
    for (const [key, field] of this.fields) {
      const words = problems[key] ?? '';
      const place = this.problems.get(key);
      if (place !== undefined) {
        setText(place, words);
        place.hidden = words === '';
      }
      field.setAttribute('aria-invalid', String(words !== ''));
      first ??= words === '' ? null : field;
    }
    first?.focus();
    return first === null;
  }

  private input(
    key: string,
    label: string,
    value: string,
    most: string,
    unit: Node | null = null
  ): Node {
    const field = h('input', { class: 'wb-select', maxlength: most });
    field.value = value;
    return this.labelled(key, label, field, unit);
  }

  private select(
    key: string,
    label: string,
    value: string,
    choices: readonly (readonly [string, string])[]
  ): Node {
    const field = h(
      'select',
      { class: 'wb-select' },
      ...choices.map(([choice, words]) => h('option', { value: choice }, words))
    );
    field.value = value;
    return this.labelled(key, label, field, null);
  }

  private labelled(
    key: string,
    label: string,
    field: Field,
    unit: Node | null
  ): Node {
    const id = `${this.id}-${key}`;
    const problem = h('span', {
      class: 'wb-rule-problem',
      id: `${id}-problem`,
      role: 'alert',
      hidden: ''
    });
    field.id = id;
    field.setAttribute('aria-describedby', problem.id);
    this.fields.set(key, field);
    this.problems.set(key, problem);
    return h(
      'div',
      { class: 'wb-rule-field' },
      h('label', { for: id }, label),
      h('span', {}, field, unit),
      problem
    );
  }

  private field(key: string): Field {
    const field = this.fields.get(key);
    if (field === undefined) {
      throw new Error(`The form has no field ${key}.`);
    }
    return field;
  }

  private readonly id: string;
  private readonly fields = new Map<string, Field>();
  private readonly problems = new Map<string, HTMLElement>();
  private readonly unit = h('span', { class: 'wb-note' });
  private readonly refusal = h('p', { class: 'wb-warning', role: 'alert' });
}
