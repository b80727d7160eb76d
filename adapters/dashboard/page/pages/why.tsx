import { useState } from 'preact/hooks';
import type { DataOf } from '../../../management/client/index.ts';
import { choice, choose, hrefOf, place } from '../app/place.ts';
import { get } from '../app/requests.ts';
import { absoluteTime, inputTime, plainText, timeText } from '../model/format.ts';
import { CopyAs } from '../parts/copy.tsx';
import { Badge, Facts, Head } from '../parts/facts.tsx';
import { type FieldRow, type FieldTexts, Form } from '../parts/fields.tsx';
import { useLoaded } from '../parts/loading.ts';
import { Name } from '../parts/name.tsx';
import { Problem } from '../parts/problem.tsx';
import { T } from '../texts.ts';
import { evidenceLabel, evidenceText } from './why/evidence.ts';

const W = T.why;
type Answer = DataOf<'hosted', 'GET', '/x/why'>;
type Cause = Answer['causes'][number];

const FIELDS: readonly FieldRow[] = [
  { name: 'topic', label: W.topic, help: W.topicHelp, isRequired: true },
  { name: 'client', label: W.client, help: W.clientHelp },
  { name: 'publisher', label: W.publisher, help: W.publisherHelp },
  { name: 'rule', label: W.rule, help: W.ruleHelp },
  { name: 'at', label: W.at, help: W.atHelp, type: 'time' }
];

/**
 * The question why a message did not arrive, and the answer. The question is part of the address. Only a time that a person gives is sent: without
 * one, the broker takes its own clock, and also names what is over by now.
 */
export function Page() {
  const { choices } = place.value;
  const [topic, clientid, publisher, rule, at] = FIELDS.map(({ name }) => choice(name));
  const asked = JSON.stringify([topic, clientid, publisher, rule, at]);
  const [times, setTimes] = useState(0);
  return (
    <>
      <Head title={W.title} />
      <p class="aside">{W.about}</p>
      <section class="panel why-form">
        <Form
          key={asked}
          fields={FIELDS}
          initial={{ ...choices, at: inputTime(at) }}
          submit={W.ask}
          onSubmit={async (values: FieldTexts) => {
            const { topic, client, publisher, rule, at = '' } = values;
            choose({ topic, client, publisher, rule, at: absoluteTime(at) }, false);
            setTimes((count) => count + 1); // the same question may have another answer by now
          }}
        />
      </section>
      {topic === '' ? (
        <p class="aside">{W.needsTopic}</p>
      ) : (
        <AnswerView
          key={`${times} ${asked}`}
          query={{ topic, clientid, publisher, rule, at: Date.parse(at) || undefined }}
        />
      )}
    </>
  );
}

interface Query {
  readonly topic: string;
  readonly clientid: string;
  readonly publisher: string;
  readonly rule: string;
  readonly at: number | undefined;
}

function AnswerView({ query }: { readonly query: Query }) {
  const { topic, clientid, publisher, rule, at } = query;
  const { value, error, reload } = useLoaded<Answer>(JSON.stringify(query), (signal) =>
    get('/x/why', { query, signal })
  );
  if (error !== undefined) return <Problem error={error} onRetry={reload} />;
  if (value === undefined) return <p class="loading">{T.shell.loading}</p>;
  const { known_since } = value;
  const flags = { topic, client: clientid, publisher, rule, at: at === undefined ? '' : `${at}` };
  const words = Object.entries(flags).flatMap(([name, text]) => (text === '' ? [] : [`--${name}=${text}`]));
  return (
    <section class="answer" aria-live="polite">
      <div class="head">
        <h2>{value.causes.length === 0 ? W.none : W.causes(value.causes.length)}</h2>
        <div class="head-actions">
          <CopyAs request={{ path: '/x/why', query: { ...query } }} ctl={['why', ...words]} />
          <button type="button" class="small" onClick={reload}>
            {W.again}
          </button>
        </div>
      </div>
      <p class="aside">{known_since === undefined ? W.unrecorded : W.knownSince(timeText(known_since))}</p>
      {!value.is_complete && <p class="warning">{W.incomplete}</p>}
      {value.causes.length === 0 && <p>{W.noneAdvice}</p>}
      <ol class="causes">
        {value.causes.map((cause) => (
          <CauseView key={`${cause.code} ${cause.at} ${cause.text}`} cause={cause} />
        ))}
      </ol>
      <p class="links">
        {clientid !== '' && <a href={hrefOf('client', { id: clientid })}>{W.openClient}</a>}
        <a href={hrefOf('topics', { topic })}>{W.openTopic}</a>
      </p>
    </section>
  );
}

/** Pages where a cause can be removed, by its code. */
const REMEDIES: Readonly<Record<string, readonly [text: string, href: () => string]>> = {
  banned: [W.openBans, () => hrefOf('access', { tab: 'bans' })]
};

function CauseView({ cause: { code, kind, at, count, text, evidence, remedy } }: { readonly cause: Cause }) {
  const rows = Object.entries(evidence);
  const [linkText, href] = REMEDIES[code] ?? [];
  return (
    <li class="panel cause">
      <h3>
        <Name of={plainText(text)} max={1_000} />
      </h3>
      <p class="aside">
        <span title={W.kindAbouts[kind]}>
          <Badge kind={kind === 'derived' ? 'quiet' : 'warn'}>{W.kinds[kind]}</Badge>
        </span>{' '}
        <span class="number">{timeText(at, { ms: true })}</span>
        {count > 1 && <> · {W.times(count)}</>}
      </p>
      <p>
        <b>{W.remedy}:</b> {plainText(remedy)} {href && <a href={href()}>{linkText}</a>}
      </p>
      {rows.length > 0 && (
        <details>
          <summary>{W.evidence}</summary>
          <Facts
            rows={rows.map(([name, value]) => [
              evidenceLabel(name),
              evidenceText(name, value) ?? (
                <Name key={name} of={name === 'detail' ? plainText(`${value}`) : `${value}`} max={400} />
              )
            ])}
          />
        </details>
      )}
    </li>
  );
}
