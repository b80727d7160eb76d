import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { useWatch } from '../../app/live.ts';
import { hrefOf } from '../../app/place.ts';
import { get, getPage, RequestError, remove } from '../../app/requests.ts';
import { mayReadPayloads } from '../../app/session.ts';
import { rateText, sizeText, timeText } from '../../model/format.ts';
import { sharedParts } from '../../model/tree.ts';
import { Action } from '../../parts/confirm.tsx';
import { CopyAs } from '../../parts/copy.tsx';
import { Facts } from '../../parts/facts.tsx';
import { useLoaded } from '../../parts/loading.ts';
import { Name, Publisher } from '../../parts/name.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Table } from '../../parts/table.tsx';
import { PayloadView } from '../../parts/value.tsx';
import { T } from '../../texts.ts';
import { Pin } from './pin.tsx';
import type { LiveTopic } from './tree.tsx';

const P = T.topics;

interface Detail {
  readonly topic: string;
  /** Changes when retained messages have changed. */
  readonly version: number;
  readonly onChange: () => void;
}

/** A topic or a topic filter: its retained message, its messages, and its subscriptions. */
export function TopicDetail({ topic, version, onChange }: Detail) {
  const isFilter = /[+#]/.test(topic) || topic.startsWith('$share/');
  const live = useLatest(topic === '' || isFilter ? undefined : topic);
  if (topic === '') return <p class="panel aside">{P.select}</p>;
  return (
    <div class="detail">
      <h2 class="detail-title">
        <Name of={topic} max={400} />
      </h2>
      {!isFilter && (
        <p>
          <a href={hrefOf('why', { topic })}>{P.why}</a>
        </p>
      )}
      {!isFilter && <Retained topic={topic} version={version} live={live} onChange={onChange} />}
      {!isFilter && <Latest topic={topic} live={live} />}
      <Subscribers topic={topic} isFilter={isFilter} />
    </div>
  );
}

/** The messages of a topic while it is shown. */
function useLatest(topic: string | undefined): LiveTopic | undefined {
  const [live, setLive] = useState<LiveTopic>();
  useWatch('topic', topic === undefined ? undefined : { kind: 'topics', topics: [topic] }, (data) => {
    const row = ((data.rows ?? []) as readonly LiveTopic[]).find(({ filter }) => filter === topic);
    if (row !== undefined) setLive((before) => (before?.filter === topic ? { ...before, ...row } : row)); // a new stream begins without a message
  });
  return live?.filter === topic ? live : undefined;
}

function Retained({ topic, version, live, onChange }: Detail & { readonly live: LiveTopic | undefined }) {
  const { value, error, reload, refresh } = useLoaded(topic, (signal) =>
    get('/x/retained/{topic}', { params: { topic }, query: { encoding: 'base64' }, signal })
  );
  const loadedAt = useRef(version);
  useEffect(() => {
    if (loadedAt.current === version) return;
    loadedAt.current = version;
    reload();
  }, [version]);
  const { retained = 0 } = live ?? {};
  useEffect(() => {
    if (retained > 0) refresh(); // it was replaced or deleted
  }, [retained]);
  const isNone = error instanceof RequestError && error.status === 404;
  const path = `/x/retained/${encodeURIComponent(topic)}`;
  return (
    <section class="panel">
      <div class="head">
        <h3>{P.retained}</h3>
        {value && (
          <div class="head-actions">
            <CopyAs request={{ path }} ctl={['retained', 'show', '--', topic]} />
            <Action
              name="remove"
              label={P.remove}
              title={P.removeTitle}
              of={topic}
              text={P.removeText}
              submit={P.remove}
              isDangerous
              kind="small"
              done={P.removed}
              run={async () => {
                await remove('/x/retained/{topic}', { params: { topic } });
                onChange();
              }}
            >
              <CopyAs request={{ method: 'DELETE', path }} ctl={['retained', 'remove', '--', topic]} />
            </Action>
          </div>
        )}
      </div>
      {isNone ? (
        <p class="aside">{P.noRetained}</p>
      ) : error !== undefined ? (
        <Problem error={error} onRetry={reload} />
      ) : value === undefined ? (
        <p class="loading">{T.shell.loading}</p>
      ) : (
        <Growing>
          <PayloadView of={{ ...value, topic, contentType: value.properties.content_type }} />
          <Facts
            rows={[
              [P.time, timeText(value.at, { ms: true })],
              [P.qos, value.qos],
              [
                P.publisher,
                value.from_clientid === undefined ? (
                  P.byBroker
                ) : (
                  <Publisher key="publisher" id={value.from_clientid} rule={ruleIn(value.from_rule)} />
                )
              ],
              ...(value.expires_at === undefined ? [] : ([[P.expires, timeText(value.expires_at)]] as const)),
              ...propertiesOf(value.properties)
            ]}
          />
        </Growing>
      )}
    </section>
  );
}

/** The rule that has published a message, as the live tail names it. */
function ruleIn(rule: { readonly kind: 'rule' | 'stream_rule'; readonly id: string } | undefined) {
  return rule && ({ kind: rule.kind === 'rule' ? 'rule' : 'streamRule', id: rule.id } as const);
}

type Properties = {
  readonly content_type?: string;
  readonly response_topic?: string;
  readonly correlation_data?: string;
  readonly payload_format_indicator?: number;
  readonly user_properties?: readonly { readonly name: string; readonly value: string }[];
};

function propertiesOf(properties: Properties): [string, preact.ComponentChildren][] {
  const { content_type, response_topic, correlation_data, user_properties = [] } = properties;
  const named = [
    [P.contentType, content_type],
    [P.responseTopic, response_topic],
    [P.correlation, correlation_data]
  ].flatMap(([name, value]): [string, preact.ComponentChildren][] =>
    value === undefined ? [] : [[name as string, <Name key={name} of={value} />]]
  );
  const user = user_properties.map(({ name, value }, index) => (
    <div key={index}>
      <Name of={name} />: <Name of={value} />
    </div>
  ));
  return user.length === 0 ? named : [...named, [P.userProperties, user]];
}

/** The messages while the page is open. */
function Latest({ topic, live }: { readonly topic: string; readonly live: LiveTopic | undefined }) {
  return (
    <section class="panel">
      <div class="head">
        <h3>{P.now}</h3>
        <span class="aside number">
          {live === undefined || live.count === 0 ? P.waiting : `${P.messages(live.count)}, ${rateText(live.rate)}`}
        </span>
      </div>
      {live?.at !== undefined && (
        <Growing>
          {mayReadPayloads.value && (
            <PayloadView of={{ payload: live.payload, encoding: 'base64', payloadBytes: live.payloadBytes, topic }} />
          )}
          <p class="aside">
            {timeText(live.at, { ms: true })}, {P.qos} {live.qos}, {sizeText(live.payloadBytes)}
          </p>
        </Growing>
      )}
      <Pin topic={topic} />
    </section>
  );
}

/** Content that changes while it is read. It never becomes lower, so that nothing below it moves with each message. */
function Growing({ children }: { readonly children: preact.ComponentChildren }) {
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (place.current !== null) place.current.style.minHeight = `${place.current.offsetHeight}px`;
  });
  return (
    <div ref={place} class="stack growing">
      {children}
    </div>
  );
}

