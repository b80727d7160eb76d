import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { choice, choose } from '../../app/place.ts';
import { FieldError, PROPERTIES, type PropertySet, type PropertyType } from '../../model/mqtt.ts';
import { unlessPrevented } from '../../parts/confirm.tsx';
import { Field, type FieldRow } from '../../parts/fields.tsx';
import { T } from '../../texts.ts';

const M = T.websocket;
const TYPING_MS = 350;
/** Longer values are kept in the form, and not in the address. */
const MAX_IN_ADDRESS = 2_000;

/** The values of the fields of the view. They are in the address, without secrets. */
export interface Choices {
  get(name: string): string;
  set(name: string, value: string): void;
}

/** The choices of the view. They are written to the address when a person has stopped to type. */
export function useChoices(): Choices {
  const [typed, setTyped] = useState<Readonly<Record<string, string>>>({});
  const latest = useRef(typed);
  latest.current = typed;
  const timer = useRef<ReturnType<typeof setTimeout>>();
  useEffect(() => () => clearTimeout(timer.current), []);
  const write = () => {
    const entries = Object.entries(latest.current);
    choose(Object.fromEntries(entries.filter(([, value]) => value.length <= MAX_IN_ADDRESS)));
    setTyped(Object.fromEntries(entries.filter(([, value]) => value.length > MAX_IN_ADDRESS)));
  };
  return {
    get: (name) => typed[name] ?? choice(name),
    set(name, value) {
      setTyped((before) => ({ ...before, [name]: value }));
      clearTimeout(timer.current);
      timer.current = setTimeout(write, TYPING_MS);
    }
  };
}

/** Values of the fields of a form, by name. */
export function valuesOf(form: Choices, rows: readonly FieldRow[]): Readonly<Record<string, string>> {
  return Object.fromEntries(rows.map(({ name }) => [name, form.get(name)]));
}

/** The fields of rows. A problem is shown at its field. */
export function Fields({
  rows,
  form,
  problem
}: {
  readonly rows: readonly FieldRow[];
  readonly form: Choices;
  readonly problem: unknown;
}) {
  return (
    <>
      {rows.map((row) => (
        <Field
          key={row.name}
          field={row}
          value={form.get(row.name) || (row.choices?.[0]?.[0] ?? '')}
          onChange={(value) => form.set(row.name, value)}
          problem={problem instanceof FieldError && problem.field === row.name ? problem.message : undefined}
        />
      ))}
    </>
  );
}

/** A problem that is not that of a field. */
export function OtherProblem({ problem }: { readonly problem: unknown }) {
  if (problem === undefined || problem instanceof FieldError) return null;
  return (
    <p class="problem problem-message" role="alert">
      {problem instanceof Error ? problem.message : `${problem}`}
    </p>
  );
}

/** The form of a packet: its fields, and those that only MQTT 5 has. A client that is not connected sends nothing. */
export function PacketForm({
  form,
  rows,
  furtherRows,
  further,
  isUsed,
  send,
  isOpen,
  problem,
  onSubmit,
  children
}: {
  readonly form: Choices;
  readonly rows: readonly FieldRow[];
  readonly furtherRows: readonly FieldRow[];
  /** The title of the further fields. */
  readonly further: string;
  /** True if one of them has a value, so that they are shown. */
  readonly isUsed: boolean;
  /** The label of the button. */
  readonly send: string;
  readonly isOpen: boolean;
  readonly problem: unknown;
  readonly onSubmit: () => Promise<void>;
  readonly children?: ComponentChildren;
}) {
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    void onSubmit();
  };
  return (
    <form class="mqtt-form" onSubmit={submit}>
      <div class="mqtt-fields">
        <Fields rows={rows} form={form} problem={problem} />
      </div>
      {form.get('v') !== '4' && (
        <details open={isUsed}>
          <summary>{further}</summary>
          <div class="mqtt-fields">
            <Fields rows={furtherRows} form={form} problem={problem} />
          </div>
        </details>
      )}
      <OtherProblem problem={problem} />
      <div class="form-buttons">
        <button type="submit" class="primary" {...unlessPrevented(isOpen ? undefined : M.notConnected)}>
          {send}
        </button>
        {children}
      </div>
    </form>
  );
}

const MAXIMA: Readonly<Record<string, number>> = {
  receiveMaximum: 65_535,
  topicAliasMaximum: 65_535,
  topicAlias: 65_535,
  subscriptionIdentifier: 268_435_455
};
const FROM_ONE = new Set(['receiveMaximum', 'maximumPacketSize', 'topicAlias', 'subscriptionIdentifier']);
/** A flag that a field does not set is not sent. */
const FLAG = [
  ['', M.flag.none],
  ['0', M.flag.no],
  ['1', M.flag.yes]
] as const;

/** The fields of the properties of a packet. @param without those that are secrets: they have another field */
export function propertyRows(set: PropertySet, prefix: string, without: readonly string[] = []): readonly FieldRow[] {
  const rows = Object.entries(PROPERTIES[set]) as [keyof typeof M.properties, PropertyType][];
  return rows
    .filter(([name]) => !without.includes(name))
    .map(([name, type]) => {
      const help = (M.propertyHelps as Readonly<Record<string, string | undefined>>)[name];
      const shared = { name: prefix + name, label: M.properties[name], ...(help !== undefined && { help }) };
      if (type === 'flag') return { ...shared, type: 'choice', choices: FLAG };
      if (type === 'pairs') return { ...shared, type: 'lines' };
      if (type !== 'number' && type !== 'list') return shared;
      return { ...shared, type: 'number', min: FROM_ONE.has(name) ? 1 : 0, max: MAXIMA[name] ?? 4_294_967_295 };
    });
}
