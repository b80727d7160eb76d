import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useWatch } from '../../app/live.ts';
import { reveal, useAsked } from '../../app/place.ts';
import { mayReadPayloads } from '../../app/session.ts';
import { streams } from '../../app/streams.ts';
import { bytesOf, utf8Of } from '../../model/payload.ts';
import { type Definition, exampleRows, filterOf, rowOfMessage, type TestRow } from '../../model/streams.ts';
import { isCut, type TailRow } from '../../model/tail.ts';
import { Field } from '../../parts/fields.tsx';
import { described } from '../../parts/problem.tsx';
import { Result } from '../../parts/result.tsx';
import { T } from '../../texts.ts';

const S = T.streamRules;

/** The most rows that are collected from messages. */
const MAX_COLLECTED = 100;

/** Rows that a person has chosen for the test. */
export const offered = signal<readonly TestRow[] | undefined>(undefined);

interface Outcome {
  readonly emissions: readonly (readonly unknown[])[];
  readonly errors: readonly string[];
}

/** A run of a statement with rows: examples, the last inputs of the rule, or messages that are published now. No sink receives anything. */
export function TestRun({
  statement,
  options,
  definitions,
  run
}: {
  readonly statement: string;
  /** The options of the rule, which decide about its time. @throws InputError if they are not valid */
  readonly options: () => object;
  readonly definitions: readonly Definition[] | undefined;
  /** A number that increases when the editor asks for a run. */
  readonly run: number;
}) {
  const part = useAsked('test');
  const [text, setText] = useState<string>();
  const [outcome, setOutcome] = useState<Outcome>();
  const [problem, setProblem] = useState('');
  const [ran, setRan] = useState('');
  const shown = text ?? (definitions === undefined ? '' : rowsText(exampleRows(definitions)));
  const taken = offered.value;
  useEffect(() => {
    if (taken === undefined) return;
    setText(rowsText(taken));
    offered.value = undefined;
    reveal(part.current);
  }, [taken]);
  const tested = `${statement}\n${shown}`;
  const test = async () => {
    setOutcome(undefined);
    setProblem('');
    setRan(tested);
    let rows: unknown;
    try {
      rows = JSON.parse(shown === '' ? '[]' : shown);
    } catch (error) {
      setProblem(S.rowsNotJson((error as Error).message));
      return;
    }
    try {
      const body = { sql: statement, options: options(), rows };
      setOutcome((await streams('POST', '/ruletest', { body })) as Outcome);
    } catch (error) {
      setProblem(described(error).message);
    }
  };
  useEffect(() => {
    if (run > 0) void test();
  }, [run]);
  return (
    <section class="panel" ref={part}>
      <h2>{T.rules.test}</h2>
      <p class="aside">{S.testAbout}</p>
      <Field field={{ name: 'rows', label: S.rows, type: 'lines' }} value={shown} onChange={setText} />
      <div class="form-buttons">
        <button type="button" onClick={() => void test()}>
          {T.rules.run}
        </button>
        {mayReadPayloads.value && (
          <Collector definitions={definitions ?? []} onRows={(rows) => setText(rowsText(rows))} />
        )}
        {text !== undefined && (
          <button type="button" class="quiet" onClick={() => setText(undefined)}>
            {T.rules.resetSample}
          </button>
        )}
      </div>
      {(outcome !== undefined || problem !== '') && ran !== tested && <p class="warning">{T.rules.isOld}</p>}
      {problem !== '' && (
        <p class="problem-message" role="alert">
          {problem}
        </p>
      )}
      {outcome && <Shown outcome={outcome} />}
    </section>
  );
}

/** A row a line, so that many can be read. */
function rowsText(rows: readonly TestRow[]): string {
  return rows.length === 0 ? '[]' : `[\n${rows.map((row) => `  ${JSON.stringify(row)}`).join(',\n')}\n]`;
}

/** Collects messages of this broker as rows, while it is on. */
function Collector({
  definitions,
  onRows
}: {
  readonly definitions: readonly Definition[];
  readonly onRows: (rows: readonly TestRow[]) => void;
}) {
  const read = definitions.find((definition) => filterOf(definition) !== undefined);
  const [rows, setRows] = useState<readonly TestRow[]>();
  const [left, setLeft] = useState(0);
  const latest = useRef<readonly TestRow[]>([]); // several events may come before the next rendering
  const toggle = () => {
    latest.current = [];
    setLeft(0);
    setRows(rows === undefined ? [] : undefined);
  };
  const filter = read && filterOf(read);
  useWatch('rows', rows === undefined || filter === undefined ? undefined : { kind: 'tail', filter }, (data) => {
    const messages = (data.rows as readonly TailRow[] | undefined) ?? [];
    const found = messages.flatMap((row) => {
      if (isCut(row)) return [];
      const { at, columns, payload = '' } = row;
      const text = utf8Of(bytesOf(payload) ?? new Uint8Array()) ?? '';
      return rowOfMessage((read as Definition).Name, columns.topic, at, text) ?? [];
    });
    setLeft((before) => before + messages.length - found.length);
    if (found.length === 0) return;
    latest.current = [...latest.current, ...found].slice(-MAX_COLLECTED);
    setRows(latest.current);
    onRows(latest.current);
  });
  if (filter === undefined) return null;
  return (
    <>
      <button type="button" aria-pressed={rows !== undefined} onClick={toggle}>
        {rows === undefined ? S.collect : S.collecting(rows.length)}
      </button>
      {left > 0 && <span class="aside">{S.notCollected(left)}</span>}
    </>
  );
}

function Shown({ outcome: { emissions, errors } }: { readonly outcome: Outcome }) {
  return (
    <div role="status">
      <h3>{S.outputs(emissions.length)}</h3>
      {emissions.length === 0 && errors.length === 0 && <p class="aside">{S.noOutput}</p>}
      {emissions.length > 0 && (
        <Result>{emissions.map((rows) => rows.map((row) => JSON.stringify(row)).join('\n')).join('\n\n')}</Result>
      )}
      {errors.map((error, index) => (
        <p key={index} class="problem-message">
          {error}
        </p>
      ))}
    </div>
  );
}
