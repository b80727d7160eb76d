import { useState } from 'preact/hooks';
import { MAX_VALUES, type PinnedValue, pins, togglePin } from '../../app/pins.ts';
import { hrefOf } from '../../app/place.ts';
import { diffOf, numbersIn } from '../../model/diff.ts';
import { sizeText, timeText } from '../../model/format.ts';
import { type Form, formOf, shortText, utf8Of } from '../../model/payload.ts';
import { Chart } from '../../parts/chart.tsx';
import { Name } from '../../parts/name.tsx';
import { Forms, useForm } from '../../parts/value.tsx';
import { T } from '../../texts.ts';

const P = T.topics;
/** The pinned topics, whose values are collected while the page is open. */
export function PinnedTopics({ selected }: { readonly selected: string }) {
  const topics = [...pins.value.keys()];
  if (topics.length === 0) return null;
  return (
    <p class="pinned-topics">
      <span class="aside">{P.pinned}</span>
      {topics.map((topic) => (
        <a key={topic} href={hrefOf('topics', { topic })} aria-current={topic === selected ? 'page' : undefined}>
          <Name of={topic} max={60} />
        </a>
      ))}
    </p>
  );
}

/** The last values of a pinned topic: as a chart, the difference of two of them, and a file. */
export function Pin({ topic }: { readonly topic: string }) {
  const values = pins.value.get(topic);
  const isPinned = values !== undefined;
  return (
    <>
      <div class="section-actions">
        <button type="button" class="small" aria-pressed={isPinned} onClick={() => togglePin(topic)}>
          {P.pin}
        </button>
        {isPinned && (
          <>
            <span class="aside">{P.collected(values.length, MAX_VALUES)}</span>
            <button type="button" class="small" disabled={values.length === 0} onClick={() => save(topic, values)}>
              {P.export}
            </button>
          </>
        )}
      </div>
      {isPinned && values.length > 0 && <Values topic={topic} values={values} />}
    </>
  );
}

/** The list stays as it is while a person reads it: after a value is selected, or the list is scrolled. The chart goes on. */
function Values({ topic, values }: { readonly topic: string; readonly values: readonly PinnedValue[] }) {
  const [held, setHeld] = useState<readonly PinnedValue[]>();
  const listed = held ?? values;
  const newer = held === undefined ? 0 : values.filter(({ at }) => at > (held.at(-1)?.at ?? 0)).length;
  const hold = () => setHeld((before) => before ?? values);
  const [form, setForm] = useState<Form>();
  const shown = form ?? formOf(values[values.length - 1].bytes, { topic });
  const decode = useForm(shown);
  const textOf = (value: PinnedValue) => decode?.(value.bytes).text ?? '';
  const numbers = values.map((value) => numbersIn(textOf(value)));
  const paths = [...new Set(numbers.flatMap((one) => Object.keys(one)))].slice(0, 20);
  const [chosen, setChosen] = useState<string>();
  const [picked, setPicked] = useState<readonly number[]>([]);
  const path = chosen !== undefined && paths.includes(chosen) ? chosen : paths[0];
  const pick = (at: number) => {
    hold();
    setPicked((before) => (before.includes(at) ? before.filter((one) => one !== at) : [...before.slice(-1), at]));
  };
  const [first, second] = picked.toSorted((a, b) => a - b).map((at) => listed.find((value) => value.at === at));
  return (
    <>
      {path !== undefined && (
        <>
          {paths.length > 1 && (
            <label class="inline-field">
              {P.field}{' '}
              <select value={path} onChange={(event) => setChosen(event.currentTarget.value)}>
                {paths.map((name) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
            </label>
          )}
          <Chart
            title={path === '' ? P.value : path}
            at={values.map(({ at }) => at)}
            lines={[{ label: path === '' ? P.value : path, color: 1, values: numbers.map((one) => one[path] ?? null) }]}
            format={(value) => `${Number(value.toPrecision(6))}`}
            isFromZero={false}
          />
        </>
      )}
      <div class="tail-bar">
        <button
          type="button"
          class="small"
          aria-pressed={held !== undefined}
          onClick={() => setHeld(held === undefined ? values : undefined)}
        >
          {held === undefined ? T.traces.pause : T.traces.resume}
        </button>
        <span class="aside">{held === undefined ? P.pickTwo : T.tail.pausedAt(newer)}</span>
      </div>
      <ul class="pinned" aria-label={P.pickTwo} onScroll={({ currentTarget }) => currentTarget.scrollTop > 0 && hold()}>
        {listed.toReversed().map(({ at, bytes, payloadBytes }) => (
          <li key={at}>
            <label>
              <input type="checkbox" checked={picked.includes(at)} onChange={() => pick(at)} />
              <span class="number">{timeText(at, { ms: true }).slice(11)}</span>
              <bdi class="pinned-value">{shortText(bytes)}</bdi>
              {payloadBytes > bytes.length && (
                <span class="aside"> {T.value.firstOf(sizeText(bytes.length), sizeText(payloadBytes))}</span>
              )}
            </label>
          </li>
        ))}
      </ul>
      {first !== undefined && second !== undefined && (
        <>
          <fieldset class="value-bar" aria-label={T.value.form}>
            <Forms shown={shown} onChoose={setForm} />
          </fieldset>
          <Difference first={textOf(first)} second={textOf(second)} />
        </>
      )}
    </>
  );
}

function Difference({ first, second }: { readonly first: string; readonly second: string }) {
  return (
    <section aria-label={P.difference}>
      <pre class="diff">
        {diffOf(first, second).map(({ of, text }, index) => (
          <span key={index} class={`diff-${of}`}>
            {of === 'both' ? '  ' : of === 'first' ? '- ' : '+ '}
            {text}
            {'\n'}
          </span>
        ))}
      </pre>
    </section>
  );
}

/** Save the values as JSON. Payloads that are not UTF-8 are base64; those of which only the beginning is known have `is_cut`. */
function save(topic: string, values: readonly PinnedValue[]): void {
  const rows = values.map(({ at, bytes, payloadBytes }) => {
    const text = utf8Of(bytes);
    const cut = payloadBytes > bytes.length ? { is_cut: true, payload_size: payloadBytes } : {};
    return {
      topic,
      at,
      ...cut,
      ...(text === undefined ? { base64: btoa(String.fromCharCode(...bytes)) } : { payload: text })
    };
  });
  const url = URL.createObjectURL(new Blob([JSON.stringify(rows, null, 1)], { type: 'application/json' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = `${topic.replaceAll(/[^\w.-]+/g, '-').slice(0, 60) || 'topic'}.json`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
