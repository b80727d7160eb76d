import type { DataOf } from '../../../../management/client/index.ts';
import { choice, choose, place } from '../../app/place.ts';
import { get } from '../../app/requests.ts';
import { flagWords } from '../../model/copy.ts';
import { CopyAs } from '../../parts/copy.tsx';
import { Badge } from '../../parts/facts.tsx';
import { type FieldRow, Form } from '../../parts/fields.tsx';
import { useLoaded } from '../../parts/loading.ts';
import { Name } from '../../parts/name.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Table } from '../../parts/table.tsx';
import { T } from '../../texts.ts';
import { askedText, type DecidingRule, ruleText } from './words.ts';

const A = T.access;
type Answer = DataOf<'hosted', 'GET', '/x/rights'>;
type Step = Answer['steps'][number];

const FIELDS: readonly FieldRow[] = [
  { name: 'clientid', label: T.clients.id },
  { name: 'username', label: T.clients.user },
  { name: 'ip_address', label: T.clients.address },
  {
    name: 'action',
    label: A.may,
    type: 'choice',
    choices: [
      ['publish', A.publish],
      ['subscribe', A.subscribe]
    ]
  },
  { name: 'topic', label: A.topic, isRequired: true }
];
const KINDS = { allow: 'good', deny: 'bad', unknown: 'warn', none: 'quiet', unasked: 'quiet', failed: 'bad' } as const;

/** The question whether a client may publish or subscribe, and by which rule. It is part of the address. */
export function Rights() {
  const { choices } = place.value;
  const asked = FIELDS.map(({ name }) => choice(name)).join('\n');
  return (
    <>
      <section class="panel why-form">
        <Form
          key={asked}
          fields={FIELDS}
          initial={choices}
          submit={T.why.ask}
          onSubmit={async (values) => choose({ action: 'publish', ...values }, false)}
        />
      </section>
      {choice('topic') === '' ? <p class="aside">{A.rightsAbout}</p> : <AnswerView key={asked} />}
    </>
  );
}

function AnswerView() {
  const [clientid, username, ip_address, action, topic] = FIELDS.map(({ name }) => choice(name));
  const query = {
    clientid,
    username,
    ip_address,
    action: action === 'subscribe' ? 'subscribe' : 'publish',
    topic,
    ask: true
  } as const;
  const { value, error, reload } = useLoaded<Answer>(JSON.stringify(query), (signal) =>
    get('/x/rights', { query, signal })
  );
  if (error !== undefined) return <Problem error={error} onRetry={reload} />;
  if (value === undefined) return <p class="loading">{T.shell.loading}</p>;
  return (
    <section class="answer" aria-live="polite">
      <div class="head">
        <h2>
          <Badge kind={KINDS[value.access]}>{A.answers[value.access]}</Badge> {value.is_superuser && A.superuser}
        </h2>
        <CopyAs
          request={{ path: '/x/rights', query }}
          ctl={[
            'rights',
            ...flagWords({ client: clientid, user: username, address: ip_address }),
            '--ask',
            '--',
            action === 'subscribe' ? 'sub' : 'pub',
            topic
          ]}
        />
      </div>
      <p class="aside">{A.stepsAbout}</p>
      <Table<Step>
        caption={A.steps}
        rows={value.steps.length === 0 ? [value.decided_by] : value.steps}
        keyOf={(_, index) => index}
        empty=""
        columns={[
          { head: A.asked, cell: askedText },
          { head: A.answer, cell: ({ answer }) => <Badge kind={KINDS[answer]}>{A.answersOf[answer]}</Badge> },
          {
            head: A.rule,
            isWide: true,
            cell: ({ rule, index }) =>
              rule !== undefined && (
                <>
                  {index !== undefined && <span class="aside">{A.number(index + 1)} </span>}
                  <Name of={ruleText(rule as DecidingRule)} max={300} />
                </>
              )
          }
        ]}
      />
    </section>
  );
}
