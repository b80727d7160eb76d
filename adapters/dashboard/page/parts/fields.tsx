import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { choice, choose } from '../app/place.ts';
import { absoluteTime, inputTime } from '../model/format.ts';
import { T } from '../texts.ts';
import { described } from './problem.tsx';

/** A field of a form, or a condition of a list. */
export interface FieldRow {
  readonly name: string;
  readonly label: string;
  readonly type?: 'text' | 'lines' | 'number' | 'choice' | 'flag' | 'time' | 'secret';
  /** The values of a choice with their texts, in order. */
  readonly choices?: readonly (readonly [value: string, text: string])[];
  readonly help?: string;
  readonly placeholder?: string;
  readonly isRequired?: boolean;
  /** The field is shown only on request. */
  readonly isMinor?: boolean;
  /** Lines of a field for lines. Default: 6. */
  readonly rows?: number;
  readonly min?: number;
  readonly max?: number;
}

/** Values of fields, as strings. A flag is `true` or empty. */
export type FieldTexts = Readonly<Record<string, string>>;

/** True if a person is at another field: one that comes later, because its form had to be loaded, does not take the focus from it. */
function isTyping(): boolean {
  return document.activeElement?.matches('input, select, textarea, [contenteditable="true"]') === true;
}

/** The input of a field, with its label. @param isFirst it gets the focus when it comes, unless another field has it */
export function Field({
  field,
  value,
  onChange,
  problem,
  isFirst = false
}: {
  readonly field: FieldRow;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly problem?: string | undefined;
  readonly isFirst?: boolean;
}) {
  const { label, type = 'text', choices = [], help, placeholder, isRequired = false, rows = 6, min, max } = field;
  const id = useId();
  const input = useRef<HTMLInputElement & HTMLTextAreaElement & HTMLSelectElement>(null);
  useEffect(() => {
    if (isFirst && !isTyping()) input.current?.focus();
  }, [isFirst]);
  const about = [help !== undefined && `${id}-help`, problem !== undefined && `${id}-problem`]
    .filter(Boolean)
    .join(' ');
  const shared = {
    id,
    ref: input,
    name: field.name,
    required: isRequired,
    'aria-describedby': about === '' ? undefined : about,
    'aria-invalid': problem !== undefined
  };
  const take = (event: { readonly currentTarget: { readonly value: string } }) => onChange(event.currentTarget.value);
  const html = { text: 'text', number: 'number', time: 'datetime-local', secret: 'password' } as const;
  return (
    <div class={`field field-${type}`}>
      <label for={id}>
        {label}
        {isRequired && <span class="aside"> {T.form.required}</span>}
      </label>
      {type === 'choice' ? (
        <select {...shared} value={value} onChange={take}>
          {choices.map(([key, text]) => (
            <option key={key} value={key}>
              {text}
            </option>
          ))}
        </select>
      ) : type === 'lines' ? (
        <textarea {...shared} rows={rows} value={value} placeholder={placeholder} spellcheck={false} onInput={take} />
      ) : type === 'flag' ? (
        <input
          {...shared}
          type="checkbox"
          checked={value === 'true'}
          onChange={(event) => onChange(event.currentTarget.checked ? 'true' : '')}
        />
      ) : (
        <input
          {...shared}
          type={html[type]}
          value={value}
          placeholder={placeholder}
          min={min}
          max={max}
          step={type === 'time' ? 1 : undefined}
          spellcheck={false}
          autocapitalize="none"
          autocomplete={type === 'secret' ? 'new-password' : 'off'}
          onInput={take}
        />
      )}
      <Notes id={id} help={help} problem={problem} />
    </div>
  );
}

/** The texts below an input, which describe it for screen readers. */
function Notes({
  id,
  help,
  problem
}: {
  readonly id: string;
  readonly help: string | undefined;
  readonly problem: string | undefined;
}) {
  return (
    <>
      {help !== undefined && (
        <p id={`${id}-help`} class="aside">
          {help}
        </p>
      )}
      {problem !== undefined && (
        <p id={`${id}-problem`} class="problem-message">
          {problem}
        </p>
      )}
    </>
  );
}

