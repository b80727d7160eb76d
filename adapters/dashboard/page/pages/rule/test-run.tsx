import { signal } from '@preact/signals';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { useWatch } from '../../app/live.ts';
import { reveal, useAsked } from '../../app/place.ts';
import { RequestError, request } from '../../app/requests.ts';
import { isAdministrator, mayReadPayloads } from '../../app/session.ts';
import { sizeText } from '../../model/format.ts';
import { bytesOf, utf8Of } from '../../model/payload.ts';
import { eventOf, MESSAGES, topicsIn } from '../../model/rules.ts';
import { exampleEvent } from '../../model/sample-event.ts';
import { isCut, type TailRow } from '../../model/tail.ts';
import { forAdministrators } from '../../parts/confirm.tsx';
import { Field } from '../../parts/fields.tsx';
import { Result } from '../../parts/result.tsx';
import { T } from '../../texts.ts';
import type { Language } from './words.ts';

const R = T.rules;

/** The code of the answer to a test without an output. */
const NO_OUTPUT = 404;

/** A sample that a person has chosen for the test. */
export const offered = signal<string | undefined>(undefined);

/** A run of a statement with one event: a sample, or the next real message. Nothing is changed, and no action runs. */
export function TestRun({
  statement,
  columns,
  language,
  run,
  onError
}: {
  readonly statement: string;
  /** The columns that the statement reads, or `*`. */
  readonly columns: readonly string[];
  readonly language: Language | undefined;
  /** A number that increases when the editor asks for a run. */
  readonly run: number;
  readonly onError: (error: unknown) => void;
}) {
  const part = useAsked('test');
  const [filter, example] = useExample(statement, columns, language);
  const [sample, setSample] = useState<string>();
  const [result, setResult] = useState<string>();
  const [ran, setRan] = useState('');
  const [isWaiting, setWaiting] = useState(false);
  const shown = sample ?? example;
  useWatch('sample', isWaiting && filter ? { kind: 'tail', filter } : undefined, (data) => {
    const row = (data.rows as readonly TailRow[] | undefined)?.[0];
    if (row === undefined) return;
    setWaiting(false);
    if (isCut(row)) setResult(R.tooLong(sizeText(row.payloadBytes as number)));
    else setSample(sampleOf(row));
  });
  const taken = offered.value;
  useEffect(() => {
    if (taken === undefined) return;
    setSample(taken);
    offered.value = undefined;
    reveal(part.current);
  }, [taken]);
  const tested = `${statement}\n${shown}`;
  const test = async () => {
    onError(undefined);
    setRan(tested);
    setResult(undefined);
    try {
      setResult(await resultOf(statement, shown));
    } catch (error) {
      onError(error);
    }
  };
  useEffect(() => {
    if (run > 0 && isAdministrator.value) void test();
  }, [run]);
  return (
    <section class="panel" ref={part}>
      <h2>{R.test}</h2>
      <p class="aside">{R.testAbout}</p>
      <Field field={{ name: 'sample', label: R.sample, type: 'lines' }} value={shown} onChange={setSample} />
      <div class="form-buttons">
        <button type="button" {...forAdministrators()} onClick={() => void test()}>
          {R.run}
        </button>
        {filter && mayReadPayloads.value && (
          <button type="button" aria-pressed={isWaiting} onClick={() => setWaiting(!isWaiting)}>
            {isWaiting ? R.waiting : R.takeNext}
          </button>
        )}
        {sample !== undefined && (
          <button type="button" class="quiet" onClick={() => setSample(undefined)}>
            {R.resetSample}
          </button>
        )}
      </div>
      <Output text={result} isOld={ran !== '' && ran !== tested} />
    </section>
  );
}

/** Run a statement. @param sample an event as JSON; '' for one without columns @throws errors of requests */
async function resultOf(statement: string, sample: string): Promise<string> {
  let ctx: unknown;
  try {
    ctx = JSON.parse(sample === '' ? '{}' : sample);
  } catch (error) {
    return R.notJson((error as Error).message);
  }
  try {
    const { data } = await request('POST', '/rules', { query: { test: true }, body: { rawsql: statement, ctx } });
    return JSON.stringify(data, null, 2);
  } catch (error) {
    if (error instanceof RequestError && error.code === NO_OUTPUT) return R.noOutput;
    throw error;
  }
}

/** The topic filter of messages, or undefined for another event, and an event for a test. */
function useExample(
  statement: string,
  columns: readonly string[],
  language: Language | undefined
): readonly [filter: string | undefined, example: string] {
  const [first = ''] = topicsIn(statement);
  const event = eventOf(first);
  const filter = event !== MESSAGES ? undefined : first.startsWith('$events/') ? '#' : first;
  const example = useMemo(() => {
    const ofEvent = language?.events.find((one) => one.event === event)?.columns;
    return ofEvent === undefined ? '' : JSON.stringify(exampleEvent(statement, ofEvent, columns, filter), null, 2);
  }, [language, statement, columns]);
  return [filter, example];
}

function Output({ text: result, isOld }: { readonly text: string | undefined; readonly isOld: boolean }) {
  return (
    <>
      {result !== undefined && (
        <>
          <h3>{R.output}</h3>
          {isOld && <p class="warning">{R.isOld}</p>}
          <Result role="status">{result}</Result>
        </>
      )}
    </>
  );
}

function sampleOf({ columns, payload }: TailRow): string {
  const text = payload === undefined ? undefined : utf8Of(bytesOf(payload) ?? new Uint8Array());
  return JSON.stringify({ ...columns, ...(text !== undefined && { payload: text }) }, null, 2);
}