const SUBSCRIBERS = 20;

/** The subscriptions with a topic filter, or those whose topic filters match a topic. */
function Subscribers({ topic, isFilter }: { readonly topic: string; readonly isFilter: boolean }) {
  const [group, filter] = sharedParts(topic);
  const query = !isFilter ? { _matches: topic } : group === undefined ? { topic } : { share: group, topic: filter };
  const title = isFilter ? P.subscribers : P.matching;
  const { value, error, reload } = useLoaded(topic, (signal) =>
    getPage('/subscriptions', { query: { ...query, _limit: SUBSCRIBERS }, signal })
  );
  return (
    <section class="panel">
      <div class="head">
        <h3>{title}</h3>
        <CopyAs request={{ path: '/subscriptions', query }} />
      </div>
      <Table
        caption={title}
        rows={value?.data}
        error={error}
        onRetry={reload}
        keyOf={({ clientid, topic }) => `${clientid} ${topic}`}
        empty={isFilter ? P.noSubscribers : P.noMatching}
        columns={[
          {
            head: T.clients.id,
            isWide: true,
            cell: ({ clientid }) => (
              <a href={hrefOf('client', { id: clientid })}>
                <Name of={clientid} max={60} />
              </a>
            )
          },
          {
            head: P.filter,
            cell: ({ topic: filter }) => (
              <a href={hrefOf('topics', { topic: filter })}>
                <Name of={filter} max={60} />
              </a>
            )
          },
          { head: P.qos, isNumber: true, cell: ({ qos }) => qos }
        ]}
      />
      {value !== undefined && value.data.length === SUBSCRIBERS && <p class="aside">{P.firstOnes(SUBSCRIBERS)}</p>}
    </section>
  );
}