/** A form that sends its values. Errors are shown above the button, and the form keeps its values. */
export function Form({
  fields,
  initial = {},
  submit,
  onSubmit,
  onCancel,
  isDangerous = false,
  children
}: {
  readonly fields: readonly FieldRow[];
  readonly initial?: FieldTexts;
  readonly submit: string;
  /** Sends the values. The form is done when it resolves. */
  readonly onSubmit: (values: FieldTexts) => Promise<unknown>;
  readonly onCancel?: (() => void) | undefined;
  readonly isDangerous?: boolean;
  readonly children?: preact.ComponentChildren | ((values: FieldTexts) => preact.ComponentChildren);
}) {
  const [values, setValues] = useState<FieldTexts>(initial);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  // a choice without a value is the first one, also if it has got its choices meanwhile
  const current = { ...values, ...firstChoices(fields, values) };
  const send = async (event: SubmitEvent) => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    setError(undefined);
    try {
      await onSubmit(current);
    } catch (thrown) {
      setError(thrown);
    }
    setBusy(false);
  };
  const problem = error === undefined ? undefined : described(error);
  const minor = fields.filter(({ isMinor }) => isMinor);
  const shown = fields.filter(({ isMinor }) => !isMinor);
  const fieldOf = (field: FieldRow, isFirst: boolean) => (
    <Field
      key={field.name}
      field={field}
      value={current[field.name] ?? ''}
      isFirst={isFirst}
      onChange={(value) => setValues((before) => ({ ...before, [field.name]: value }))}
    />
  );
  return (
    <form class="form" onSubmit={send}>
      {shown.map((field, index) => fieldOf(field, index === 0))}
      {minor.length > 0 && (
        <details>
          <summary>{T.form.moreFields}</summary>
          <div class="form">{minor.map((field) => fieldOf(field, false))}</div>
        </details>
      )}
      {typeof children === 'function' ? children(current) : children}
      {problem && (
        <div class="problem" role="alert">
          <p class="problem-message">{problem.message}</p>
          {problem.advice && <p>{problem.advice}</p>}
        </div>
      )}
      <div class="form-buttons">
        <button type="submit" class={isDangerous ? 'primary danger-primary' : 'primary'} disabled={isBusy}>
          {submit}
        </button>
        {onCancel && (
          <button type="button" onClick={onCancel}>
            {T.form.cancel}
          </button>
        )}
      </div>
    </form>
  );
}

/** The values of choices that a person has left as they were shown. */
function firstChoices(fields: readonly FieldRow[], values: FieldTexts): FieldTexts {
  return Object.fromEntries(
    fields.flatMap(({ name, choices }): [string, string][] => {
      const isGiven = values[name] !== undefined && values[name] !== '';
      return isGiven || choices?.[0] === undefined || choices.some(([value]) => value === values[name])
        ? []
        : [[name, choices[0][0]]];
    })
  );
}

const TYPING_MS = 350;

/** The conditions of a list. They are part of the address and apply while they are typed. Those that are rarely used are shown on request. */
export function Conditions({ fields }: { readonly fields: readonly FieldRow[] }) {
  const minor = fields.filter(({ isMinor }) => isMinor);
  const isUsed = fields.some(({ name }) => choice(name) !== '');
  const isMinorUsed = minor.some(({ name }) => choice(name) !== '');
  const [cleared, setCleared] = useState(0); // new inputs: what is being typed is cleared, too
  return (
    <search>
      <form class="conditions" onSubmit={(event) => event.preventDefault()}>
        {fields
          .filter(({ isMinor }) => !isMinor)
          .map((field) => (
            <Condition key={`${cleared} ${field.name}`} field={field} />
          ))}
        {isUsed && (
          <button
            type="button"
            class="quiet"
            onClick={() => {
              setCleared((before) => before + 1);
              choose({
                ...Object.fromEntries(fields.map(({ name }) => [name, undefined])),
                page: undefined,
                cursor: undefined
              });
            }}
          >
            {T.form.clear}
          </button>
        )}
        {minor.length > 0 && (
          <details open={isMinorUsed}>
            <summary>{T.form.more}</summary>
            <div class="conditions-more">
              {minor.map((field) => (
                <Condition key={`${cleared} ${field.name}`} field={field} />
              ))}
            </div>
          </details>
        )}
      </form>
    </search>
  );
}

function Condition({ field }: { readonly field: FieldRow }) {
  const chosen = choice(field.name);
  const [typed, setTyped] = useState(chosen);
  const sent = useRef(chosen);
  const timer = useRef<ReturnType<typeof setTimeout>>();
  // the address has changed in another way: by the back button of the browser, or by a link
  if (chosen !== sent.current) {
    sent.current = chosen;
    setTyped(chosen);
  }
  useEffect(() => () => clearTimeout(timer.current), []);
  const apply = (value: string) => {
    clearTimeout(timer.current);
    sent.current = value;
    choose({ [field.name]: value, page: undefined, cursor: undefined });
  };
  const isTyped = field.type === undefined || field.type === 'text' || field.type === 'number';
  return (
    <Field
      field={field}
      value={field.type === 'time' ? inputTime(typed) : typed}
      onChange={(input) => {
        const value = field.type === 'time' ? absoluteTime(input) : input;
        setTyped(value);
        clearTimeout(timer.current);
        if (isTyped) timer.current = setTimeout(() => apply(value), TYPING_MS);
        else apply(value);
      }}
    />
  );
}
