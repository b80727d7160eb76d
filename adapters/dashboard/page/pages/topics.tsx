import { useState } from 'preact/hooks';
import { choice, choose } from '../app/place.ts';
import { post } from '../app/requests.ts';
import { Action } from '../parts/confirm.tsx';
import { CopyAs } from '../parts/copy.tsx';
import { Head } from '../parts/facts.tsx';
import type { FieldRow, FieldTexts } from '../parts/fields.tsx';
import { T } from '../texts.ts';
import { TopicDetail } from './topics/detail.tsx';
import { PinnedTopics } from './topics/pin.tsx';
import { TopicTree } from './topics/tree.tsx';

const P = T.topics;

/** The tree of topics: those that have retained messages, and topic filters with subscriptions. */
export function Page() {
  const topic = choice('topic');
  const [version, setVersion] = useState(0);
  return (
    <>
      <Head title={T.views.topics}>
        <OpenTopic key={topic} topic={topic} />
        <Publish topic={topic} onDone={() => setVersion((before) => before + 1)} />
      </Head>
      <PinnedTopics selected={topic} />
      <div class="split">
        <TopicTree selected={topic} version={version} />
        <TopicDetail key={topic} topic={topic} version={version} onChange={() => setVersion((before) => before + 1)} />
      </div>
    </>
  );
}

/** Go to a topic whose name is known. */
function OpenTopic({ topic }: { readonly topic: string }) {
  const [typed, setTyped] = useState(topic);
  return (
    <search>
      <form
        class="go-to"
        onSubmit={(event) => {
          event.preventDefault();
          choose({ topic: typed }, false);
        }}
      >
        <input
          aria-label={P.goTo}
          placeholder={P.goTo}
          value={typed}
          spellcheck={false}
          autocapitalize="none"
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
        <button type="submit">{P.show}</button>
      </form>
    </search>
  );
}

const FIELDS: readonly FieldRow[] = [
  { name: 'topic', label: P.topic, isRequired: true },
  { name: 'payload', label: P.payload, type: 'lines' },
  {
    name: 'qos',
    label: P.qos,
    type: 'choice',
    choices: [
      ['0', '0'],
      ['1', '1'],
      ['2', '2']
    ]
  },
  { name: 'retain', label: P.retainThis, type: 'flag' },
  { name: 'clientid', label: P.asClient, help: P.asClientHelp }
];

/** Publish a message. */
function Publish({ topic, onDone }: { readonly topic: string; readonly onDone: () => void }) {
  const bodyOf = ({ topic = '', payload = '', qos = '0', retain = '', clientid = '' }: FieldTexts) => ({
    topic,
    payload,
    qos: Number(qos),
    retain: retain === 'true',
    ...(clientid !== '' && { clientid })
  });
  return (
    <Action
      name="publish"
      label={P.publish}
      title={P.publishTitle}
      submit={P.publish}
      fields={FIELDS}
      initial={{ topic: /[+#]/.test(topic) ? '' : topic }}
      kind="primary"
      done={P.published}
      run={async (values) => {
        await post('/mqtt/publish', { body: bodyOf(values) });
        onDone();
      }}
    >
      {(values) => {
        const body = bodyOf(values);
        const flags = ['-q', `${body.qos}`, ...(body.retain ? ['--retain'] : [])];
        const isOfCtl = !body.clientid; // `ctl` publishes for no client
        return (
          <CopyAs
            request={{ method: 'POST', path: '/mqtt/publish', body }}
            ctl={isOfCtl ? ['pub', ...flags, '--', body.topic, body.payload] : undefined}
          />
        );
      }}
    </Action>
  );
}
